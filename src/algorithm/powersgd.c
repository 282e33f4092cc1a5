/* powersgd.c - PowerSGD: Vogels, Karimireddy, Jaggi, "PowerSGD: Practical Low-Rank Gradient
 * Compression for Distributed Optimization", NeurIPS 2019, Algorithms 1 and 2.
 *
 * Of each matrix of the model (a tensor's first axis x the rest):
 *
 *   M_i = g_i + e_i;  P = (1/n) sum_i M_i Q;  P^ = P, with orthonormal columns
 *   Q_i = M_i^T P^;  Q = (1/n) sum_i Q_i;  M^ = P^ Q^T;  x <- x - gamma mom(M^)
 *   e_i = M_i - P^ Q_i^T
 *
 * The paper's e_i = M_i - M^ gives the same x, but grows with each round on uneven data, and so do
 * its roundings. Q is kept from round to round; the first is normal, from the seed. A column of P
 * that depends on those before it is 0 in that round, as is Q's, which is drawn anew for the next.
 * A tensor that is shorter than its factors is among P, whole. Memory beside x, g, momentum: e,
 * and a vector for Q and P^. Wire: two all-reduces, 32 rank (rows + columns) bits of a matrix.
 */
#include "algorithm/algorithms.h"
#include "algorithm/factors.h"
#include "starling/rng.h"

enum { ERROR, FACTORS /* all Q, then all P^ */, VECTORS, WORDS_OF_A_NORMAL = 4 };

static size_t length_of_p(const sl_algorithm_config *config, const sl_shapes *shapes) {
    return sl_factor_lengths(shapes, config->rank).p;
}

static size_t length_of_q(const sl_algorithm_config *config, const sl_shapes *shapes) {
    return sl_factor_lengths(shapes, config->rank).q;
}

static float *all_p(const sl_state *s) {
    return s->extra[FACTORS] + length_of_q(s->config, &s->shapes);
}

/* Columns of Q that are 0: at the start all. */
static void draw(sl_state *s) {
    sl_matrix m = {0};
    for (size_t i = 0; sl_matrix_next(&m, &s->shapes, s->config->rank, i); i++)
        for (size_t at = m.q; at < m.q + m.q_length; at += m.columns) {
            float *column = s->extra[FACTORS] + at;
            sl_rng rng = sl_rng_open(s->seed, 0, s->exchange, SL_PURPOSE_FACTOR);
            rng.next = WORDS_OF_A_NORMAL * at;
            const bool empty = s->vec->norm2_squared(column, m.columns) <= 0;
            for (size_t k = 0; empty && k < m.columns; k++)
                column[k] = (float)sl_rng_normal(&rng);
        }
}

static void start(sl_state *s, size_t dimension) {
    (void)dimension;
    draw(s);
}

/* e holds M_i, and g all P. */
static void load(sl_state *s) {
    float *e = s->extra[ERROR];
    sl_matrix m = {0};
    s->vec->combine(e, (const float *const[]){e, s->g}, (const float[]){1, 1}, 2, s->dimension);
    for (size_t i = 0; sl_matrix_next(&m, &s->shapes, s->config->rank, i); i++)
        if (m.q_length > 0)
            sl_factor_left(s->g + m.p, &m, e + m.from, s->extra[FACTORS] + m.q);
        else
            sl_copy(s, s->g + m.p, e + m.from, m.p_length);
}

/* Then g holds all Q_i, and e what is left. */
static void project(sl_state *s) {
    float *p = all_p(s);
    sl_matrix m = {0};
    sl_copy(s, p, s->g, length_of_p(s->config, &s->shapes));
    for (size_t i = 0; sl_matrix_next(&m, &s->shapes, s->config->rank, i); i++)
        if (m.q_length > 0) {
            sl_factor_orthogonalize(p + m.p, &m);
            sl_factor_right(s->g + m.q, &m, s->extra[ERROR] + m.from, p + m.p);
            sl_factor_remove(s->extra[ERROR] + m.from, &m, p + m.p, s->g + m.q);
        }
}

/* And then M^. */
static void unfold(sl_state *s) {
    float *e = s->extra[ERROR], *p = all_p(s), *q = s->extra[FACTORS];
    sl_matrix m = {0};
    sl_copy(s, q, s->g, length_of_q(s->config, &s->shapes));
    for (size_t i = 0; sl_matrix_next(&m, &s->shapes, s->config->rank, i); i++)
        if (m.q_length > 0) {
            sl_factor_expand(s->g + m.from, &m, p + m.p, q + m.q);
        } else {
            sl_copy(s, s->g + m.from, p + m.p, m.p_length);
            s->vec->fill(e + m.from, 0, m.p_length);
        }
    draw(s);
}

#define MEAN_OF(elements, then)                                                                    \
    {.plain = true,                                                                                \
     .length = (elements),                                                                         \
     .vector = sl_publish_gradient,                                                                \
     .combine = sl_add_gradient},                                                                  \
    {                                                                                              \
        .plain = true, .gather = true, .length = (elements), .prepare = sl_average_gradient,       \
        .vector = sl_publish_gradient, .combine = sl_copy_gradient, .over = (then)                 \
    }
static const sl_stage stages[] = {MEAN_OF(length_of_p, project), MEAN_OF(length_of_q, unfold)};

const sl_algorithm sl_powersgd = {
    .name = "powersgd",
    .route = SL_ROUTE_ALL_REDUCE,
    .host_only = true,
    .keys = "rank",
    .takes_momentum = true,
    .averages_gradient = true,
    .tied_to_members = true,
    .keeps_gradient = true,
    .extra_vectors = VECTORS,
    .check_shapes = sl_factor_check_rank,
    .start = start,
    .take_gradient = load,
    .stages = stages,
    .stage_count = 4,
    .settle = sl_local_step,
};
