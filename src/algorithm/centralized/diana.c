/* diana.c - DIANA: Mishchenko, Gorbunov, Takac, Richtarik, "Distributed Learning with Compressed
 * Gradient Differences", 2019, Algorithm 1.
 *
 *   q_i = C(g_i - h_i);  g^ = h + (1/n) sum_i q_i;  v <- beta v + g^;  x <- x - gamma v
 *   h_i <- h_i + alpha q_i;  h <- h + alpha (1/n) sum_i q_i
 *
 * h_i(0) = 0; h, the mean of the h_i, is kept by servers. C unbiased; alpha is 1/(1 + omega) if not
 * given. h_i comes to g_i(x*), so the optimum is reached with full gradients and a constant gamma.
 * C = identity is C-SGD; alpha = 1 with a contractive C is EF21. Memory beside x and g: h_i, h, g^,
 * and v if beta > 0. Wire: one compressed message up, the dense g^ down.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

enum { KNOWN = 0, MEAN = 1, GUESS = 2, MOMENTUM = 3 };

static void defaults(sl_algorithm_config *c) {
    sl_default(&c->beta, 0);
}

static size_t vectors(const sl_algorithm_config *config) {
    return config->beta > 0 ? 4 : 3;
}

static void subtract_known(sl_state *s, size_t from, size_t count) {
    sl_regularize(s, s->x, from, count);
    sl_subtract(s, s->g + from, s->g + from, s->extra[KNOWN] + from, count);
    sl_copy(s, s->extra[GUESS] + from, s->extra[MEAN] + from, count);
}

static void take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, s->step_size, s->extra[KNOWN]);
    if (mine->weight > 0)
        sl_part_add(mine, 1 / (float)s->nodes, s->extra[GUESS]);
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, 1 / (float)s->nodes, s->extra[GUESS]);
}

static void load_guess(sl_state *s, size_t from, size_t count) {
    sl_copy(s, s->g + from, s->extra[GUESS] + from, count);
}

static void settle(sl_state *s, size_t from, size_t count) {
    float *h = s->extra[MEAN] + from, *x = s->x + from, *v = s->g + from;
    s->vec->combine(h, (const float *const[]){h, s->extra[GUESS] + from},
                    (const float[]){1 - s->step_size, s->step_size}, 2, count);
    if (s->config->beta > 0) {
        v = s->extra[MOMENTUM] + from;
        s->vec->combine(v, (const float *const[]){v, s->g + from},
                        (const float[]){(float)s->config->beta, 1}, 2, count);
    }
    s->vec->combine(x, (const float *const[]){x, v}, (const float[]){1, -s->sgd.learning_rate}, 2,
                    count);
}

static const sl_stage stages[] = {
    {.prepare = subtract_known,
     .vector = sl_publish_gradient,
     .own = take_own,
     .combine = take_theirs},
    {.plain = true,
     .gather = true,
     .prepare = load_guess,
     .vector = sl_publish_gradient,
     .combine = sl_copy_gradient},
};

static const sl_key keys[] = {
    {SL_ROW_ALPHA, .help = "share of a message that is remembered, auto = 1/(1 + omega)"},
    {SL_ROW_BETA, .help = "momentum of its own, auto = 0"},
    SL_KEYS_END,
};

const sl_algorithm sl_diana = {
    .name = "diana",
    .route = SL_ROUTE_SERVER,
    .compressor = SL_TAKES_UNBIASED,
    .step_rule = SL_STEP_ALPHA,
    .keys = keys,
    .defaults = defaults,
    .keeps_gradient = true,
    .vectors = vectors,
    .stages = stages,
    .stage_count = 2,
    .settle = settle,
};
