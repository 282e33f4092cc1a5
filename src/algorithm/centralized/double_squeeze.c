/* double_squeeze.c - DoubleSqueeze: Tang, Lian, Yu, Zhang, Liu, "DoubleSqueeze: Parallel Stochastic
 * Gradient Descent with Double-Pass Error-Compensated Compression", ICML 2019.
 *
 *   worker:  v_i = g_i + delta_i;  q_i = C(v_i);  delta_i = v_i - q_i
 *   server:  s = (1/n) sum_i q_i + Delta;  Q = C(s);  Delta = s - Q;  everybody: x <- x - gamma Q
 *
 * Every node is a worker, one rank the server; or shard k of the vector is served by rank k, each
 * shard compressed on its own. C contractive. Memory beside x and g: delta, and at servers Delta,
 * which first collects the sum: two vectors. Wire: one compressed message up, one down.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"

enum { WORKER_ERROR = 0, SERVER_ERROR = 1 };

static void compensate(sl_state *s, size_t from, size_t count) {
    float *error = s->extra[WORKER_ERROR] + from;
    sl_regularize(s, s->x, from, count);
    s->vec->combine(error, (const float *const[]){s->g + from, error}, (const float[]){1, 1}, 2,
                    count);
}

static const float *worker_error(const sl_state *s) {
    return s->extra[WORKER_ERROR];
}

static void take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, -1, s->extra[WORKER_ERROR]);
    if (mine->weight > 0)
        sl_part_add(mine, 1 / (float)s->nodes, s->extra[SERVER_ERROR]);
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, 1 / (float)s->nodes, s->extra[SERVER_ERROR]);
}

static const float *server_error(const sl_state *s) {
    return s->extra[SERVER_ERROR];
}

static void descend(sl_state *s, const sl_part *part) {
    sl_part_add(part, -s->sgd.learning_rate, s->x);
}

static void serve_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, -1, s->extra[SERVER_ERROR]);
    descend(s, mine);
}

static void follow(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    for (size_t j = 0; j < mix->k; j++)
        descend(s, &mix->parts[j]);
}

static const sl_stage stages[] = {
    {.prepare = compensate, .vector = worker_error, .own = take_own, .combine = take_theirs},
    {.gather = true, .vector = server_error, .own = serve_own, .combine = follow},
};

const sl_algorithm sl_double_squeeze = {
    .name = "double-squeeze",
    .route = SL_ROUTE_SERVER,
    .compressor = SL_TAKES_CONTRACTIVE,
    .extra_vectors = 2,
    .stages = stages,
    .stage_count = 2,
};
