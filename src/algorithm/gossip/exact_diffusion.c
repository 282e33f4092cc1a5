/* exact_diffusion.c - exact diffusion, also D^2: Yuan, Ying, Zhao, Sayed, "Exact Diffusion for
 * Distributed Optimization and Learning", IEEE Trans. Signal Process. 67 (2019); Tang, Lian, Yan,
 * Zhang, Liu, ICML 2018.
 *
 *   psi_i = x_i - gamma g_i(x_i);  phi_i = psi_i + x_i - psi_i(before);  x_i = sum_j A_ij phi_j;
 *                                  psi_i(before the first) = x_i(0)
 *
 * A is (I + W)/2, or W (matrix "plain"), which is D^2: x_{t+1} = W (2 x_t - x_{t-1} - gamma (g_t -
 * g_{t-1})). W symmetric, doubly stochastic; A's eigenvalues above -1/3. What is kept is the
 * correction y_i = x_i - psi_i(before), 0 at first, and x_i = phi_i + D_i, y_i += D_i with D_i =
 * sum_{j != i} A_ij (phi_j - phi_i): the same numbers, but x - psi would add up the rounding of x
 * round after round. Memory beside x and g: y, one vector. Wire: 32 d bits to each out-neighbour.
 */
#include <math.h>

#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

enum { CORRECTION = 0 };

/* x <- phi = x - gamma g + y */
static void correct(sl_state *s, size_t from, size_t count) {
    bool moves = s->sgd.learning_rate != 0;
    if (moves)
        sl_regularize(s, s->x, from, count);
    s->vec->combine(s->x + from,
                    (const float *const[]){s->x + from, s->extra[CORRECTION] + from, s->g + from},
                    (const float[]){1, 1, -s->sgd.learning_rate}, moves ? 3 : 2, count);
}

static void mix(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    const float share = s->config->matrix == SL_MIXING_PLAIN ? 1 : 0.5f; /* A_ij / W_ij */
    float given = 0; /* the weights as they are used, so that equal models stay as they are */
    for (size_t j = 0; j < mix->k; j++)
        given += share * mix->parts[j].weight;
    for (size_t at = 0; at < count; at += s->block) {
        size_t n = count - at < s->block ? count - at : s->block;
        float *x = s->x + from + at, *y = s->extra[CORRECTION] + from + at;
        sl_mix_into(s, s->scratch, x, mix, -given, share, at, n);
        s->vec->combine(x, (const float *const[]){x, s->scratch}, (const float[]){1, 1}, 2, n);
        s->vec->combine(y, (const float *const[]){y, s->scratch}, (const float[]){1, 1}, 2, n);
    }
}

static void forget(sl_state *s, size_t dimension) {
    s->vec->fill(s->extra[CORRECTION], 0, dimension);
}

static double lambda_min(const sl_algorithm_config *c) {
    return c->matrix == SL_MIXING_PLAIN ? -1.0 / 3 : -INFINITY;
}

static const sl_stage stages[] = {
    {.in_place = true, .prepare = correct, .vector = sl_publish_model, .combine = mix}};

static const char *const matrices[] = {"lazy", "plain", NULL};
static const sl_key keys[] = {
    {SL_OWN_CHOICE(matrix, matrices), .fallback = "\"lazy\"",
     .help = "mix with (I + W)/2 (lazy) or with W (plain), which is D2"},
    SL_KEYS_END,
};

const sl_algorithm sl_exact_diffusion = {
    .name = "exact-diffusion",
    .matrix = SL_MATRIX_SYMMETRIC,
    .keeps_self = true,
    .keys = keys,
    .lambda_min = lambda_min,
    .extra_vectors = 1,
    .stages = stages,
    .stage_count = 1,
    .restart = forget,
};
