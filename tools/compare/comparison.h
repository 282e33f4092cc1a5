/* comparison.h - what came out of each variant of `starling compare`, over its seeds. */
#ifndef COMPARISON_H
#define COMPARISON_H

#include "compare/break_even.h"
#include "compare/time_model.h"
#include "compare/variants.h"
#include "run/collector.h"

typedef enum outcome {
    OUTCOME_NOT_RUN,
    OUTCOME_DONE,
    OUTCOME_DIVERGED,
    OUTCOME_FAILED,
    OUTCOME_STOPPED
} outcome;

/* One run: a variant with one seed. */
typedef struct attempt {
    uint64_t seed;
    outcome outcome;
    uint64_t diverged_in; /* round */
    /* Of one that is done: */
    milestone *milestones; /* (milestone_count) owned; the last is the end */
    size_t milestone_count;
    sl_times times;    /* mean over nodes */
    double operations; /* of a node's gradients; 0: not known */
    node_cost cost;
    sl_timeline *timeline; /* owned; NULL: no prediction */
    double predicted_s[LINKS_MAX];
    bool has_pay[LINKS_MAX]; /* compressed, and the rival is done with the same seed */
    break_even pays[LINKS_MAX];
} attempt;

typedef struct contender {
    const variant *variant;
    sl_plan plan;
    uint64_t rounds;
    attempt *attempts;       /* (comparison.seeds) owned */
    struct contender *rival; /* the first uncompressed one on the same topology; NULL: none */
} contender;

typedef struct comparison {
    contender *items; /* (count) owned */
    size_t count;
    sl_shapes shapes; /* of the model that all train; the open learner's */
    size_t seeds;     /* attempts of each */
    bool agents;      /* not the simulator: waiting was measured */
    bool has_published;
    bool has_target; /* given, or derived from what is done */
    double target_loss;
    const link_profile *links; /* (link_count) borrowed */
    size_t link_count;
    bool shows_pay[LINKS_MAX]; /* has a column: one for all links where they agree, else one for
                                  each latency */
    size_t pay_columns;
} comparison;

/* Room for one contender a variant, with `seeds` attempts each. To be closed in any case. */
int comparison_open(comparison *c, const variants *v, size_t seeds, sl_error *error);
void comparison_close(comparison *c);
/* To be called when all have run: target, predicted times and break-evens. */
int comparison_finish(comparison *c, const options *o, sl_error *error);

/* As wide as the terminal, or with all columns. */
void comparison_print(const comparison *c, bool wide);
/* What a round is made of, and the fastest forms of all-reduce: beside the table. */
void comparison_print_rounds(const comparison *c, size_t width);
/* compare.csv, whole or not at all. */
int comparison_write(const comparison *c, const char *path, sl_error *error);

/* ---- what table and file show ---- */

/* Over the seeds that are done and have a number. */
typedef struct statistic {
    size_t count;
    double mean;
    double deviation; /* sample standard deviation; NaN below two */
} statistic;

typedef struct metric {
    const char *above, *head; /* of the table's column */
    const char *key;          /* of the file's */
    int rank;                 /* of the table's column, as text_table has it */
    double scale;             /* table = scale times file */
    const char *format;       /* in the table, of one seed */
    double (*of)(const comparison *c, const attempt *a); /* NaN: none */
} metric;
extern const metric metrics[];
extern const size_t metric_count;

statistic metric_over(const comparison *c, const contender *r, const metric *m);
statistic predicted_over(const comparison *c, const contender *r, size_t link);
/* Of break-evens in Mbit/s, which mean something where *kind says so. count 0: there are none. */
statistic pays_over(const comparison *c, const contender *r, size_t link, pay_kind *kind);

size_t contender_done(const comparison *c, const contender *r);
/* The run's plan on such links. */
exchange_case contender_exchange(const comparison *c, const contender *r, const link_profile *link);
/* Seconds of a gradient, and of encoding and combining, as they are predicted with. */
void contender_costs(const comparison *c, const contender *r, size_t seed, double *gradient,
                     double *coding);
/* "done", or how the first one that is not done ended. */
void contender_outcome(const comparison *c, const contender *r, char *out, size_t bytes);
bool contender_skipped(const contender *r);
/* Of one that is skipped "-". */
const char *contender_algorithm(const contender *r);
void contender_compressor(const contender *r, char *out, size_t bytes);
/* "1 2 5" */
void contender_seeds(const comparison *c, const contender *r, char *out, size_t bytes);
/* "ring 8", "listed edges 16" */
void contender_topology(const contender *r, char *out, size_t bytes);

#endif
