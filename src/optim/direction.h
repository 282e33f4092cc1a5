/* direction.h - what an optimizer makes of a gradient before SGD's step, in place: it is clipped,
 * and it becomes the direction of AdamW, LARS or LAMB.
 *
 * So algorithms know SGD's step only (sl_sgd), and every one that has mom(g) has these optimizers.
 * Norms need the whole gradient; so this is a pass of its own, which plain SGD does not pay.
 *
 *   clip:   g <- g min(1, clip_norm / |g|_2), of this node's gradient, in every algorithm
 *   adamw:  d = mhat / (sqrt(vhat) + epsilon) + lambda x    (Loshchilov, Hutter 2019, Algorithm 2)
 *   lars:   d = r (g + lambda x), r = trust |x| / (|g| + lambda |x|)   (You, Gitman, Ginsburg 2017)
 *   lamb:   d = r u, u = AdamW's d, r = trust |x| / |u|     (You et al. 2020, Algorithm 2)
 *
 * r is one number for each tensor, and 1 where a norm is 0. lambda: weight_decay. Momentum
 * follows lars.
 */
#ifndef SL_DIRECTION_H
#define SL_DIRECTION_H

#include "starling/optimizer.h"

typedef struct sl_direction {
    const sl_optimizer_config *optimizer; /* borrowed, as all but m and v */
    const sl_vec_ops *vec;
    size_t dimension;
    const size_t *tensor_ends; /* (tensor_count) */
    size_t tensor_count;       /* 0: one tensor */
    float *m, *v;              /* (dimension) of adamw and lamb, else NULL */
    uint64_t steps;            /* directions so far */
} sl_direction;

/* The vectors that it keeps: 0 or 2. */
size_t sl_direction_vectors(const sl_optimizer_config *optimizer);
/* false: out of memory. All but m, v and steps is set. */
bool sl_direction_open(sl_direction *d);
void sl_direction_close(sl_direction *d);
/* Of a node's own gradient. */
void sl_direction_clip(const sl_direction *d, float *g);
/* Elements [from, end) of g become the direction at x. A gradient comes whole, or in ranges of
 * whole tensors, its last ones first. */
void sl_direction_take(sl_direction *d, float *g, const float *x, size_t from, size_t end);

#endif
