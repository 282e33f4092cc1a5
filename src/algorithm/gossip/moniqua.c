/* moniqua.c - Lu, De Sa, "Moniqua: Modulo Quantized Communication in Decentralized SGD", ICML 2020,
 * Algorithm 1, with rounding to nearest.
 *
 *   u_i = x_i - gamma mom(g_i(x_i));  Q_i = what is left of u_i by a modulus B, on a grid of 2^bits
 *                                          points, sent (compress/quantization/modular.h)
 *   r_j = mod_B(Q_j - u_i), which is x^_j - u_i where u_j and u_i lie within theta; r_i = mod_B(Q_i
 *                                          - u_i)
 *   x_i = u_i + sum_j W_ij (r_j - r_i)
 *
 * W doubly stochastic; it may change from round to round, as nothing is kept from one to the next.
 * The mean is exact as long as no two neighbours' elements lie more than theta = algorithm.theta
 * apart. Whether they do cannot be seen for certain: a difference beyond 0.45 B is counted. Memory
 * beside x, g, momentum: one decoded message; the gradient's place takes the sum. Wire: bits d to
 * each out-neighbour.
 */
#include "algorithm/algorithms.h"
#include "algorithm/own_keys.h"
#include "base/kernels.h"
#include "compress/quantization/modular.h"

enum { DECODED = 0 };

static const double near = 0.45; /* of B, whose half is what a difference is never above */

/* sum += weight * mod_B(q - u); returns how many of these lie beyond `limit`. */
FOR_EACH_CPU(size_t, add_rest,
             (const sl_modulus *m, double limit, float weight, const float *q, const float *u,
              float *sum, size_t n),
             (m, limit, weight, q, u, sum, n)) {
    size_t far = 0;
    for (size_t i = 0; i < n; i++) {
        const double rest = sl_modulus_rest(m, (double)q[i] - (double)u[i]);
        sum[i] += weight * (float)rest;
        far += rest > limit || rest < -limit;
    }
    return far;
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    const sl_modulus m = sl_modulus_of(&s->config->compressor);
    float *u = s->x + from, *sum = s->g + from, *q = s->extra[DECODED] + from, given = 0;
    s->vec->fill(sum, 0, count);
    for (size_t j = 0; j < mix->k; j++) {
        s->vec->fill(q, 0, count);
        sl_part_add(&mix->parts[j], 1, s->extra[DECODED]);
        s->doubtful += add_rest(&m, near * m.b, mix->parts[j].weight, q, u, sum, count);
        given += mix->parts[j].weight;
    }
    sl_modulus_round(&m, u, count, q);
    add_rest(&m, m.b, -given, q, u, sum, count);
    s->vec->combine(u, (const float *const[]){u, sum}, (const float[]){1, 1}, 2, count);
}

static void defaults(sl_algorithm_config *c) {
    sl_default_count(&c->bits, 8);
}

static void tune(sl_algorithm_config *c) {
    c->compressor.bits = (uint32_t)c->bits;
    c->compressor.theta = c->theta;
}

static const sl_stage stages[] = {
    {.prepare = sl_local_step, .vector = sl_publish_model, .combine = take_theirs}};

static const sl_key keys[] = {
    {SL_ROW_BITS, .help = "bits of an element, auto = 8"},
    {SL_ROW_THETA},
    SL_KEYS_END,
};

const sl_algorithm sl_moniqua = {
    .name = "moniqua",
    .matrix = SL_MATRIX_DOUBLY,
    .lazy_below = sl_lazy_adapting,
    .host_only = true,
    .compressor = SL_TAKES_ANY,
    .own_compressor = SL_COMPRESSOR_MODULAR,
    .keys = keys,
    .defaults = defaults,
    .tune = tune,
    .takes_momentum = true,
    .takes_local_steps = true,
    .keeps_gradient = true,
    .extra_vectors = 1,
    .stages = stages,
    .stage_count = 1,
    .local = sl_local_step,
};
