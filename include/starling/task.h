/* task.h - what a node trains: the seam between Starling's drivers and anything that has parameters
 * and a gradient.
 *
 * The built-in learner offers itself as a task (sl_learner_task); a user's own training loop fills
 * the struct in and hands it to an agent or the simulator. Calls come from one thread at a time.
 */
#ifndef STARLING_TASK_H
#define STARLING_TASK_H

#include <stddef.h>
#include <stdint.h>

#include "starling/error.h"
#include "starling/vec.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_evaluation {
    double loss;     /* held-out mean loss; quadratic: (1/n) sum_i f_i(x) */
    double accuracy; /* held-out, in [0, 1]; NaN where it means nothing */
} sl_evaluation;

typedef struct sl_task {
    void *context; /* borrowed; first argument of every call */
    size_t dimension;
    uint64_t rounds;
    const size_t *tensor_ends; /* (tensor_count) where each tensor of the vector ends, rising, the
                                  last at dimension; NULL: one tensor */
    size_t tensor_count;
    uint64_t layout_hash; /* equal: vectors of two agents mean the same */
    uint64_t data_hash;   /* equal: trained on the same data set */
    /* x0 of `rank` into x (dimension). */
    void (*initial)(void *context, uint32_t rank, float *x);
    /* Loss of rank's batch in `round` (from 1) at x; its gradient into g. On the host, or where
     * attach has put it. */
    double (*gradient)(void *context, uint32_t rank, uint64_t round, const float *x, float *g);
    sl_evaluation (*evaluate)(void *context, const float *x); /* x on the host, always */
    /* From here on `gradient` gets vectors of `vec`, which outlives the task. A driver asks once or
     * several times, before its first gradient. NULL: the task works on the host, and where vectors
     * are elsewhere they are copied to and fro. */
    int (*attach)(void *context, const sl_vec_ops *vec, sl_error *error);
} sl_task;

#ifdef __cplusplus
}
#endif
#endif
