/* comparison.h - what came out of each variant of `starling compare`, over its seeds. */
#ifndef COMPARISON_H
#define COMPARISON_H

#include "compare/results.h"
#include "compare/statistic.h"
#include "compare/study.h"
#include "compare/time_model.h"

typedef struct contender {
    const variant *variant;
    const task_facts *facts;
    json_t *tree; /* the experiment's keys and values; owned */
    bool planned; /* else plan and shapes mean nothing: not loaded, or its model is not known */
    sl_plan plan;
    sl_shapes shapes;
    attempt *attempts;       /* (comparison.seeds) owned */
    size_t held_out;         /* equal: scored on the same data, so that losses can be compared */
    size_t work;             /* equal: the same gradients with one seed, so that times can be */
    size_t learner;          /* equal: trained, with one seed, on what one learner gives */
    struct contender *rival; /* the first uncompressed one of the same work on the same topology;
                                NULL: none */
} contender;

typedef struct comparison {
    const study *study;
    contender *items; /* (count) owned */
    size_t count;
    size_t *order;   /* (count) of items: those that share a learner follow each other; owned */
    size_t seeds;    /* attempts of each */
    size_t held_out; /* how many sets of held-out data */
    size_t learners; /* how many there are of them */
    double *targets; /* (held_out) losses, given or derived from what is done; NaN: none; owned */
    bool shows_pay[LINKS_MAX]; /* has a column: one for all links where they agree, else one for
                                  each latency */
    size_t pay_columns;
} comparison;

/* A contender for each variant, with an attempt for each seed. To be closed in any case. */
int comparison_open(comparison *c, const study *s, sl_error *error);
/* Once the study's facts are known: reads what the run folders hold, and what follows: targets,
 * predicted times, break-evens. */
int comparison_load(comparison *c, sl_error *error);
void comparison_close(comparison *c);

/* ---- of a contender ---- */

bool contender_skipped(const contender *r);
size_t contender_done(const comparison *c, const contender *r);
/* The run's plan on such links. */
exchange_case contender_exchange(const contender *r, const link_profile *link);
/* Seconds of a gradient, and of encoding and combining, as they are predicted with. */
void contender_costs(const comparison *c, const contender *r, size_t seed, double *gradient,
                     double *coding);
/* "done", or how the first one that is not done ended. */
void contender_outcome(const comparison *c, const contender *r, char *out, size_t bytes);
/* Of one that has milestones: the last. */
const milestone *attempt_end(const attempt *a);
/* The first recorded round at which the averaged model is as good as the target; NULL: none. */
const milestone *attempt_reached(const comparison *c, const contender *r, const attempt *a);
/* "diverged in round 17" */
void attempt_outcome(const attempt *a, char *out, size_t bytes);
const char *contender_algorithm(const contender *r);
void contender_compressor(const contender *r, char *out, size_t bytes);
/* "1 2 5" */
void contender_seeds(const comparison *c, const contender *r, char *out, size_t bytes);
/* "ring 8", "listed edges 16" */
void contender_topology(const contender *r, char *out, size_t bytes);
/* Of a swept key; NULL: it is not swept there. Borrowed. */
json_t *contender_swept(const contender *r, const char *key);

/* ---- what tables and files show ---- */

typedef struct metric {
    const char *above, *head; /* of the table's column */
    const char *key;          /* of the file's */
    int rank;                 /* of the table's column, as text_table has it */
    number_style style;
    double (*of)(const comparison *c, const contender *r, const attempt *a); /* NaN: none */
} metric;
extern const metric metrics[];
extern const size_t metric_count;
/* NULL: there is none. */
const metric *metric_find(const char *key);
/* Is more of it better? */
bool metric_rises(const metric *m);

/* One number of one run that is done; NaN: it has none. */
typedef double (*attempt_number)(const comparison *c, const contender *r, const attempt *a,
                                 size_t link);
/* Predicted seconds to the end, and to the target. */
double predicted_s(const comparison *c, const contender *r, const attempt *a, size_t link);
double target_s(const comparison *c, const contender *r, const attempt *a, size_t link);

statistic metric_over(const comparison *c, const contender *r, const metric *m);
statistic links_over(const comparison *c, const contender *r, attempt_number of, size_t link);
/* The differences of r from `other`, seed by seed. */
statistic metric_apart(const comparison *c, const contender *r, const contender *other,
                       const metric *m);
/* Of break-evens in Mbit/s, which mean something where *kind says so. count 0: there are none. */
statistic pays_over(const comparison *c, const contender *r, size_t link, pay_kind *kind);

#endif
