/* d_psgd.c - D-PSGD: Lian, Zhang, Zhang, Hsieh, Zhang, Liu, "Can Decentralized Algorithms
 * Outperform Centralized Algorithms?", NeurIPS 2017.
 *
 * gamma: learning rate; mom(g): the SGD direction with momentum and weight decay; W doubly
 * stochastic.
 *
 *   adapt-then-combine (Sayed's diffusion):  u_i = x_i - gamma mom(g_i(x_i));  x_i <- sum_j W_ij
 *                                            u_j
 *   combine-while-adapt (Algorithm 1):       x_i <- sum_j W_ij x_j - gamma mom(g_i(x_i)), gradient
 *                                            at the old x_i
 *
 * Wire: 32 d bits to each out-neighbour. Memory beside x, g, momentum: none for the first (u and
 * the sum live in x); for the second one accumulator, because the gradient still reads the old x
 * while the sum is formed. combine-while-adapt is stable only if gamma L < 1 + lambda_min(W).
 *
 * staleness s > 0 (after Hop: Luo, Lin, Zhuo, Qian, ASPLOS 2019): u_i^t is published at once, and
 * x_i
 * <- W_ii u_i^t + sum_j W_ij u_j^c with the newest c <= t of each neighbour that has come, as soon
 * as all are at least t - s; u^0 is the first model. The mean is not conserved while lags differ;
 * fixed points are D-PSGD's. Memory: s + 2 messages of a neighbour.
 *
 * A driver whose user takes the steps lends a vector v of its own (sl_node_lend): x_i <- sum_j W_ij
 * v_j, and no gradient. v is what both forms would send: an adapted u, or an old x.
 */
#include <stdio.h>

#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

enum { ACCUMULATOR = 0 };

static bool lends(const sl_state *s) {
    return s->lends;
}

static const float *old_model(const sl_state *s) {
    return s->lent != NULL ? s->lent : s->x;
}

static void combine_aside(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_mix_into(s, s->extra[ACCUMULATOR] + from, old_model(s) + from, mix, mix->self_weight, 1, 0,
                count);
}

static void adapt_sum(sl_state *s, size_t from, size_t count) {
    if (s->lent == NULL)
        sl_descend(s, s->extra[ACCUMULATOR] + from, s->x + from, from, count);
}

static void take_sum(sl_state *s) {
    sl_swap(&s->x, &s->extra[ACCUMULATOR]);
    s->lent = NULL;
}

/* Masked, it is another row. */
static bool is_whole(const sl_algorithm_config *config) {
    return config->compressor.kind != SL_COMPRESSOR_SHARED_MASK;
}

static const sl_stage adapted[] = {{.in_place = true,
                                    .prepare = sl_local_step,
                                    .vector = sl_publish_model,
                                    .combine = sl_mix_models}};

static bool is_stale(const sl_algorithm_config *config) {
    return config->staleness > 0 && is_whole(config);
}

static uint64_t newest_version(const sl_state *s, uint64_t t, uint64_t newest) {
    const bool old = newest < t && t - newest > s->config->staleness;
    return old ? SL_VERSION_NONE : newest < t ? newest : t;
}

int sl_check_not_stale(const sl_algorithm_config *config, const sl_topology *topology,
                       sl_error *error) {
    (void)topology;
    return config->staleness == 0
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "algorithm.staleness: it is for the form adapt-then-combine with the "
                         "compressor identity; take these, or set it to 0");
}

static int check_edges(const sl_algorithm_config *config, const sl_topology *topology,
                       sl_error *error) {
    (void)config;
    return sl_topology_period(topology) == 1
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "algorithm.staleness: it needs the same edges in every round, but this "
                         "topology is a schedule of %u; take a fixed one, or sgp with "
                         "overlap_rounds",
                         sl_topology_period(topology));
}

static void waits_for(const sl_algorithm_config *config, char *out, size_t bytes) {
    const unsigned long long s = config->staleness;
    if (config->staleness == SL_COUNT_AUTO)
        snprintf(out, bytes, "nobody; neighbours' models may be of any age");
    else
        snprintf(
            out, bytes,
            "neighbours that are more than %llu rounds behind; their models may be %llu rounds "
            "old",
            s, s);
}

static const sl_async_rule stale = {.pattern = SL_PATTERN_VERSIONS,
                                    .version = newest_version,
                                    .sends_first = true,
                                    .waits_for = waits_for};
const char *const sl_unbounded[] = {"unbounded", NULL};
static const sl_key staleness_key[] = {
    {SL_ROW_STALENESS,
     .help = "rounds that a neighbour's model may be older than the own, 0 = all go in rounds"},
    SL_KEYS_END,
};

#define ADAPT_THEN_COMBINE                                                                         \
    .name = "d-psgd", .variant = SL_VARIANT_ADAPT_THEN_COMBINE, .matrix = SL_MATRIX_DOUBLY,        \
    .lazy_below = sl_lazy_adapting, .keys = staleness_key, .takes_momentum = true,                 \
    .takes_local_steps = true, .stages = adapted, .stage_count = 1, .local = sl_local_step

const sl_algorithm sl_d_psgd_stale = {
    ADAPT_THEN_COMBINE,   .when = is_stale, .stable_by = SL_STABLE_UNKNOWN,
    .check = check_edges, .async = &stale,
};

const sl_algorithm sl_d_psgd_adapt_then_combine = {
    ADAPT_THEN_COMBINE,
    .when = is_whole,
    .works_on_ranges = true,
};

static const sl_stage as_it_was[] = {{.vector = old_model, .combine = combine_aside}};

const sl_algorithm sl_d_psgd_combine_while_adapt = {
    .name = "d-psgd",
    .variant = SL_VARIANT_COMBINE_WHILE_ADAPT,
    .matrix = SL_MATRIX_DOUBLY,
    .check = sl_check_not_stale,
    .lazy_below = sl_lazy_while_adapting,
    .takes_momentum = true,
    .takes_local_steps = true,
    .publishes_old_model = true,
    .waits = lends,
    .extra_vectors = 1,
    .stages = as_it_was,
    .stage_count = 1,
    .local = sl_local_step,
    .settle = adapt_sum,
    .finish = take_sum,
};
