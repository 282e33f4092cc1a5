/* one_bit_adam.c - 1-bit Adam: Tang, Gan, Awan, Rajbhandari, Li, Lian, Liu, Zhang, He, "1-bit Adam:
 * Communication Efficient Large-Scale Training with Adam's Convergence Speed", ICML 2021, Alg. 1.
 *
 *   round t <= W:  g = (1/n) sum_i g_i;  m <- beta1 m + (1 - beta1) g;
 *                  v <- beta2 v + (1 - beta2) g^2
 *   after:         q_i = C(beta1 m + (1 - beta1) g_i + e_i);  e_i the rest;
 *                  s = (1/n) sum_i q_i + E;  m <- C(s);  E = s - m;  v stands still
 *   both:          x <- x - gamma (m / (sqrt(v) + epsilon) + lambda x)
 *
 * No bias correction; lambda: optimizer.weight_decay. W: algorithm.warmup_rounds, or sooner, once v
 * has come to rest (warm_up.h). C contractive; the paper's is scaled sign. One rank is the server,
 * or each serves its shard, which is compressed on its own. A coordinate whose gradient was 0 in
 * the whole warm-up stays where it is. Memory beside x and g: m, v, e, and E at servers, four
 * vectors. Wire: 32 d bits up and down in the warm-up, then one compressed message up, one down.
 */
#include <math.h>

#include "algorithm/algorithms.h"
#include "algorithm/centralized/warm_up.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

enum { FIRST = 0, SECOND, WORKER_ERROR, SERVER_ERROR };

static bool is_compressed(const sl_state *s) {
    return !sl_warm_up_is_on(s);
}

static void compensate(sl_state *s, size_t from, size_t count) {
    const float beta = (float)s->config->beta1, rest = (float)(1 - s->config->beta1);
    float *error = s->extra[WORKER_ERROR] + from, *m = s->extra[FIRST] + from;
    s->vec->combine(error, (const float *const[]){error, m, s->g + from},
                    (const float[]){1, beta, rest}, 3, count);
    s->vec->fill(m, 0, count);
}

static const float *worker_error(const sl_state *s) {
    return s->extra[WORKER_ERROR];
}

static const float *server_error(const sl_state *s) {
    return s->extra[SERVER_ERROR];
}

static void take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, -1, s->extra[WORKER_ERROR]);
    if (mine->weight > 0)
        sl_part_add(mine, 1 / (float)s->nodes, s->extra[SERVER_ERROR]);
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from, (void)count;
    sl_mix_add(mix, 1 / (float)s->nodes, s->extra[SERVER_ERROR]);
}

static void serve_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, -1, s->extra[SERVER_ERROR]);
    sl_part_add(mine, 1, s->extra[FIRST]);
}

static void take_momentum(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from, (void)count;
    sl_mix_add(mix, 1, s->extra[FIRST]);
}

/* After the warm-up the moments stand, and g is not read. */
static void step(sl_state *s, size_t from, size_t count) {
    sl_adam adam = sl_adam_of(s, INFINITY);
    float *x = s->x + from, *g = s->g + from;
    if (is_compressed(s)) {
        s->vec->fill(g, 0, count);
        adam.beta1 = adam.beta2 = 1;
    } else if (from == 0) {
        sl_warm_up_note(s);
    }
    s->vec->adam_direction(g, x, s->extra[FIRST] + from, s->extra[SECOND] + from, &adam, count);
    s->vec->combine(x, (const float *const[]){x, g}, (const float[]){1, -s->sgd.learning_rate}, 2,
                    count);
}

/* clang-format off */
static const sl_stage stages[] = {
    {.plain = true, .wanted = sl_warm_up_is_on, .vector = sl_publish_gradient,
     .combine = sl_add_gradient},
    {.plain = true, .gather = true, .wanted = sl_warm_up_is_on, .prepare = sl_average_gradient,
     .vector = sl_publish_gradient, .combine = sl_copy_gradient},
    {.wanted = is_compressed, .prepare = compensate, .vector = worker_error, .own = take_own,
     .combine = take_theirs},
    {.gather = true, .wanted = is_compressed, .vector = server_error, .own = serve_own,
     .combine = take_momentum},
};
/* clang-format on */

static const sl_key keys[] = {
    {SL_ROW_BETA1},
    {SL_ROW_BETA2},
    {SL_ROW_EPSILON, .help = "added to the root of the second moment"},
    {SL_ROW_WARMUP_ROUNDS, .help = "rounds of uncompressed messages at the start, auto = 1"},
    {SL_OWN_REAL(warmup_ratio, 0, 1), .fallback = "0",
     .help = "the warm-up ends once the second moment is at least so much of what it was 1/(1 - "
             "beta2) rounds ago; 0 = by warmup_rounds only; the paper's is 0.96"},
    SL_KEYS_END,
};

const sl_algorithm sl_one_bit_adam = {
    .name = "one-bit-adam",
    .route = SL_ROUTE_SERVER,
    .compressor = SL_TAKES_CONTRACTIVE,
    .keys = keys,
    .defaults = sl_warm_up_defaults,
    .warn = sl_warm_up_warn,
    .own_numbers = sl_warm_up_numbers,
    .keeps_gradient = true,
    .extra_vectors = 4,
    .stages = stages,
    .stage_count = 4,
    .settle = step,
};
