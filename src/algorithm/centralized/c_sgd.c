/* c_sgd.c - the centralized baselines that send gradients as they are.
 *
 *   all-reduce:        x <- x - gamma mom((1/n) sum_i g_i(x)), the sum by a form of all-reduce
 *                      (route/form.h)
 *   parameter-server:  the same, the sum at one rank or in shards over all ranks
 *
 * Momentum and weight decay come after averaging. Memory beside x, g, momentum: none. Wire, each
 * node of a ring: 64 d (n - 1)/n bits, the least; one server: 32 d (n - 1) bits out and in at the
 * server, 32 d at the others.
 */
#include "algorithm/algorithms.h"

static const sl_stage gradients[] = {
    SL_AVERAGE_STAGES(gradient, NULL, NULL, false),
};
enum { GRADIENT_STAGES = sizeof gradients / sizeof *gradients };

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
    .works_on_ranges = true,
    .keeps_gradient = true,
    .route = SL_ROUTE_ALL_REDUCE,
    .takes_momentum = true,
    .averages_gradient = true,
    .stages = gradients,
    .stage_count = GRADIENT_STAGES,
    .settle = sl_local_step,
};

const sl_algorithm sl_parameter_server = {
    .name = "parameter-server",
    .when = is_not_compressed,
    .works_on_ranges = true,
    .keeps_gradient = true,
    .route = SL_ROUTE_SERVER,
    .takes_momentum = true,
    .averages_gradient = true,
    .stages = gradients,
    .stage_count = GRADIENT_STAGES,
    .settle = sl_local_step,
};
