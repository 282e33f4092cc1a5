/* c_sgd.c - the centralized baselines that send vectors as they are.
 *
 *   all-reduce:        x <- x - gamma mom((1/n) sum_i g_i(x)), the sum by a form of all-reduce
 *                      (node/form.h)
 *   parameter-server:  the same, the sum at one rank or in shards over all ranks
 *   local-sgd:         x <- x - gamma mom(g_i); every `period` rounds x <- (1/n) sum_j x_j, by a
 *                      form too (Stich 2019); momentum stays local
 *
 * Momentum and weight decay come after averaging in the first two. Memory beside x, g, momentum:
 * none. Wire, each node of a ring: 64 d (n - 1)/n bits, the least; one server: 32 d (n -
 * 1) bits out and in at the server, 32 d at the others.
 */
#include "algorithm/algorithms.h"

static const sl_stage gradients[] = {
    {.plain = true, .vector = sl_publish_gradient, .combine = sl_add_gradients},
    {.plain = true,
     .gather = true,
     .prepare = sl_average_gradient,
     .vector = sl_publish_gradient,
     .combine = sl_copy_gradient},
};

/* Compressed or delayed, it is another row. */
static bool is_plain(const sl_algorithm_config *config) {
    return config->compressor.kind == SL_COMPRESSOR_IDENTITY && config->delay == 0;
}

static bool is_not_compressed(const sl_algorithm_config *config) {
    return config->compressor.kind == SL_COMPRESSOR_IDENTITY;
}

const sl_algorithm sl_all_reduce = {
    .name = "all-reduce",
    .when = is_plain,
    .keeps_gradient = true,
    .route = SL_ROUTE_ALL_REDUCE,
    .takes_momentum = true,
    .averages_gradient = true,
    .stages = gradients,
    .stage_count = 2,
    .settle = sl_local_step,
};

const sl_algorithm sl_parameter_server = {
    .name = "parameter-server",
    .when = is_not_compressed,
    .keeps_gradient = true,
    .route = SL_ROUTE_SERVER,
    .takes_momentum = true,
    .averages_gradient = true,
    .stages = gradients,
    .stage_count = 2,
    .settle = sl_local_step,
};

const sl_stage sl_average_models[SL_AVERAGE_STAGES] = {
    {.plain = true, .prepare = sl_local_step, .vector = sl_publish_model, .combine = sl_add_models},
    {.plain = true,
     .gather = true,
     .prepare = sl_average_model,
     .vector = sl_publish_model,
     .combine = sl_copy_model},
};

static void defaults(sl_algorithm_config *c) {
    sl_default_period(c, 10);
}

const sl_algorithm sl_local_sgd = {
    .name = "local-sgd",
    .when = is_not_compressed,
    .is_periodic = true,
    .route = SL_ROUTE_ALL_REDUCE,
    .takes_momentum = true,
    .defaults = defaults,
    .stages = sl_average_models,
    .stage_count = SL_AVERAGE_STAGES,
    .local = sl_local_step,
};
