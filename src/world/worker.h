/* worker.h - the thread on which an agent evaluates and computes gradients. Meanwhile its loop
 * moves data.
 *
 * The two threads share nothing but the vectors that a job hands over and its result hands back;
 * where these are on a device, events order the one thread's operations behind the other's at both
 * points.
 */
#ifndef SL_WORKER_H
#define SL_WORKER_H

#include <stdbool.h>

#include "starling/observer.h"
#include "starling/task.h"
#include "task/host_task.h"

typedef struct sl_worker sl_worker;

/* What to do, in this order. */
typedef struct sl_job {
    float *initial;     /* x0 out; NULL: it is there */
    const float *x;     /* the model; not written while the job runs */
    const float *point; /* where the gradient is taken; likewise */
    float *g;           /* gradient out */
    double push_sum_weight;
    bool record;     /* report `report` */
    bool evaluate;   /* and evaluate x for it */
    bool parameters; /* report x as the parameters after parameters_round */
    bool compute;    /* gradient for compute_round */
    sl_record report;
    uint64_t parameters_round, compute_round;
} sl_job;

typedef struct sl_job_result {
    int code; /* 0 or what the observer returned */
    bool initialized, computed;
    double loss, gradient_seconds;
} sl_job_result;

/* vec: where the vectors of its jobs are. */
int sl_worker_open(sl_worker **out, const sl_vec_ops *vec, const sl_task *task,
                   const sl_observer *observer, uint32_t rank, sl_error *error);
/* Becomes readable when a result is there. */
int sl_worker_descriptor(const sl_worker *worker);
/* One job at a time. */
void sl_worker_give(sl_worker *worker, const sl_job *job);
bool sl_worker_busy(const sl_worker *worker);
/* Takes the result if there is one. */
bool sl_worker_take(sl_worker *worker, sl_job_result *out);
/* Waits for the job under way, at most patience_s. False: it is still running; then the thread and
 * what it uses are left behind. */
bool sl_worker_close(sl_worker **worker, double patience_s);

#endif
