/* comparison.h - what came out of each variant of `starling compare`: the table and the CSV file.
 */
#ifndef COMPARISON_H
#define COMPARISON_H

#include "compare/break_even.h"
#include "compare/variants.h"
#include "run/collector.h"

typedef enum outcome {
    OUTCOME_NOT_RUN,
    OUTCOME_DONE,
    OUTCOME_DIVERGED,
    OUTCOME_FAILED,
    OUTCOME_STOPPED
} outcome;

typedef struct contender {
    const variant *variant;
    sl_plan plan;
    outcome outcome;
    uint64_t diverged_in; /* round */
    /* Of one that is done: */
    milestone *milestones; /* (milestone_count) owned; the last is the end */
    size_t milestone_count;
    sl_times times; /* mean over nodes */
    node_cost cost;
    sl_timeline *timeline; /* owned; NULL: no prediction */
    double predicted_s[LINKS_MAX];
    bool has_pay[LINKS_MAX]; /* compressed, and there is an uncompressed one before which it can be
                                held */
    break_even pays[LINKS_MAX];
} contender;

typedef struct comparison {
    contender *items; /* (count) owned */
    size_t count;
    bool agents; /* not the simulator: waiting was measured */
    uint64_t rounds;
    bool has_target; /* given, or derived from what is done */
    double target_loss;
    const link_profile *links; /* (link_count) borrowed */
    size_t link_count;
    bool shows_pay[LINKS_MAX]; /* has a column: one for all links where they agree, else one for
                                  each latency */
    size_t pay_columns;
    const contender *rival; /* the first uncompressed one that is done; NULL: none */
} comparison;

/* To be called when all have run: target, predicted times and break-evens. */
int comparison_finish(comparison *c, const options *o, sl_error *error);
void comparison_print(const comparison *c);
int comparison_write(const comparison *c, const char *path, sl_error *error);
void comparison_close(comparison *c);

#endif
