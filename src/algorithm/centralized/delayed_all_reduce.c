/* delayed_all_reduce.c - PIPE-SGD: Li, Yu, Li, Avestimehr, Kim, Schwing, "Pipe-SGD: A Decentralized
 * Pipelined SGD Framework for Distributed Deep Net Training", NeurIPS 2018. all-reduce with
 * algorithm.delay D; the paper's K is D + 1.
 *
 *   x_{t+1} = x_t - gamma mom((1/n) sum_i g_i(x_{t-D})),  and x_{t+1} = x_t in the first D rounds
 *
 * The exchange of a gradient runs beside the one D rounds later. Stable for gamma L < 1 at D = 1.
 * Memory beside x, g, momentum: the last D gradients. Wire: that of all-reduce.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

static bool is_delayed(const sl_algorithm_config *config) {
    return config->delay > 0;
}

static size_t vectors(const sl_algorithm_config *config) {
    return (size_t)config->delay;
}

/* The gradient of D rounds ago, which this round's takes the place of. */
static float *oldest(const sl_state *s) {
    return s->extra[s->round % s->config->delay];
}

static const float *publish(const sl_state *s) {
    return oldest(s);
}

static void add(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_mix_into(s, oldest(s) + from, oldest(s) + from, mix, 1, 1, 0, count);
}

static void average(sl_state *s, size_t from, size_t count) {
    sl_divide_by_nodes(s, oldest(s) + from, count);
}

static void copy(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_copy(s, oldest(s) + from, mix->parts[0].payload.data, count);
}

static void settle(sl_state *s, size_t from, size_t count) {
    float *mean = oldest(s) + from;
    if (s->round > s->config->delay && s->sgd.learning_rate != 0)
        s->vec->sgd_step(s->x + from, s->x + from, mean, s->m ? s->m + from : NULL, &s->sgd, count);
    sl_copy(s, mean, s->g + from, count);
}

static const sl_stage stages[] = {
    {.plain = true, .vector = publish, .combine = add},
    {.plain = true, .gather = true, .prepare = average, .vector = publish, .combine = copy},
};

static const sl_key keys[] = {
    {SL_OWN_U64(delay, 0, SL_ALGORITHM_VECTORS_MAX), .fallback = "0",
     .help = "rounds that a mean gradient is late; its exchange is beside the next one"},
    SL_KEYS_END,
};

const sl_algorithm sl_all_reduce_delayed = {
    .name = "all-reduce",
    .when = is_delayed,
    .route = SL_ROUTE_ALL_REDUCE,
    .keys = keys,
    .takes_momentum = true,
    .takes_sgd_only = true,
    .keeps_gradient = true,
    .publishes_old_model = true,
    .vectors = vectors,
    .stages = stages,
    .stage_count = 2,
    .settle = settle,
};
