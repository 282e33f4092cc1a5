/* reloads.h - the thread on which an agent's roster and keys are read again, when SIGHUP asks for
 * it: names are looked up meanwhile, and the agent's own thread must not wait for that. */
#ifndef RELOADS_H
#define RELOADS_H

#include <pthread.h>

#include "cli/tool.h"

typedef struct reloads {
    pthread_t thread;
    bool runs;
    volatile bool over;
    sl_agent *agent;   /* borrowed, as the next */
    sl_launch *launch; /* NULL: the roster came from `starling run` */
} reloads;

/* From here on SIGHUP asks; before the thread runs, that is remembered. Before catch_signals. */
void reloads_catch(void);
/* The agent tells its observer what has come of each. */
int reloads_open(reloads *out, sl_agent *agent, sl_launch *launch, sl_error *error);
/* Before the agent is closed. */
void reloads_close(reloads *reloads);

#endif
