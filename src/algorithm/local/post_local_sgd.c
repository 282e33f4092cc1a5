/* post_local_sgd.c - post-local SGD: Lin, Stich, Patel, Jaggi, "Don't Use Large Mini-Batches, Use
 * Local SGD", ICLR 2020, section 3.
 *
 *   rounds up to the switch:  x <- x - gamma mom((1/n) sum_i g_i(x))
 *   after it:                 x_i <- x_i - gamma mom(g_i); every `period` rounds, counted from the
 *                             switch, x_i <- (1/n) sum_j x_j
 *
 * The switch: algorithm.switch_round, usually where the learning rate drops first. Buffers of
 * momentum go on; later algorithm.buffers says what becomes of them. Memory beside x, g, momentum:
 * none. Wire: all-reduce's 64 d (n - 1)/n bits in each round, and then local SGD's.
 */
#include "algorithm/algorithms.h"
#include "algorithm/own_keys.h"

static bool switches(const sl_algorithm_config *config) {
    return config->switch_round > 0;
}

static bool exchanges(const sl_algorithm_config *config, uint64_t round) {
    return round <= config->switch_round || (round - config->switch_round) % config->period == 0;
}

static bool is_before(const sl_state *s) {
    return s->round <= s->config->switch_round;
}

static bool is_after(const sl_state *s) {
    return !is_before(s);
}

static bool averages_buffers(const sl_state *s) {
    return is_after(s) && sl_averages_buffers(s);
}

static void settle(sl_state *s, size_t from, size_t count) {
    if (is_before(s))
        sl_local_step(s, from, count);
    else
        sl_reset_buffers(s, from, count);
}

static const sl_stage stages[] = {
    SL_AVERAGE_STAGES(gradient, is_before, NULL, false),
    SL_AVERAGE_STAGES(model, is_after, sl_local_step, false),
    SL_AVERAGE_STAGES(momentum, averages_buffers, NULL, false),
};

const sl_algorithm sl_post_local_sgd = {
    .name = "local-sgd",
    .when = switches,
    .is_periodic = true,
    .exchanges = exchanges,
    .route = SL_ROUTE_ALL_REDUCE,
    .takes_momentum = true,
    .takes_sgd_only = true, /* another optimizer's direction is the mean's before, a node's after */
    .keeps_gradient = true,
    .keys = sl_local_keys,
    .defaults = sl_local_defaults,
    .stages = stages,
    .stage_count = sizeof stages / sizeof *stages,
    .local = sl_local_step,
    .settle = settle,
};
