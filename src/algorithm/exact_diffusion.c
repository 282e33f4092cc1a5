/* exact_diffusion.c - exact diffusion, also D^2: Yuan, Ying, Zhao, Sayed, "Exact Diffusion for Distributed Optimization and Learning", IEEE Trans.
 * Signal Process. 67 (2019); Tang, Lian, Yan, Zhang, Liu, ICML 2018.
 *
 *   psi_i = x_i - gamma g_i(x_i);  phi_i = psi_i + x_i - psi_i(before);  x_i = sum_j [(I + W)/2]_ij phi_j;  psi_i(before the first) = x_i(0)
 *
 * W symmetric, doubly stochastic. Memory beside x and g: psi, one vector. Wire: 32 d bits to each out-neighbour.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"

enum { PSI = 0 };

static void start(sl_state *s, size_t dimension) {
    s->vec->combine(s->extra[PSI], (const float *const[]){s->x}, (const float[]){1}, 1, dimension);
}

/* psi <- x - gamma g, x <- phi */
static void correct(sl_state *s, size_t from, size_t count) {
    float *psi = s->extra[PSI];
    bool moves = s->sgd.learning_rate != 0;
    if (moves)
        sl_regularize(s, s->x, from, count);
    for (size_t at = from; at < from + count; at += SL_BLOCK) {
        size_t n = from + count - at < SL_BLOCK ? from + count - at : SL_BLOCK;
        s->vec->combine(s->scratch, (const float *const[]){s->x + at, s->g + at}, (const float[]){1, -s->sgd.learning_rate}, moves ? 2 : 1, n);
        s->vec->combine(s->x + at, (const float *const[]){s->scratch, s->x + at, psi + at}, (const float[]){1, 1, -1}, 3, n);
        s->vec->combine(psi + at, (const float *const[]){s->scratch}, (const float[]){1}, 1, n);
    }
}

static void mix_half(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_mix_into(s, s->x, s->x, mix, (1 + mix->self_weight) / 2, 0.5f, from, count);
}

static const sl_stage stages[] = {{.in_place = true, .prepare = correct, .vector = sl_publish_model, .combine = mix_half}};

const sl_algorithm sl_exact_diffusion = {
    .name = "exact-diffusion",
    .matrix = SL_MATRIX_SYMMETRIC,
    .extra_vectors = 1,
    .stages = stages,
    .stage_count = 1,
    .start = start,
};
