/* slowmo_gossip.c - SlowMo on D-PSGD and on SGP; see slowmo.c.
 *
 * Each round has an exchange. The base's own changes no mean, so that the `period`-th is the exact
 * average in its place. Of SGP that is the mean of the numerators, which it conserves; n_i is a
 * then, and w_i 1.
 */
#include "algorithm/algorithms.h"
#include "algorithm/gossip/push_sum.h"
#include "algorithm/local/slowmo.h"
#include "algorithm/mix.h"

static bool is_on_d_psgd(const sl_algorithm_config *c) {
    return c->base == SL_BASE_D_PSGD;
}

static bool is_on_sgp(const sl_algorithm_config *c) {
    return c->base == SL_BASE_SGP;
}

static bool averages(const sl_state *s) {
    return s->exchange % s->config->period == 0;
}

static bool gossips(const sl_state *s) {
    return !averages(s);
}

static bool averages_buffers(const sl_state *s) {
    return averages(s) && sl_averages_buffers(s);
}

static void step_if_average(sl_state *s, size_t from, size_t count) {
    if (averages(s))
        sl_slowmo_step(s, from, count);
}

static void start_on_sgp(sl_state *s, size_t dimension) {
    sl_push_start(s, dimension);
    sl_slowmo_start(s, dimension);
}

/* The numerator is what is averaged; the model has been used. */
static void adapt_into_model(sl_state *s, size_t from, size_t count) {
    sl_push_adapt(s, from, count);
    sl_copy(s, s->x + from, sl_push_numerator(s) + from, count);
}

static void step_on_sgp(sl_state *s, size_t from, size_t count) {
    if (gossips(s))
        return;
    sl_slowmo_step(s, from, count);
    sl_copy(s, s->extra[SL_NUMERATOR] + from, s->x + from, count);
    s->next_push_sum_weight = 1;
}

static const sl_stage on_d_psgd[] = {
    {.in_place = true,
     .wanted = gossips,
     .prepare = sl_local_step,
     .vector = sl_publish_model,
     .combine = sl_mix_models},
    SL_AVERAGE_STAGES(model, averages, sl_local_step, false),
    SL_AVERAGE_STAGES(momentum, averages_buffers, NULL, false),
};
static const sl_stage on_sgp[] = {
    {.in_place = true,
     .wanted = gossips,
     .prepare = sl_push_adapt,
     .vector = sl_push_numerator,
     .combine = sl_push_combine},
    SL_AVERAGE_STAGES(model, averages, adapt_into_model, false),
    SL_AVERAGE_STAGES(momentum, averages_buffers, NULL, false),
};

const sl_algorithm sl_slowmo_on_d_psgd = {
    .name = "slowmo",
    .when = is_on_d_psgd,
    .route = SL_ROUTE_BOTH,
    .matrix = SL_MATRIX_DOUBLY,
    .lazy_below = sl_lazy_adapting,
    .takes_momentum = true,
    .keys = sl_slowmo_keys,
    .defaults = sl_slowmo_defaults,
    .extra_vectors = SL_SLOWMO_VECTORS,
    .stages = on_d_psgd,
    .stage_count = sizeof on_d_psgd / sizeof *on_d_psgd,
    .start = sl_slowmo_start,
    .settle = step_if_average,
};
const sl_algorithm sl_slowmo_on_sgp = {
    .name = "slowmo",
    .when = is_on_sgp,
    .route = SL_ROUTE_BOTH,
    .matrix = SL_MATRIX_COLUMN,
    .lazy_below = sl_lazy_adapting,
    .takes_momentum = true,
    .keys = sl_slowmo_keys,
    .defaults = sl_slowmo_defaults,
    .extra_vectors = SL_SLOWMO_VECTORS + 1,
    .stages = on_sgp,
    .stage_count = sizeof on_sgp / sizeof *on_sgp,
    .start = start_on_sgp,
    .settle = step_on_sgp,
    .finish = sl_push_finish,
};
