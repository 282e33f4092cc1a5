/* fetch_sgd.c - FetchSGD: Rothchild, Panda, Ullah, Ivkin, Stoica, Braverman, Gonzalez, Arora,
 * "FetchSGD: Communication-Efficient Federated Learning with Sketching", ICML 2020, Algorithm 1,
 * all nodes in every round.
 *
 *   s_i = S(g_i);  s = (1/n) sum_i s_i                (sketch.h)
 *   u <- rho u + s;  e <- e + gamma u;  D = the k largest of e's estimates;  x <- x - D
 *   e <- 0 where D falls, else e
 *
 * The last line is section 5's; Algorithm 1 subtracts S(D), which leaves what collided there.
 * Tables add up, so any all-reduce serves: what the paper's server does, all do with the same bits.
 * All nodes must start from the same model. rho is `beta`. Places and signs are the run's.
 * Memory beside x, g: a vector for s, u and e. Wire: an all-reduce of 32 rows columns bits.
 */
#include "algorithm/algorithms.h"
#include "algorithm/centralized/sketch.h"
#include "algorithm/own_keys.h"

enum { TABLES, VECTORS };                           /* the three, one behind the other */
enum { OF_GRADIENT, OF_MOMENTUM, OF_ERROR, KINDS }; /* of tables */
enum { SHARE = 10 }; /* of the vector is the table, and of the table's columns k, if nobody says */

static void defaults(sl_algorithm_config *c) {
    sl_default(&c->beta, 0.9);
}

static size_t at_least_one(size_t count) {
    return count > 1 ? count : 1;
}

static size_t columns(const sl_algorithm_config *c, const sl_shapes *shapes) {
    return c->sketch.columns > 0 ? (size_t)c->sketch.columns
                                 : at_least_one(shapes->dimension / SHARE / c->sketch.rows);
}

static size_t length(const sl_algorithm_config *c, const sl_shapes *shapes) {
    return c->sketch.rows * columns(c, shapes);
}

static size_t kept(const sl_algorithm_config *c, const sl_shapes *shapes) {
    return c->sketch.k > 0 ? (size_t)c->sketch.k : at_least_one(columns(c, shapes) / SHARE);
}

static int check_shapes(const sl_algorithm_config *c, const sl_shapes *shapes, sl_error *error) {
    const size_t d = shapes->dimension, most = d / KINDS / c->sketch.rows;
    if (columns(c, shapes) > most)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.sketch.columns: %zu in %u rows, but three such tables have to "
                       "fit into a vector of %zu parameters; take at most %zu columns%s",
                       columns(c, shapes), c->sketch.rows, d, most,
                       most > 0 ? "" : ", with fewer algorithm.sketch.rows");
    if (kept(c, shapes) > d)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.sketch.k: %zu, but the model has %zu parameters; take 1 to %zu",
                       kept(c, shapes), d, d);
    return 0;
}

static sl_sketch sketch(const sl_state *s) {
    return (sl_sketch){.rows = s->config->sketch.rows,
                       .columns = columns(s->config, &s->shapes),
                       .dimension = s->dimension,
                       .seed = s->seed};
}

static float *table(const sl_state *s, size_t kind) {
    return s->extra[TABLES] + kind * length(s->config, &s->shapes);
}

static void load(sl_state *s) {
    const sl_sketch how = sketch(s);
    const size_t cells = length(s->config, &s->shapes);
    sl_regularize(s, s->x, 0, s->dimension);
    s->vec->fill(table(s, OF_GRADIENT), 0, cells);
    sl_sketch_add(&how, table(s, OF_GRADIENT), s->g);
    sl_copy(s, s->g, table(s, OF_GRADIENT), cells);
}

/* The mean of the sketches is here, and D takes its place. */
static void unsketch(sl_state *s) {
    const sl_sketch how = sketch(s);
    const size_t cells = length(s->config, &s->shapes);
    float *u = table(s, OF_MOMENTUM), *e = table(s, OF_ERROR);
    s->vec->combine(u, (const float *const[]){u, s->g}, (const float[]){(float)s->config->beta, 1},
                    2, cells);
    s->vec->combine(e, (const float *const[]){e, u}, (const float[]){1, s->sgd.learning_rate}, 2,
                    cells);
    sl_sketch_estimate(&how, s->g, e);
    sl_keep_largest(s->g, s->dimension, kept(s->config, &s->shapes));
    sl_sketch_forget(&how, e, s->g);
}

static void step(sl_state *s, size_t from, size_t count) {
    sl_subtract(s, s->x + from, s->x + from, s->g + from, count);
}

static const sl_stage stages[] = {
    {.plain = true, .length = length, .vector = sl_publish_gradient, .combine = sl_add_gradient},
    {.plain = true,
     .gather = true,
     .length = length,
     .prepare = sl_average_gradient,
     .vector = sl_publish_gradient,
     .combine = sl_copy_gradient,
     .over = unsketch},
};

static const sl_key keys[] = {
    {SL_ROW_BETA, .help = "momentum of its own, auto = 0.9"},
    {SL_OWN_U32(sketch.rows, 1, 15), .fallback = "5",
     .help = "places of an element in the sketch; their median is its estimate"},
    {SL_OWN_U64(sketch.columns, 0, 1e12), .fallback = "0",
     .help = "numbers in a row of the sketch; 0 = a tenth of the parameters in all rows"},
    {SL_OWN_U64(sketch.k, 0, 1e12), .fallback = "0",
     .help = "parameters that a round moves; 0 = a tenth of the columns"},
    SL_KEYS_END,
};

const sl_algorithm sl_fetch_sgd = {
    .name = "fetch-sgd",
    .route = SL_ROUTE_ALL_REDUCE,
    .host_only = true,
    .keys = keys,
    .defaults = defaults,
    .keeps_gradient = true,
    .extra_vectors = VECTORS,
    .check_shapes = check_shapes,
    .take_gradient = load,
    .stages = stages,
    .stage_count = 2,
    .settle = step,
};
