/* sgp.c - stochastic gradient push: Assran, Loizou, Ballas, Rabbat, "Stochastic Gradient Push for
 * Distributed Deep Learning", ICML 2019.
 *
 *   n_i <- n_i - gamma mom(g_i(z_i));  n_i <- sum_j P_ij n_j;  w_i <- sum_j P_ij w_j;  z_i = n_i /
 *                                      w_i
 *
 * P column-stochastic, positive diagonal, strongly connected over time: directed and time-varying
 * graphs. n_i(0) = x_i(0), w_i(0) = 1. The model is the de-biased z, where the gradient is taken;
 * weight decay acts on n. Memory beside z, g, momentum: the numerator n (one vector) and w. Wire:
 * 32 d bits to each out-neighbour, and w in every frame's header. sum_i n_i and sum_i w_i are
 * conserved.
 *
 * overlap_rounds tau > 0 (the same paper's tau-overlap, with a fixed delay): what is sent in round
 * t is added at the end of round t + tau, n_i <- P_ii n_i + sum_j P_ij n_j(t - tau), w alike. What
 * is on its way belongs to the sums: sum_i w_i + w on its way = n. It hides tau rounds of network
 * behind gradients, and needs no log: the delay is fixed, so the bits are.
 */
#include <stdio.h>

#include "algorithm/algorithms.h"
#include "algorithm/gossip/push_sum.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

void sl_push_start(sl_state *s, size_t dimension) {
    s->vec->combine(s->extra[SL_NUMERATOR], (const float *const[]){s->x}, (const float[]){1}, 1,
                    dimension);
}

void sl_push_adapt(sl_state *s, size_t from, size_t count) {
    float *n = s->extra[SL_NUMERATOR] + from;
    sl_descend(s, n, n, from, count);
}

const float *sl_push_numerator(const sl_state *s) {
    return s->extra[SL_NUMERATOR];
}

static void divide(sl_state *s, double weight, size_t from, size_t count) {
    s->vec->combine(s->x + from, (const float *const[]){s->extra[SL_NUMERATOR] + from},
                    (const float[]){(float)(1 / weight)}, 1, count);
}

void sl_push_combine(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    double weight = (double)mix->self_weight * s->push_sum_weight;
    for (size_t j = 0; j < mix->k; j++)
        weight += (double)mix->parts[j].weight * mix->parts[j].scalar;
    s->next_push_sum_weight = weight;
    sl_mix_into(s, s->extra[SL_NUMERATOR] + from, s->extra[SL_NUMERATOR] + from, mix,
                mix->self_weight, 1, 0, count);
    if (!s->point_stands)
        divide(s, weight, from, count);
}

static void adapt_alone(sl_state *s, size_t from, size_t count) {
    sl_push_adapt(s, from, count);
    divide(s, s->push_sum_weight, from, count);
}

/* Parts of a vector whose exchange was cut have different weights: n_i <- z_i, w_i <- 1. */
void sl_push_finish(sl_state *s) {
    if (s->alone)
        sl_push_start(s, s->dimension);
    s->push_sum_weight = s->alone ? 1 : s->next_push_sum_weight;
}

static const sl_stage stages[] = {{.in_place = true,
                                   .prepare = sl_push_adapt,
                                   .vector = sl_push_numerator,
                                   .combine = sl_push_combine}};

static bool overlaps(const sl_algorithm_config *config) {
    return config->overlap_rounds > 0;
}

static uint64_t sent_before(const sl_state *s, uint64_t t, uint64_t newest) {
    const uint64_t tau = s->config->overlap_rounds, wanted = t > tau ? t - tau : 0;
    return newest >= wanted ? wanted : SL_VERSION_NONE;
}

static int check_rows(const sl_algorithm_config *config, const sl_topology *topology,
                      sl_error *error) {
    (void)config;
    return !sl_topology_is_endless(topology)
               ? 0
               : sl_fail(
                     error, SL_EINVAL,
                     "algorithm.overlap_rounds: needs a topology that repeats, and this one has "
                     "other edges in every round for ever; take a fixed one, or a schedule");
}

static void waits_for(const sl_algorithm_config *config, char *out, size_t bytes) {
    snprintf(out, bytes, "what was sent %llu rounds before; so old is what it adds",
             (unsigned long long)config->overlap_rounds);
}

static const sl_async_rule late = {
    .pattern = SL_PATTERN_VERSIONS, .version = sent_before, .waits_for = waits_for};
static const sl_key overlap_key[] = {
    {SL_OWN_U64(overlap_rounds, 0, 1000), .is_later = true, .fallback = "0",
     .help = "rounds after which what was sent is added; 0 = none: all go in rounds"},
    SL_KEYS_END,
};

#define PUSH                                                                                       \
    .name = "sgp", .matrix = SL_MATRIX_COLUMN, .lazy_below = sl_lazy_adapting,                     \
    .keys = overlap_key, .takes_momentum = true, .takes_local_steps = true, .extra_vectors = 1,    \
    .stages = stages, .stage_count = 1, .start = sl_push_start, .local = adapt_alone,              \
    .finish = sl_push_finish

const sl_algorithm sl_sgp_overlapping = {
    PUSH, .when = overlaps, .stable_by = SL_STABLE_UNKNOWN, .check = check_rows, .async = &late,
};

const sl_algorithm sl_sgp = {PUSH};
