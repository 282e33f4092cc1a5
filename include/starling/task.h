/* task.h - what a node trains: the seam between Starling's drivers and anything that has parameters
 * and a gradient.
 *
 * The built-in learner is a task (sl_learner_task). A training loop of your own fills in the struct
 * and hands it to an agent or the simulator. Calls come from one thread at a time.
 */
#ifndef STARLING_TASK_H
#define STARLING_TASK_H

#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/error.h"
#include "starling/types.h"
#include "starling/vec.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_evaluation {
    double loss;     /* held-out mean loss; quadratic: (1/n) sum_i f_i(x) */
    double accuracy; /* held-out, in [0, 1]; NaN where it means nothing */
} sl_evaluation;

/* `attach`, `ready`, `waits`, `lend`, `vouch`, `samples`, `members`, `watch`, `mixed`,
 * `tensor_rows`, and `tensor_ends` with tensor_count 0, may be NULL; the other hooks may not. */
typedef struct sl_task {
    void *context;    /* borrowed; first argument of every call */
    size_t dimension; /* parameters, d; at least 1 */
    uint64_t rounds;  /* of the run; at least 1 */
    /* A gradient is said to take so long: an agent waits until it has, a simulator does not. 0: it
     * takes what it takes. */
    double gradient_seconds;
    /* (tensor_count) where each tensor of the vector ends, rising, the last at dimension; NULL: the
     * vector is one tensor. */
    const size_t *tensor_ends;
    size_t tensor_count;
    const size_t *tensor_rows; /* (tensor_count) of each as a matrix, which its size is a multiple
                                  of; NULL: 1, they are vectors */
    uint64_t layout_hash;      /* equal: vectors of two agents mean the same */
    const char *layout;  /* what it is the hash of: a line for each tensor, with name and shape, so
                            that a refusal can name the first one that differs; may be NULL */
    uint64_t data_hash;  /* equal: trained on the same data set */
    const char *warning; /* what is wrong with its data; "" or NULL: nothing */
    /* Rounds of a pass over the data; 0: there is none. */
    uint64_t epoch_rounds;
    /* Writes x0 of `rank` into x (d), on the host. */
    void (*initial)(void *context, uint32_t rank, float *x);
    /* Returns the loss of rank's batch in `round` (from 1) at x, and writes its gradient into g
     * (d). x and g are on the host, or where attach has put them. */
    double (*gradient)(void *context, uint32_t rank, uint64_t round, const float *x, float *g);
    /* Scores x (d), which is always on the host. */
    sl_evaluation (*evaluate)(void *context, const float *x);
    /* From here on `gradient` gets vectors of `vec`, which outlives the task. A driver calls it
     * once or several times, before its first gradient. NULL: the task works on the host, and
     * vectors of a device are copied for it. */
    int (*attach)(void *context, const sl_vec_ops *vec, sl_error *error);
    /* Before the gradient: x (d) of rank's `round` is there, and stays until the gradient returns.
     * The simulator calls it for all ranks before the round's first gradient, where they share
     * rounds. NULL: not asked. */
    void (*ready)(void *context, uint32_t rank, uint64_t round, const float *x,
                  double push_sum_weight);
    /* Rank's gradient would be there now: does it wait for what other ranks do? The simulator of
     * nodes at their own times asks, and asks again after other gradients. If nobody else can go
     * on, it takes the gradient as it is. NULL: it never waits. */
    bool (*waits)(void *context, uint32_t rank);
    /* After the gradient: the vector (d) that rank publishes and mixes in this round in place of
     * its model; there is no gradient step then. Where gradients are; must not change until the
     * round is over. NULL returned: the model, as usual. For d-psgd only, which then does not
     * publish before its gradient. NULL: nothing is ever lent. */
    const float *(*lend)(void *context, uint32_t rank);
    /* Is this piece (count) of the vector that is lent as it was then? An agent asks before each
     * send of it, on its own thread. 0, or the error that ends the agent's run: nothing of the
     * piece is sent. For vectors on the host. NULL: not asked. */
    int (*vouch)(void *context, const float *piece, size_t count, sl_error *error);
    /* Training samples of rank, above 0: its weight where an algorithm goes by them. NULL: all have
     * as many. */
    double (*samples)(void *context, uint32_t rank);
    /* A view begins for rank, as member `place` of `count`; rank computes no gradient now. NULL:
     * not asked. */
    int (*members)(void *context, uint32_t rank, uint32_t place, uint32_t count, sl_error *error);
    /* From here on `gradient` tells this one, which is borrowed. With transport.overlap, else NULL:
     * a gradient is there when it is whole. */
    void (*watch)(void *context, const sl_progress *progress);
    /* Elements [from, from + count) of the model x are as rank's round leaves them, before the
     * round is over: x is not written there until its next gradient. Where they come one by one,
     * which is gossip with transport.overlap. On the driver's own thread. NULL: not asked. */
    void (*mixed)(void *context, uint32_t rank, const float *x, size_t from, size_t count);
} sl_task;

/* What the task's vectors are made of; borrowed. */
SL_API sl_shapes sl_task_shapes(const sl_task *task);

/* Is the task complete? SL_EINVAL names the field. Agent and simulator check before they start. */
SL_API int sl_task_check(const sl_task *task, sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
