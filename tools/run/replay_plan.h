/* replay_plan.h - what a run's logs of events say about how it came to its end: the stretches of
 * rounds that lasted, and from which checkpoint each went on. Those are all stretches of which any
 * log tells: who was lost is not in the next ones.
 *
 * A run may have gone back: what it computed after a checkpoint from which it later went on again
 * was computed anew, and is left out.
 */
#ifndef REPLAY_PLAN_H
#define REPLAY_PLAN_H

#include "cli/tool.h"

enum { REPLAY_SETTINGS_MAX = 2048 };

/* Rounds (from, to], by processes of one start. */
typedef struct replay_stretch {
    uint64_t from;                 /* the checkpoint; 0: the beginning */
    uint64_t to;                   /* the checkpoint that the next one begins with, or the last */
    bool simulated;                /* there were no agents */
    uint64_t rounds;               /* of the run, as it was then */
    char kernels[SL_LOG_WORD_MAX]; /* of rank 0 */
    char blas[SL_LOG_WORD_MAX];    /* likewise */
    char settings[REPLAY_SETTINGS_MAX]; /* likewise (sl_experiment_settings); empty: unknown */
    uint32_t unlike;                    /* the first rank with other kernels or BLAS; 0: none */
} replay_stretch;

typedef struct replay_plan {
    replay_stretch *stretches; /* (count) */
    size_t count;
    sl_log_outcome outcome; /* done, saved; failed: it was cut short, and the last stretch ends
                               where it, or one that just began, begins */
    uint64_t starts;        /* of rank 0 */
    uint64_t breaks;        /* of connections, as both ends saw them */
    uint64_t cuts, views;   /* of all ranks, which have lost members */
} replay_plan;

/* Reads the logs of a run. nodes: of its topology. ranks: at most, with those that joined; run_id:
 * of its run.json. SL_EFILE: names file, line and field, or which ranks' logs are missing. `tell`
 * hears of lines that a kill has torn. */
int replay_plan_open(replay_plan *out, const char *folder, uint32_t nodes, uint32_t ranks,
                     uint64_t run_id, void (*tell)(const char *text), sl_error *error);
void replay_plan_close(replay_plan *plan);

#endif
