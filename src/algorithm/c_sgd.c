/* c_sgd.c - the centralized baselines that send vectors as they are.
 *
 *   all-reduce:        x <- x - gamma mom((1/n) sum_i g_i(x)), the sum by a ring: 2 (n - 1)
 *                      messages of d/n elements (Patarasuk, Yuan 2009)
 *   parameter-server:  the same, the sum at one rank or in shards over all ranks
 *   local-sgd:         x <- x - gamma mom(g_i); every `period` rounds x <- (1/n) sum_j x_j by a
 *                      ring (Stich 2019); momentum stays local
 *
 * Momentum and weight decay come after averaging in the first two. Memory beside x, g, momentum:
 * none. Wire, each node: 64 d (n - 1)/n bits, as little as any algorithm can; one server: 32 d (n -
 * 1) bits out and in at the server, 32 d at the others.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"

static void add_gradients(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_mix_into(s, s->g + from, s->g + from, mix, 1, 1, 0, count);
}

static void copy_into(const sl_state *s, float *v, const sl_mix *mix, size_t from, size_t count) {
    s->vec->combine(v + from, (const float *const[]){mix->parts[0].payload.data},
                    (const float[]){1}, 1, count);
}

static void copy_gradient(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    copy_into(s, s->g, mix, from, count);
}

/* A sum becomes the mean where it is, before everybody gets it. */
static void divide(const sl_state *s, float *v, size_t count) {
    s->vec->combine(v, (const float *const[]){v}, (const float[]){1 / (float)s->nodes}, 1, count);
}

static void average_gradient(sl_state *s, size_t from, size_t count) {
    divide(s, s->g + from, count);
}

static const sl_stage gradients[] = {
    {.plain = true, .vector = sl_publish_gradient, .combine = add_gradients},
    {.plain = true,
     .gather = true,
     .prepare = average_gradient,
     .vector = sl_publish_gradient,
     .combine = copy_gradient},
};

const sl_algorithm sl_all_reduce = {
    .name = "all-reduce",
    .keeps_gradient = true,
    .route = SL_ROUTE_RING,
    .takes_momentum = true,
    .stages = gradients,
    .stage_count = 2,
    .settle = sl_local_step,
};

const sl_algorithm sl_parameter_server = {
    .name = "parameter-server",
    .keeps_gradient = true,
    .route = SL_ROUTE_SERVER,
    .takes_momentum = true,
    .stages = gradients,
    .stage_count = 2,
    .settle = sl_local_step,
};

static void add_models(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_mix_into(s, s->x + from, s->x + from, mix, 1, 1, 0, count);
}

static void copy_model(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    copy_into(s, s->x, mix, from, count);
}

static void average_model(sl_state *s, size_t from, size_t count) {
    divide(s, s->x + from, count);
}

static const sl_stage models[] = {
    {.plain = true, .prepare = sl_local_step, .vector = sl_publish_model, .combine = add_models},
    {.plain = true,
     .gather = true,
     .prepare = average_model,
     .vector = sl_publish_model,
     .combine = copy_model},
};

const sl_algorithm sl_local_sgd = {
    .name = "local-sgd",
    .is_periodic = true,
    .route = SL_ROUTE_RING,
    .takes_momentum = true,
    .stages = models,
    .stage_count = 2,
    .local = sl_local_step,
};
