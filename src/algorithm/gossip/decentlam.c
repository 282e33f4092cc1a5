/* decentlam.c - DecentLaM: Yuan, Chen, Huang, Zhang, Pan, Xu, Yin, "DecentLaM: Decentralized
 * Momentum SGD for Large-Batch Deep Training", ICCV 2021, Algorithm 2.
 *
 *   z_i = (x_i - s_i)/gamma with s_i = sum_j W_ij (x_j - gamma g_j(x_j));
 *   m_i <- beta m_i + z_i;  x_i <- x_i - gamma m_i = s_i - gamma beta m_i(before);    m_i(0) = 0
 *
 * W symmetric, doubly stochastic. Heavy ball on z, the gradient of what D-PSGD descends: so it ends
 * where D-PSGD without momentum does. With a learning rate of 0 only models are averaged. Memory
 * beside x and g: m and the x before, two vectors. Wire: 32 d bits to each out-neighbour. Neither
 * the text nor a program of the authors was found; tests hold that the fixed point is D-PSGD's
 * without momentum, and that beta = 0 is D-PSGD.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

enum { MOMENTUM = 0, BEFORE = 1 };

static void defaults(sl_algorithm_config *c) {
    sl_default(&c->beta, 0.9);
}

static void adapt(sl_state *s, size_t from, size_t count) {
    sl_copy(s, s->extra[BEFORE] + from, s->x + from, count);
    sl_local_step(s, from, count);
}

/* Here x is s:  before <- x - s;  x <- s - gamma beta m;  m <- beta m + before/gamma */
static void accelerate(sl_state *s, size_t from, size_t count) {
    const float rate = s->sgd.learning_rate, beta = (float)s->config->beta;
    float *x = s->x + from, *m = s->extra[MOMENTUM] + from, *moved = s->extra[BEFORE] + from;
    if (rate == 0)
        return;
    sl_subtract(s, moved, moved, x, count);
    s->vec->combine(x, (const float *const[]){x, m}, (const float[]){1, -rate * beta}, 2, count);
    s->vec->combine(m, (const float *const[]){m, moved}, (const float[]){beta, 1 / rate}, 2, count);
}

static const sl_stage stages[] = {
    {.in_place = true, .prepare = adapt, .vector = sl_publish_model, .combine = sl_mix_models}};

static const sl_key keys[] = {
    {SL_ROW_BETA, .help = "momentum of its own, auto = 0.9"},
    SL_KEYS_END,
};

const sl_algorithm sl_decentlam = {
    .name = "decentlam",
    .matrix = SL_MATRIX_SYMMETRIC,
    .keys = keys,
    .defaults = defaults,
    .extra_vectors = 2,
    .stages = stages,
    .stage_count = 1,
    .settle = accelerate,
};
