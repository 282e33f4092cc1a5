/* child.h - an agent process of `starling run`. fleet.c knows no other way to processes;
 * tests/world/ implements this header once more, without any. */
#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "starling/starling.h"

#define CHILDREN_MAX 64u

typedef struct child {
    pid_t pid; /* 0: not started, or reaped */
    int pipe;  /* -1: closed */
} child;

/* Starts rank's agent on the config.json of the run folder at `path`. It ends when this process
 * does. joins: a process of that rank was lost, and this one takes its place. On failure *out is
 * none. */
int child_start(child *out, uint32_t rank, bool joins, const char *path,
                const sl_checkpoints *checkpoints, sl_error *error);
/* How many processes the kernel has killed for want of memory since it began; 0 where it does not
 * say. */
unsigned long child_starved(void);
/* Whoever reads this process's memory, or a core file of it, reads its key. */
void child_hide_memory(void);
/* To none: nothing. */
void child_signal(const child *c, int number);
/* Has it ended, was it stopped, does it go on? Then fills waitpid's *status. Who has ended is
 * reaped. */
bool child_look(child *c, int *status);
void child_hang_up(child *c);
/* Kills and reaps it, and hangs up. */
void child_close(child *c);
/* Waits until one of these pipes can be read, at most wait_ms; ready (count) says which. */
void children_wait(const int *pipes, bool *ready, uint32_t count, int wait_ms);

#endif
