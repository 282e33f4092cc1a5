/* children.h - run/child.h and run/pipe.h in the virtual world: the agents that a run starts are
 * processes of the world, with pipes and signals as a kernel has them. */
#ifndef CHILDREN_H
#define CHILDREN_H

#include "starling/starling.h"
#include "virtual.h"

/* What each child does: returns its exit code. `pipe` is its end. Forgets all children before. */
typedef int child_body(uint32_t rank, bool joins, int pipe, const sl_checkpoints *checkpoints);
void children_open(child_body *body);
/* The child that runs catches signals from here on: the handler says whether one asks it to stop.
 * Until then SIGTERM and SIGNAL_END end it, and it hears of no others. */
void child_catch(bool (*handler)(void *context, int number), void *context);
/* The latest child of that rank gets a signal; none: nothing. */
void child_receive(uint32_t rank, int number);
/* So does the run, whose handlers are those that it gave to sigaction. */
void run_receive(int number);
/* Has the run killed the latest child of that rank? */
bool child_was_killed(uint32_t rank);
/* When the n-th child of that rank was started, from 0; 0: there were fewer. */
double child_started_s(uint32_t rank, uint32_t n);
/* Children that live, or were not reaped, or whose pipe is open at the run's end. */
uint32_t children_left(void);

#endif
