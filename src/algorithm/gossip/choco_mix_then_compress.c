/* choco_mix_then_compress.c - the second form of CHOCO-SGD (choco_sgd.c), whose exchange runs
 * beside a gradient.
 *
 *   mix-then-compress:  x_i <- x_i - gamma mom(g_i) + gamma_c sum_j W_ij (xhat_j - xhat_i), the old
 *                       xhat;  q_i = C(x_i - xhat_i);  xhat_j += q_j
 *
 * The message of round t goes out while the gradient of round t + 1 is computed, so its exchange
 * belongs to round t + 1 here, and a run of T rounds has T - 1. With local steps it goes out beside
 * the next exchange's gradient, and tells them too.
 */
#include "algorithm/gossip/choco.h"

static bool has_difference(const sl_state *s) {
    return s->exchange > 1 && sl_choco_differs(s);
}

static bool had_moved(sl_state *s) {
    return sl_choco_has_moved(s, s->round - 1, &s->last_sgd);
}

static void adapt_and_mix(sl_state *s, size_t from, size_t count) {
    sl_local_step(s, from, count);
    sl_choco_mix(s, from, count);
}

static const sl_stage stages[] = {
    SL_CHOCO_DIFFERENCE(has_difference, had_moved, NULL),
    SL_CHOCO_MODEL(sl_choco_take_model),
};

static int check(const sl_algorithm_config *config, const sl_topology *topology, sl_error *error) {
    (void)topology;
    return config->budget.round_ms == 0
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "algorithm.budget: is for the form compress-then-mix; take it, or leave "
                         "the budget out");
}

const sl_algorithm sl_choco_mix_then_compress = {
    SL_CHOCO_FAMILY,
    .variant = SL_VARIANT_MIX_THEN_COMPRESS,
    .publishes_old_model = true,
    .begins_silent = true,
    .check = check,
    .stages = stages,
    .settle = adapt_and_mix,
};
