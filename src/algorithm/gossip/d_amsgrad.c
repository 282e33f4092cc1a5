/* d_amsgrad.c - decentralized AMSGrad: Chen, Karimi, Zhao, Li, "On the Convergence of Decentralized
 * Adaptive Gradient Methods", 2021, Algorithm 3.
 *
 *   m_i <- beta1 m_i + (1 - beta1) g_i;  v_i <- beta2 v_i + (1 - beta2) g_i^2
 *   top_i+ = max(top_i, v_i);  u_i <- sum_j W_ij (u_j + top_j+ - top_j)
 *   y_i = sum_j W_ij x_j;  x_i <- y_i - gamma (m_i / sqrt(max(u_i, epsilon)) + lambda y_i)
 *
 * W doubly stochastic; top(0) = u(0) = 0; lambda: optimizer.weight_decay. Moments have their bias.
 * u tracks the mean of all top_i, so that uneven data do not give the nodes other steps, as d-adam
 * does. Memory beside x and g: m, v, top and u, four vectors. Wire: 64 d bits to each
 * out-neighbour. Neither the text nor a program of the authors was found for the order of the
 * lines: what leaves has this round's maximum, so that sum u is sum top at all times.
 */
#include <math.h>

#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

enum { FIRST = 0, SECOND = 1, TOP = 2, TRACKER = 3 };

static void track(sl_state *s, size_t from, size_t count) {
    const sl_adam a = sl_adam_of(s, INFINITY);
    const float *g = s->g + from;
    float *m = s->extra[FIRST] + from, *v = s->extra[SECOND] + from, *top = s->extra[TOP] + from,
          *u = s->extra[TRACKER] + from;
    if (s->sgd.learning_rate == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        m[i] = a.beta1 * m[i] + a.m_new * g[i];
        v[i] = a.beta2 * v[i] + a.v_new * (g[i] * g[i]);
        const float higher = v[i] > top[i] ? v[i] : top[i];
        u[i] += higher - top[i];
        top[i] = higher;
    }
}

static const float *tracker(const sl_state *s) {
    return s->extra[TRACKER];
}

static void mix_trackers(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    float *u = s->extra[TRACKER] + from;
    sl_mix_into(s, u, u, mix, mix->self_weight, 1, 0, count);
}

static void step(sl_state *s, size_t from, size_t count) {
    const float rate = s->sgd.learning_rate, decay = s->sgd.weight_decay,
                least = (float)s->config->epsilon;
    const float *m = s->extra[FIRST] + from, *u = s->extra[TRACKER] + from;
    float *x = s->x + from;
    for (size_t i = 0; i < count && rate != 0; i++)
        x[i] -= rate * (m[i] / sqrtf(u[i] > least ? u[i] : least) + decay * x[i]);
}

/* The sum of all u is that of all top. */
static void begin_again(sl_state *s, size_t dimension) {
    sl_copy(s, s->extra[TRACKER], s->extra[TOP], dimension);
}

static const sl_stage stages[] = {
    {.in_place = true, .prepare = track, .vector = sl_publish_model, .combine = sl_mix_models},
    {.in_place = true, .vector = tracker, .combine = mix_trackers},
};

static const sl_key keys[] = {
    {SL_ROW_BETA1},
    {SL_ROW_BETA2},
    {SL_ROW_EPSILON, .help = "least value of the second moment that all agree on"},
    SL_KEYS_END,
};

const sl_algorithm sl_d_amsgrad = {
    .name = "d-amsgrad",
    .matrix = SL_MATRIX_DOUBLY,
    .host_only = true,
    .keys = keys,
    .extra_vectors = 4,
    .stages = stages,
    .stage_count = 2,
    .restart = begin_again,
    .settle = step,
};
