/* lag_wk.c - LAG-WK: Chen, Giannakis, Sun, Yin, "LAG: Lazily Aggregated Gradient for
 * Communication-Efficient Distributed Learning", NeurIPS 2018, the rule of the workers.
 *
 *   if gamma^2 ||g_i - h_i||^2 > sum_{k=1..D} xi ||x_{t+1-k} - x_{t-k}||^2:
 *       q_i = g_i - h_i;  h_i <- h_i + q_i
 *   else q_i = 0, a silent message
 *   h <- h + (1/n) sum_i q_i;  x <- x - gamma mom(h)
 *
 * gamma is that of the mean loss: the paper's, of the sum, is gamma/n, and its alpha^2 M^2 is
 * gamma^2. h_i(0) = 0; h, the mean of the h_i, is kept by servers. xi, of all k, is 1/D if not
 * given; xi = 0 is C-SGD. Momentum and weight decay come after averaging. Memory beside x, g,
 * momentum: h_i, h and the model before; and D numbers. Wire: one vector up or a header, the dense
 * h down.
 */
#include "algorithm/centralized/known.h"
#include "algorithm/own_keys.h"

static void defaults(sl_algorithm_config *c) {
    sl_default(&c->xi, 1.0 / c->depth);
}

static size_t depth(const sl_algorithm_config *c) {
    return c->depth;
}

static bool is_worth_it(sl_state *s) {
    const double gamma = s->sgd.learning_rate,
                 unknown = s->vec->distance_squared(s->g, s->extra[SL_KNOWN], s->dimension);
    return !(gamma * gamma * unknown <= sl_known_moved(s));
}

static const sl_stage stages[] = {SL_KNOWN_STAGES(is_worth_it, sl_known_take_own)};

static const sl_key keys[] = {
    {SL_ROW_DEPTH},
    {SL_ROW_XI,
     .help = "weight of each remembered step, larger: silent more often, auto = 1/depth"},
    SL_KEYS_END,
};

const sl_algorithm sl_lag_wk = {
    SL_KNOWN_FAMILY,
    .name = "lag-wk",
    .keys = keys,
    .defaults = defaults,
    .extra_vectors = SL_KNOWN_LAZY_VECTORS,
    .own_numbers = depth,
    .stages = stages,
    .start = sl_known_begin,
};
