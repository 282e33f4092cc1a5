/* runs.h - brings a study's runs to their end, several beside each other, and goes on with what is
 * there already. */
#ifndef RUNS_H
#define RUNS_H

#include "compare/comparison.h"
#include "compare/jobs.h"

typedef struct runs {
    const options *options;
    study *study;
    comparison *comparison;
    size_t jobs;
    sl_learner *learner; /* of contenders with this `learner`, and this seed; NULL: none is open */
    size_t learner_of;
    uint64_t learner_seed;
    sl_task task;
    int lock; /* on the study's folder; -1: none */
} runs;

/* Fills in the facts of each variant, and refuses all that can be refused before anything is
 * started: what model and data do not fit, and the memory that is needed. To be closed in any case.
 */
int runs_prepare(runs *r, sl_error *error);
/* Takes the study's folder, and refuses runs of other experiments in it. *to_do: how many are to be
 * run. */
int runs_take_folder(runs *r, size_t *to_do, sl_error *error);
/* Runs these. Stops where a signal asks to. */
int runs_do(runs *r, size_t to_do, sl_error *error);
void runs_close(runs *r);

#endif
