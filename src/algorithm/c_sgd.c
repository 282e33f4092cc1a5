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
 * 1) bits out and in at the server, 32 d at the others. Averaged buffers cost as much again.
 */
#include "algorithm/algorithms.h"
#include "algorithm/own_keys.h"

static const sl_stage gradients[] = {
    SL_AVERAGE_STAGES(gradient, NULL, NULL, false),
};
enum { GRADIENT_STAGES = sizeof gradients / sizeof *gradients };

/* Compressed, delayed, local after some rounds, or with an adaptive period, it is another row. */
static bool is_plain(const sl_algorithm_config *config) {
    return config->compressor.kind == SL_COMPRESSOR_IDENTITY && config->delay == 0;
}

static bool is_local(const sl_algorithm_config *config) {
    return config->compressor.kind == SL_COMPRESSOR_IDENTITY && config->switch_round == 0 &&
           config->period_schedule == SL_PERIOD_CONSTANT;
}

static bool is_not_compressed(const sl_algorithm_config *config) {
    return config->compressor.kind == SL_COMPRESSOR_IDENTITY;
}

const char *const sl_buffer_rules[] = {"local", "average", "reset", NULL};
const char *const sl_period_schedules[] = {"constant",      "adaptive", "adaptive-halving",
                                           "adaptive-rate", "growing",  NULL};
const sl_key sl_local_keys[] = {
    SL_ROWS_LOCAL,
    SL_KEYS_END,
};

const sl_algorithm sl_all_reduce = {
    .name = "all-reduce",
    .when = is_plain,
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
    .keeps_gradient = true,
    .route = SL_ROUTE_SERVER,
    .takes_momentum = true,
    .averages_gradient = true,
    .stages = gradients,
    .stage_count = GRADIENT_STAGES,
    .settle = sl_local_step,
};

const sl_stage sl_local_stages[SL_LOCAL_STAGES] = {
    SL_AVERAGE_STAGES(model, NULL, sl_local_step, false),
    SL_AVERAGE_STAGES(momentum, sl_averages_buffers, NULL, false),
};

int sl_check_no_switch(const sl_algorithm_config *c, const sl_topology *topology, sl_error *error) {
    (void)topology;
    return c->switch_round == 0
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "algorithm.switch_round: %llu, but a period that changes begins with "
                         "round 1; set it to 0, or period_schedule to \"constant\"",
                         (unsigned long long)c->switch_round);
}

void sl_local_defaults(sl_algorithm_config *c) {
    sl_default_period(c, 10);
}

const sl_algorithm sl_local_sgd = {
    .name = "local-sgd",
    .when = is_local,
    .is_periodic = true,
    .route = SL_ROUTE_ALL_REDUCE,
    .takes_momentum = true,
    .keys = sl_local_keys,
    .defaults = sl_local_defaults,
    .stages = sl_local_stages,
    .stage_count = SL_LOCAL_STAGES,
    .local = sl_local_step,
    .settle = sl_reset_buffers,
};
