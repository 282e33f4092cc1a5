/* expected.h - what the agents of a seed train, and what must come of it: the simulator's models,
 * after every round. */
#ifndef EXPECTED_H
#define EXPECTED_H

#include "scenario.h"
#include "virtual.h"

#define CHECKPOINTS "/checkpoints" /* their folder */
enum { RUN_ID = 7, ROSTER_MAX = 1024 };

/* Of the seed under way. */
extern sl_experiment *experiment;
extern sl_task task;

/* The scenario's, with these keys set. Borrows the scenario. */
void expected_take(scenario *s, const char *const *set, size_t set_count);
/* And the simulator has trained it. */
void expected_open(scenario *s, const char *const *set, size_t set_count);
/* Ends the seed's world; its hash. */
uint64_t expected_end(void);
/* The places of ranks 0 to agents - 1, from port 7000 on. */
void expected_roster(char out[ROSTER_MAX], uint32_t agents, const char *between);
/* Runs such an agent of a run of so many to its end; its settings lack what follows from the seed
 * and its rank. *agent: while it can be asked to stop; else NULL. */
int expected_run(sl_agent **agent, sl_agent_settings settings, uint32_t agents, sl_error *error);
/* The agent held no more than `starling check` forecasts, what it has where it saves checkpoints or
 * has a key, what its connections have, and so much. */
void expected_memory(const process *of, uint32_t rank, bool saves, bool has_key, size_t more);
/* The key of a run whose seed has one; the same for all. What OpenSSL allocates is not the world's:
 * called first before there is a process whose memory it would be. */
const sl_credentials *expected_key(void);
/* Rank has this model after that round: fails where the simulator has another. */
void expected_check(uint32_t rank, uint64_t round, const float *x);
/* The newest round of which every node has a good file; 0: there is none. */
uint64_t expected_newest(void (*notice)(void *context, const char *text));
/* The latest that the name of a file says, good or not. */
uint64_t expected_latest(void);

#endif
