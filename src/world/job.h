/* job.h - what a worker does for its agent between two rounds. */
#ifndef SL_JOB_H
#define SL_JOB_H

#include <stdbool.h>

#include "starling/observer.h"
#include "starling/ranges.h"
#include "starling/task.h"
#include "task/host_task.h"

/* What to do, in this order. */
typedef struct sl_job {
    float *initial;     /* x0 out; NULL: it is there */
    const float *x;     /* the model; not written while the job runs */
    const float *point; /* where the gradient is taken; likewise */
    float *g;           /* gradient out */
    double push_sum_weight;
    const char *aside; /* report that the others go on without it, and why; NULL: they do not */
    bool returns;      /* report that it takes part again, from compute_round on */
    bool record;       /* report `report` */
    bool evaluate;     /* and evaluate x for it */
    bool parameters;   /* report x as the parameters after parameters_round */
    bool compute;      /* gradient for compute_round */
    sl_record report;
    uint64_t parameters_round, compute_round;
} sl_job;

typedef struct sl_job_result {
    int code; /* 0 or what the observer returned */
    bool initialized, computed;
    bool evaluated; /* the model on held-out data: */
    sl_evaluation evaluation;
    size_t from; /* computed from this element on: 0, or the job goes on */
    double loss, gradient_seconds;
} sl_job_result;

/* What jobs are done with. It must stay where it is while it is open. */
typedef struct sl_job_means {
    sl_task task;
    sl_host_task host;
    sl_observer observer;
    uint32_t rank;
    const sl_ranges *leaves;    /* NULL: nobody hears how far gradients are */
    sl_progress watching, told; /* hears the task; hears it when a gradient is said to be so far */
    size_t border;              /* that was told of last; 0: none of this gradient */
    double began_s;             /* of the gradient under way */
} sl_job_means;

/* vec: where the vectors of its jobs are. told: hears when a gradient has come to a
 * border of `leaves`, which is borrowed; NULL: of no gradient. */
int sl_job_means_open(sl_job_means *out, const sl_vec_ops *vec, const sl_task *task,
                      const sl_observer *observer, uint32_t rank, const sl_ranges *leaves,
                      sl_progress told, sl_error *error);
void sl_job_means_close(sl_job_means *means);
sl_job_result sl_job_perform(sl_job_means *means, sl_job *job);

#endif
