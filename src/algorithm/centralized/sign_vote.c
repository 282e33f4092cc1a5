/* sign_vote.c - signSGD and Signum with majority vote: Bernstein, Wang, Azizzadenesheli,
 * Anandkumar, "signSGD", ICML 2018; Bernstein, Zhao, Azizzadenesheli, Anandkumar, "signSGD with
 * Majority Vote is Communication Efficient and Fault Tolerant", ICLR 2019, Algorithm 1.
 *
 *   m_i <- beta m_i + (1 - beta) g_i;  s_i = sign(m_i);  V = sign(sum_i s_i);
 *   x <- x - gamma (V + lambda x)
 *
 * beta = 0 is signSGD, beta > 0 Signum; lambda: optimizer.weight_decay. sign(0) = +1, and so is a
 * tie of the votes. One rank counts the votes, or each those of its shard. Messages are
 * scaled-sign's; of what was decoded only the sign counts, so a voter has one vote whatever scale
 * it sends. Memory beside x and g: the count, a decoded vote, and m_i if beta > 0. Wire: d + 32
 * bits up, as many down; the 32 are the scale, which is 1 of a vote.
 */
#include <stdio.h>

#include "algorithm/algorithms.h"
#include "algorithm/own_keys.h"

enum { COUNT = 0, VOTE = 1, MOMENTUM = 2 };

static void defaults(sl_algorithm_config *c) {
    sl_default(&c->beta, 0);
    c->compressor.bucket = 0;
}

static size_t vectors(const sl_algorithm_config *config) {
    return config->beta > 0 ? 3 : 2;
}

static float sign(float v) {
    return v < 0 ? -1 : 1;
}

/* The own vote, which a server counts first. */
static void vote(sl_state *s, size_t from, size_t count) {
    const float beta = (float)s->config->beta;
    float *g = s->g + from, *count_of = s->extra[COUNT] + from;
    if (beta > 0) {
        float *m = s->extra[MOMENTUM] + from;
        s->vec->combine(m, (const float *const[]){m, g}, (const float[]){beta, 1 - beta}, 2, count);
        g = m;
    }
    for (size_t i = 0; i < count; i++)
        s->g[from + i] = count_of[i] = sign(g[i]);
}

static const float *decode(sl_state *s, const sl_part *part, size_t from, size_t count) {
    s->vec->fill(s->extra[VOTE] + from, 0, count);
    sl_part_add(part, 1, s->extra[VOTE]);
    return s->extra[VOTE] + from;
}

static void count_votes(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    float *count_of = s->extra[COUNT] + from;
    for (size_t j = 0; j < mix->k; j++) {
        const float *v = decode(s, &mix->parts[j], from, count);
        for (size_t i = 0; i < count; i++)
            count_of[i] += sign(v[i]);
    }
}

static void decide(sl_state *s, size_t from, size_t count) {
    for (size_t i = from; i < from + count; i++)
        s->extra[COUNT][i] = sign(s->extra[COUNT][i]);
}

static const float *majority(const sl_state *s) {
    return s->extra[COUNT];
}

static void follow(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    const float *v = decode(s, &mix->parts[0], from, count);
    for (size_t i = 0; i < count; i++)
        s->extra[COUNT][from + i] = sign(v[i]);
}

static void step(sl_state *s, size_t from, size_t count) {
    const float rate = s->sgd.learning_rate;
    float *x = s->x + from;
    s->vec->combine(x, (const float *const[]){x, s->extra[COUNT] + from},
                    (const float[]){1 - rate * s->sgd.weight_decay, -rate}, 2, count);
}

static void warn(const sl_algorithm_config *c, char *out, size_t bytes) {
    (void)c;
    snprintf(out, bytes,
             "sign-vote does not reach the optimum where nodes' data differ, whatever the learning "
             "rate: a vote counts signs, not sizes; ef21 with scaled-sign does");
}

static const sl_stage stages[] = {
    {.prepare = vote, .vector = sl_publish_gradient, .combine = count_votes},
    {.gather = true, .prepare = decide, .vector = majority, .combine = follow},
};

static const sl_key keys[] = {
    {SL_ROW_BETA, .help = "momentum of its own, auto = 0"},
    SL_KEYS_END,
};

const sl_algorithm sl_sign_vote = {
    .name = "sign-vote",
    .route = SL_ROUTE_SERVER,
    .host_only = true,
    .compressor = SL_TAKES_ANY,
    .own_compressor = SL_COMPRESSOR_SCALED_SIGN,
    .keys = keys,
    .defaults = defaults,
    .warn = warn,
    .keeps_gradient = true,
    .vectors = vectors,
    .stages = stages,
    .stage_count = 2,
    .settle = step,
};
