/* ef21.c - EF21: Richtarik, Sokolov, Fatkhullin, "EF21: A New, Simpler, Theoretically Better, and
 * Practically Faster Error Feedback", NeurIPS 2021, Algorithm 1.
 *
 *   q_i = C(g_i - h_i);  h_i <- h_i + q_i;  h <- h + (1/n) sum_i q_i;  x <- x - gamma mom(h)
 *
 * h_i(0) = 0; h, the mean of the h_i, is kept by servers. C contractive. The optimum is reached
 * with full gradients and a constant gamma; C = identity is C-SGD. Momentum and weight decay come
 * after averaging. Memory beside x, g, momentum: h_i and h. Wire: one compressed message up, the
 * dense h down.
 */
#include "algorithm/centralized/known.h"

static const sl_stage stages[] = {SL_KNOWN_STAGES(NULL, sl_known_take_own)};

const sl_algorithm sl_ef21 = {
    SL_KNOWN_FAMILY,
    .name = "ef21",
    .compressor = SL_TAKES_CONTRACTIVE,
    .extra_vectors = SL_KNOWN_VECTORS,
    .stages = stages,
};
