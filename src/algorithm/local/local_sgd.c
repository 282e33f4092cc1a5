/* local_sgd.c - local SGD: Stich, "Local SGD Converges Fast and Communicates Little", ICLR 2019.
 *
 *   x <- x - gamma mom(g_i);  every `period` rounds  x <- (1/n) sum_j x_j, by a form of all-reduce
 *
 * Momentum stays local, unless `buffers` says else. Memory beside x, g, momentum: none. Wire, each
 * node of a ring: 64 d (n - 1)/n bits in each average, the least; averaged buffers cost as much
 * again.
 */
#include "algorithm/algorithms.h"
#include "algorithm/own_keys.h"

/* Compressed, local after some rounds, or with a period that changes, it is another row. */
static bool is_local(const sl_algorithm_config *config) {
    return config->compressor.kind == SL_COMPRESSOR_IDENTITY && config->switch_round == 0 &&
           config->period_schedule == SL_PERIOD_CONSTANT;
}

const char *const sl_buffer_rules[] = {"local", "average", "reset", NULL};
const char *const sl_period_schedules[] = {"constant",      "adaptive", "adaptive-halving",
                                           "adaptive-rate", "growing",  NULL};
const sl_key sl_local_keys[] = {
    SL_ROWS_LOCAL,
    SL_KEYS_END,
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
