/* qgm.c - quasi-global momentum: Lin, Karimireddy, Stich, Jaggi, "Quasi-Global Momentum:
 * Accelerating Decentralized Deep Learning on Heterogeneous Data", ICML 2021, Algorithm 1.
 *
 *   L_i = beta m_i + g_i(x_i);  u_i = x_i - gamma L_i   (nesterov: x_i - gamma (g_i + beta L_i))
 *   x+_i = sum_j W_ij u_j;      m_i <- mu m_i + (1 - mu) (x_i - x+_i)/gamma;    m_i(0) = 0
 *
 * W doubly stochastic. The buffer follows what all nodes moved, not what the own data want, so
 * that it does not hold uneven models apart. With a learning rate of 0 only models are averaged.
 * Memory beside x and g: m and the x before, two vectors. Wire: 32 d bits to each out-neighbour.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

enum { MOMENTUM = 0, BEFORE = 1 };

static void defaults(sl_algorithm_config *c) {
    sl_default(&c->beta, 0.9);
    sl_default(&c->mu, c->beta);
}

/* The buffer follows the turns of eigenvalues that are more negative, at any step. */
static double lazy_below(const sl_algorithm_config *c, double momentum) {
    const double beta = c->nesterov ? c->beta * c->beta : c->beta;
    (void)momentum;
    return -(1 + c->mu) / (1 + c->mu + 2 * (1 - c->mu) * beta);
}

static void adapt(sl_state *s, size_t from, size_t count) {
    const float rate = s->sgd.learning_rate, beta = (float)s->config->beta;
    const bool ahead = s->config->nesterov;
    float *x = s->x + from;
    if (rate == 0)
        return;
    sl_copy(s, s->extra[BEFORE] + from, x, count);
    sl_regularize(s, x, from, count);
    s->vec->combine(
        x, (const float *const[]){x, s->g + from, s->extra[MOMENTUM] + from},
        (const float[]){1, -rate * (ahead ? 1 + beta : 1), -rate * (ahead ? beta * beta : beta)}, 3,
        count);
}

/* before <- x - x+;  m <- mu m + (1 - mu)/gamma before */
static void follow(sl_state *s, size_t from, size_t count) {
    const float rate = s->sgd.learning_rate, mu = (float)s->config->mu;
    float *m = s->extra[MOMENTUM] + from, *moved = s->extra[BEFORE] + from;
    if (rate == 0)
        return;
    sl_subtract(s, moved, moved, s->x + from, count);
    s->vec->combine(m, (const float *const[]){m, moved}, (const float[]){mu, (1 - mu) / rate}, 2,
                    count);
}

static const sl_stage stages[] = {
    {.in_place = true, .prepare = adapt, .vector = sl_publish_model, .combine = sl_mix_models}};

static const sl_key keys[] = {
    {SL_ROW_BETA, .help = "momentum of its own, auto = 0.9"},
    {SL_OWN_PARAMETER(mu, 0, SL_BELOW_1),
     .help = "factor of the momentum buffer from round to round; auto = beta"},
    {SL_OWN_BOOL(nesterov), .fallback = "false", .help = "look ahead along the momentum"},
    SL_KEYS_END,
};

const sl_algorithm sl_qgm = {
    .name = "qgm",
    .matrix = SL_MATRIX_DOUBLY,
    .lazy_below = lazy_below,
    .keys = keys,
    .defaults = defaults,
    .extra_vectors = 2,
    .stages = stages,
    .stage_count = 1,
    .settle = follow,
};
