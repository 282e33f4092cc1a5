/* results.h - what a run folder says of its run. */
#ifndef RESULTS_H
#define RESULTS_H

#include "compare/break_even.h"
#include "compare/task_facts.h"
#include "run/forecast.h"

typedef enum ended {
    RUN_ABSENT, /* there is none */
    RUN_UNDER_WAY,
    RUN_KILLED, /* it was under way, and its process is gone */
    RUN_DONE,
    RUN_DIVERGED,
    RUN_STOPPED,
    RUN_FAILED
} ended;

/* A round that all nodes have recorded. */
typedef struct milestone {
    uint64_t round;
    double loss, accuracy; /* of the averaged model; NaN: not known, as everywhere here */
    double distance;
    double bytes_sent; /* by a node, mean over nodes */
    double virtual_s;  /* on the clock of a simulation whose nodes go at their own times */
} milestone;

/* One run: a variant with one seed. */
typedef struct attempt {
    uint64_t seed;
    ended ended;
    uint64_t diverged_in;        /* round; 0: it did not, or nobody knows */
    char why[SL_ERROR_TEXT_MAX]; /* it did not come to its end */
    milestone *milestones;       /* (milestone_count) owned */
    size_t milestone_count;
    /* Of one that is done, whose last milestone is its end: */
    sl_times times; /* mean over nodes */
    node_cost cost;
    double seconds;                /* that the run took */
    sl_timeline *timeline;         /* owned; NULL: no prediction */
    double *seconds_at[LINKS_MAX]; /* (milestone_count) predicted; owned; NULL: no prediction */
    double predicted_s[LINKS_MAX], target_s[LINKS_MAX];
    bool has_pay[LINKS_MAX]; /* compressed, and the rival is done with the same seed */
    break_even pays[LINKS_MAX];
} attempt;

/* How has the run in this folder ended? *why (SL_ERROR_TEXT_MAX bytes), *diverged_in: NULL where
 * they are not asked for. */
ended results_look(const char *folder, char *why, uint64_t *diverged_in);
/* Milestones, and of one that is done the rest. `facts`: of its task. To be closed in any case;
 * out->seed stays. */
int results_read(attempt *out, const char *folder, const task_facts *facts, sl_error *error);
/* The last recorded round; 0: none yet. */
uint64_t results_round(const char *folder);
void results_close(attempt *a);

#endif
