/* choco_sgd.c - CHOCO-SGD: Koloskova, Stich, Jaggi, "Decentralized Stochastic Optimization and
 * Gossip Algorithms with Compressed Communication", ICML 2019, Algorithm 2; Koloskova, Lin, Stich,
 * Jaggi, ICLR 2020.
 *
 *   compress-then-mix:  x_i <- x_i - gamma mom(g_i);  q_i = C(x_i - xhat_i);  xhat_j += q_j;  x_i
 *                       += gamma_c sum_j W_ij (xhat_j - xhat_i)
 *
 * W symmetric, doubly stochastic and, unless each neighbour's replica is kept, fixed; C
 * contractive, biased is fine; gamma_c the consensus step. Memory beside x, g, momentum: xhat_i and
 * s_i = sum_{j != i} W_ij xhat_j, two vectors whatever the degree; or xhat_i and each xhat_j. The
 * difference is never stored: the compressor reads it block by block. Wire: one compressed message
 * a round, in the first one of a later view the model itself.
 */
#include "algorithm/gossip/choco.h"

static bool has_moved(sl_state *s) {
    return sl_choco_has_moved(s, s->round, &s->sgd);
}

static void adapt_and_take(sl_state *s, size_t from, size_t count) {
    sl_local_step(s, from, count);
    sl_choco_take_model(s, from, count);
}

static const sl_stage stages[] = {
    SL_CHOCO_DIFFERENCE(sl_choco_differs, has_moved, sl_local_step),
    SL_CHOCO_MODEL(adapt_and_take),
};

const sl_algorithm sl_choco_compress_then_mix = {
    SL_CHOCO_FAMILY,
    .variant = SL_VARIANT_COMPRESS_THEN_MIX,
    .stages = stages,
    .settle = sl_choco_mix,
};
