/* gradient_tracking.c - gradient tracking, in two forms. gamma: learning rate; W doubly stochastic.
 *
 *   adapt-then-combine:   x_i+ = sum_j W_ij (x_j - gamma q_j)
 *   combine-while-adapt:  x_i+ = sum_j W_ij x_j - gamma q_i
 *   both:                 q_i+ = sum_j W_ij q_j + g_i(x_i+) - g_i(x_i);  q_i(0) = g_i(x_i(0))
 *
 * adapt-then-combine: Koloskova, Lin, Stich, "An Improved Analysis of Gradient Tracking for
 * Decentralized Machine Learning", NeurIPS 2021, Algorithm 1. combine-while-adapt (DIGing): Nedic,
 * Olshevsky, Shi, "Achieving Geometric Convergence for Distributed Optimization over Time-Varying
 * Graphs", SIAM J. Optim. 27 (2017). A negative eigenvalue of W limits the steps of the latter
 * only.
 *
 * q tracks the mean gradient, so that uneven data do not hold the models apart. A round takes its
 * gradient first, then sends both vectors. Memory beside x and g: q and the last gradient, two
 * vectors. Wire: 64 d bits to each out-neighbour.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"

enum { TRACKER = 0, LAST_GRADIENT = 1 };

static void track(sl_state *s, size_t from, size_t count) {
    float *q = s->extra[TRACKER] + from;
    sl_regularize(s, s->x, from, count);
    s->vec->combine(q, (const float *const[]){q, s->g + from, s->extra[LAST_GRADIENT] + from},
                    (const float[]){1, 1, -1}, 3, count);
}

static void descend(sl_state *s, size_t from, size_t count) {
    s->vec->combine(s->x + from, (const float *const[]){s->x + from, s->extra[TRACKER] + from},
                    (const float[]){1, -s->sgd.learning_rate}, 2, count);
}

static void track_and_descend(sl_state *s, size_t from, size_t count) {
    track(s, from, count);
    descend(s, from, count);
}

static void mix_and_descend(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_mix_models(s, mix, from, count);
    descend(s, from, count);
}

static const float *tracker(const sl_state *s) {
    return s->extra[TRACKER];
}

static void mix_trackers(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_mix_into(s, s->extra[TRACKER] + from, s->extra[TRACKER] + from, mix, mix->self_weight, 1, 0,
                count);
}

static void keep_gradient(sl_state *s) {
    sl_swap(&s->g, &s->extra[LAST_GRADIENT]);
}

/* The next round adds its gradient: q = g. */
static void forget(sl_state *s, size_t dimension) {
    s->vec->fill(s->extra[TRACKER], 0, dimension);
    s->vec->fill(s->extra[LAST_GRADIENT], 0, dimension);
}

/* Of adapt-then-combine: gamma L < (1 - l^2)/|l| is less than 1 below. */
static double lazy_below(const sl_algorithm_config *config, double momentum) {
    (void)config, (void)momentum;
    return (1 - sqrt(5)) / 2;
}

#define TRACKER_STAGE                                                                              \
    { .in_place = true, .vector = tracker, .combine = mix_trackers }

static const sl_stage adapted[] = {{.in_place = true,
                                    .prepare = track_and_descend,
                                    .vector = sl_publish_model,
                                    .combine = sl_mix_models},
                                   TRACKER_STAGE};

static const sl_stage as_it_was[] = {
    {.in_place = true, .prepare = track, .vector = sl_publish_model, .combine = mix_and_descend},
    TRACKER_STAGE};

#define FORM(form, its_stages, lazy)                                                               \
    {                                                                                              \
        .name = "gradient-tracking", .variant = form, .matrix = SL_MATRIX_DOUBLY,                  \
        .lazy_below = lazy, .keeps_gradient = true, .extra_vectors = 2, .stages = its_stages,      \
        .stage_count = 2, .restart = forget, .finish = keep_gradient                               \
    }

const sl_algorithm sl_tracking_adapt_then_combine =
                       FORM(SL_VARIANT_ADAPT_THEN_COMBINE, adapted, lazy_below),
                   sl_tracking_combine_while_adapt =
                       FORM(SL_VARIANT_COMBINE_WHILE_ADAPT, as_it_was, sl_lazy_while_adapting);
