/* ecq_sgd.c - ECQ-SGD: Wu, Huang, Huang, Zhang, "Error Compensated Quantized SGD and its
 * Applications to Large-scale Distributed Optimization", ICML 2018.
 *
 *   q_i = C(g_i + alpha h_i);  h_i <- beta h_i + (g_i - q_i);  x <- x - gamma (1/n) sum_i q_i
 *
 * C unbiased in the paper. With alpha = beta = 1 it is error feedback. Memory beside x and g: h,
 * and v = g + alpha h. Wire: one compressed message up, the dense mean down.
 */
#include "algorithm/own_keys.h"
#include "algorithm/squeeze.h"

enum { SENT = SL_SQUEEZE_SENT, ERROR = 1 };

static void defaults(sl_algorithm_config *c) {
    sl_default(&c->alpha, 0.2);
    sl_default(&c->beta, 0.9);
}

static void load(sl_state *s, size_t from, size_t count) {
    float *v = s->extra[SENT] + from, *h = s->extra[ERROR] + from, *g = s->g + from;
    sl_regularize(s, s->x, from, count);
    s->vec->combine(v, (const float *const[]){g, h}, (const float[]){1, (float)s->config->alpha}, 2,
                    count);
    s->vec->combine(h, (const float *const[]){h, g}, (const float[]){(float)s->config->beta, 1}, 2,
                    count);
    s->vec->fill(g, 0, count);
}

static void take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, -1, s->extra[ERROR]);
    if (mine->weight > 0)
        sl_part_add(mine, 1 / (float)s->nodes, s->g);
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, 1 / (float)s->nodes, s->g);
}

static const sl_stage stages[] = {
    {.prepare = load, .vector = sl_squeeze_sent, .own = take_own, .combine = take_theirs},
    {.plain = true, .gather = true, .vector = sl_publish_gradient, .combine = sl_copy_gradient},
};

static void settle(sl_state *s, size_t from, size_t count) {
    float *x = s->x + from;
    s->vec->combine(x, (const float *const[]){x, s->g + from},
                    (const float[]){1, -s->sgd.learning_rate}, 2, count);
}

static const sl_key keys[] = {
    {SL_ROW_ALPHA, .help = "share of what was lost that is sent again, auto = 0.2"},
    {SL_ROW_BETA, .help = "share of what was lost that stays, auto = 0.9"},
    SL_KEYS_END,
};

const sl_algorithm sl_ecq_sgd = {
    .name = "ecq-sgd",
    .route = SL_ROUTE_SERVER,
    .compressor = SL_TAKES_UNBIASED,
    .keys = keys,
    .defaults = defaults,
    .keeps_gradient = true,
    .extra_vectors = 2,
    .stages = stages,
    .stage_count = 2,
    .settle = settle,
};
