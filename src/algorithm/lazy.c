/* lazy.c - below which eigenvalue of W an algorithm had better mix with (I + W)/2.
 *
 * An eigenvector of W with eigenvalue l < 0 turns its sign in each round, and a direction that does
 * not turn with it, of momentum or a gradient at the old model, then drives it on. Where the
 * curvature L is the same at all nodes, x and what the algorithm keeps follow a 2 x 2 matrix for
 * each eigenvalue, and Jury's conditions give the largest stable step. Its eigenvalue here is the
 * one at which half is left of the step of an exact average, 2 (1 + beta)/L with momentum beta.
 * With local steps the direction has turned by the next exchange.
 */
#include "algorithm/algorithms.h"

static bool is_each_round(const sl_algorithm_config *c) {
    return c->local_steps <= 1;
}

/* gamma L < (1 - beta)(1 + 1/|l|) */
double sl_lazy_adapting(const sl_algorithm_config *c, double momentum) {
    return is_each_round(c) && momentum > 0 ? -(1 - momentum) / (2 * momentum) : -INFINITY;
}

/* gamma L < (1 + beta)(1 + l) */
double sl_lazy_while_adapting(const sl_algorithm_config *c, double momentum) {
    (void)momentum;
    return is_each_round(c) ? 0 : -INFINITY;
}
