/* powersgd.c - PowerSGD: Vogels, Karimireddy, Jaggi, "PowerSGD: Practical Low-Rank Gradient
 * Compression for Distributed Optimization", NeurIPS 2019, Algorithms 1 and 2.
 * Of each matrix of the model (a tensor's first axis x the rest):
 *
 *   M_i = g_i + e_i;  P = (1/n) sum_i M_i Q;  P^ = P, with orthonormal columns
 *   Q_i = M_i^T P^;  Q = (1/n) sum_i Q_i;  M^ = P^ Q^T;  x <- x - gamma mom(M^)
 *   e_i = M_i - P^ Q_i^T
 *
 * The paper's e_i = M_i - M^ gives the same x, but grows with each round on uneven data, and so do
 * its roundings. Q stays; the first is given, or normal. A column of P that depends on earlier ones
 * is 0 in that round, as is Q's, which is drawn anew for the next. What is shorter than its factors
 * is among P, whole. Memory beside x, g, momentum: e, and a vector for Q and P^. Wire: two
 * all-reduces, 32 rank (rows + columns) bits of a matrix; in a warm-up one, of all. The paper's
 * Algorithm 2 and the authors' program (epfml/powersgd, train.py) step by M^ + m after m <- mu m +
 * M^, PyTorch's Nesterov by M^ + mu m, a heavy ball by m. Of a gradient that stays, theirs are 1 +
 * 1/(1 - mu) times it, the others 1/(1 - mu). Weight decay comes after the mean there, too.
 */
#include "algorithm/algorithms.h"
#include "algorithm/lowrank/factors.h"
#include "algorithm/own_keys.h"

enum { ERROR, FACTORS /* all Q, then all P^ */, VECTORS };

static float *all_p(const sl_state *s) {
    return s->extra[FACTORS] + sl_factor_q_length(s->config, &s->shapes);
}

/* Columns of Q that are 0: at the start all, unless they are given. */
static void draw(sl_state *s) {
    const sl_rng_key key = {s->seed, s->exchange, 0, SL_PURPOSE_FACTOR};
    for (sl_matrix m = {.rank = s->config->rank}; sl_matrix_next(&m, &s->shapes);)
        if (m.factored)
            sl_factor_draw(s->extra[FACTORS] + m.q, &m, m.columns, key, m.q);
}

static void start(sl_state *s, size_t dimension) {
    (void)dimension;
    sl_factor_start(s->extra[FACTORS], s, (sl_matrix){.rank = s->config->rank});
    draw(s);
}

static void defaults(sl_algorithm_config *c) {
    sl_default_count(&c->warmup_rounds, 0);
}

static bool is_warm_up(const sl_state *s) {
    return s->round <= s->config->warmup_rounds;
}

static bool is_factored(const sl_state *s) {
    return !is_warm_up(s);
}

/* e holds M_i, and g all P. */
static void load(sl_state *s) {
    float *e = s->extra[ERROR];
    if (is_warm_up(s))
        return;
    s->vec->combine(e, (const float *const[]){e, s->g}, (const float[]){1, 1}, 2, s->dimension);
    for (sl_matrix m = {.rank = s->config->rank}; sl_matrix_next(&m, &s->shapes);)
        if (m.factored)
            sl_factor_left(s->g + m.p, &m, e + m.from, s->extra[FACTORS] + m.q);
        else
            sl_copy(s, s->g + m.p, e + m.from, m.p_length);
}

/* Then g holds all Q_i, and e what is left. */
static void project(sl_state *s) {
    float *e = s->extra[ERROR], *p = all_p(s);
    sl_copy(s, p, s->g, sl_factor_p_length(s->config, &s->shapes));
    for (sl_matrix m = {.rank = s->config->rank}; sl_matrix_next(&m, &s->shapes);)
        if (m.factored) {
            sl_factor_orthogonalize(p + m.p, &m, m.rows);
            sl_factor_right(s->g + m.q, &m, e + m.from, p + m.p);
            sl_factor_add(e + m.from, &m, p + m.p, s->g + m.q, -1);
        } else {
            s->vec->fill(e + m.from, 0, m.p_length);
        }
}

/* And then M^. */
static void unfold(sl_state *s) {
    float *p = all_p(s), *q = s->extra[FACTORS];
    sl_copy(s, q, s->g, sl_factor_q_length(s->config, &s->shapes));
    for (sl_matrix m = {.rank = s->config->rank}; sl_matrix_next(&m, &s->shapes);)
        if (m.factored)
            sl_factor_expand(s->g + m.from, &m, p + m.p, q + m.q);
        else
            sl_copy(s, s->g + m.from, p + m.p, m.p_length);
    draw(s);
}
#define MEAN_OF(when, elements, then)                                                              \
    {.plain = true,                                                                                \
     .wanted = (when),                                                                             \
     .length = (elements),                                                                         \
     .vector = sl_publish_gradient,                                                                \
     .combine = sl_add_gradient},                                                                  \
    {                                                                                              \
        .plain = true, .gather = true, .wanted = (when), .length = (elements),                     \
        .prepare = sl_average_gradient, .vector = sl_publish_gradient,                             \
        .combine = sl_copy_gradient, .over = (then)                                                \
    }
static const sl_stage stages[] = {MEAN_OF(is_warm_up, NULL, NULL),
                                  MEAN_OF(is_factored, sl_factor_p_length, project),
                                  MEAN_OF(is_factored, sl_factor_q_length, unfold)};

static const sl_key keys[] = {
    {SL_ROW_RANK},
    {SL_ROW_START, .help = "first factors Q: a row of algorithm.rank numbers for each column of "
                           "each matrix, [] = random ones"},
    {SL_ROW_WARMUP_ROUNDS, .help = "rounds of uncompressed messages at the start, auto = 0"},
    SL_KEYS_END,
};

const sl_algorithm sl_powersgd = {
    .name = "powersgd",
    .route = SL_ROUTE_ALL_REDUCE,
    .host_only = true,
    .keys = keys,
    .defaults = defaults,
    .takes_momentum = true,
    .averages_gradient = true,
    .keeps_gradient = true,
    .extra_vectors = VECTORS,
    .check_shapes = sl_factor_check_both,
    .start = start,
    .take_gradient = load,
    .stages = stages,
    .stage_count = 6,
    .settle = sl_local_step,
};
