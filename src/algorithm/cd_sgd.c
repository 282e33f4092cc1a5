/* cd_sgd.c - CD-SGD: Yu, Dong, Xu, Ouyang, Wang, Liao, Qiao, "CD-SGD: Distributed Stochastic
 * Gradient Descent with Compression and Delay Compensation", ICPP 2021. OD-SGD (Xu et al., ACM TACO
 * 17, 2020) is the form with k = 1: it sends every gradient whole.
 *
 *   round t <= W, warm-up:  C-SGD:  G_t = G_{t-1} - gamma_t (1/n) sum_i g_{i,t}, g at G_{t-1}
 *   round t > W:  g_t at L_t;  beside it the exchange of g_{t-1}:
 *             G_{t-1} = G_{t-2} - gamma_{t-1} (1/n) sum_i received_{i,t-1}
 *             L_{t+1} = G_{t-1} - gamma_loc g_t
 *             to send next: (t - W - 1) mod k = 0: g_t; else r += g_t, T(r), and r -= T(r)
 *
 * L_{W+1} = G_{W-1} - gamma_loc g_W, or x for W = 0. Round W + 1 has no exchange, because g_W was
 * sent in its own round; so a run of T > W rounds has T - 1.
 *
 * T is the threshold compressor: +-tau or 0, two bits. The sum comes together at one server rank,
 * or in shards over all; what the servers send back is the sum itself. The model is G; after a
 * round t > W it is G_{t-1}. Memory beside G and g: L, r, and the sum, which a whole gradient also
 * leaves from: three vectors. Wire: 2 d bits up (32 d in each k-th round), 32 d down.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"

enum { LOCAL = 0, RESIDUAL = 1, TOTAL = 2 };

/* ---- rounds ---- */

static bool is_warm_up(const sl_state *s) {
    return s->round <= s->config->warmup_rounds;
}

/* Is the gradient of this round, after the warm-up, sent whole? */
static bool is_correction(const sl_state *s, uint64_t round) {
    return (round - s->config->warmup_rounds - 1) % s->config->correction_period == 0;
}

/* In the first round after the warm-up, no gradient is left to be sent. */
static bool has_gradient_to_send(const sl_state *s) {
    return s->round != s->config->warmup_rounds + 1;
}

static bool is_compressed(const sl_state *s) {
    return !is_warm_up(s) && has_gradient_to_send(s) && !is_correction(s, s->round - 1);
}

static bool is_whole(const sl_state *s) {
    return has_gradient_to_send(s) && !is_compressed(s);
}

static const float *point(const sl_state *s) {
    return is_warm_up(s) ? s->x : s->extra[LOCAL];
}

/* ---- the exchange ---- */

/* L <- G - gamma_loc g. */
static void step_locally(sl_state *s, size_t from, size_t count) {
    float rate = s->config->local_learning_rate > 0 ? (float)s->config->local_learning_rate
                                                    : s->sgd.learning_rate;
    s->vec->combine(s->extra[LOCAL] + from, (const float *const[]){s->x + from, s->g + from},
                    (const float[]){1, -rate}, 2, count);
}

/* The warm-up sends the gradient of the round itself; its last round also takes the first local
 * step. */
static void warm_up(sl_state *s, size_t from, size_t count) {
    if (!is_warm_up(s))
        return;
    sl_regularize(s, s->x, from, count);
    sl_copy(s, s->extra[TOTAL] + from, s->g + from, count);
    if (s->round == s->config->warmup_rounds)
        step_locally(s, from, count);
}

static const float *residual(const sl_state *s) {
    return s->extra[RESIDUAL];
}

static const float *total(const sl_state *s) {
    return s->extra[TOTAL];
}

static void take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, -1, s->extra[RESIDUAL]);
    if (mine->weight > 0)
        sl_part_add(mine, 1, s->extra[TOTAL]);
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, 1, s->extra[TOTAL]);
}

static void copy_total(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_copy(s, s->extra[TOTAL] + from, mix->parts[0].payload.data, count);
}

/* ---- the end of a round ---- */

/* What the next exchange sends of g, and the sum that it begins with. */
static void keep_gradient(sl_state *s, size_t from, size_t count) {
    float *sum = s->extra[TOTAL] + from, *rest = s->extra[RESIDUAL] + from;
    const float *g = s->g + from;
    if (is_correction(s, s->round)) {
        sl_copy(s, sum, g, count);
        return;
    }
    s->vec->fill(sum, 0, count);
    s->vec->combine(rest, (const float *const[]){rest, g}, (const float[]){1, 1}, 2, count);
}

/* The sum is of the last round's gradients, and so is its learning rate; in the warm-up of this
 * round's. */
static void descend(sl_state *s, size_t from, size_t count) {
    const sl_sgd *sgd = is_warm_up(s) ? &s->sgd : &s->last_sgd;
    s->vec->combine(s->x + from, (const float *const[]){s->x + from, s->extra[TOTAL] + from},
                    (const float[]){1, -sgd->learning_rate / (float)s->nodes}, 2, count);
}

static void settle(sl_state *s, size_t from, size_t count) {
    if (has_gradient_to_send(s))
        descend(s, from, count);
    if (is_warm_up(s))
        return;
    sl_regularize(s, s->extra[LOCAL], from, count);
    step_locally(s, from, count);
    keep_gradient(s, from, count);
}

static void start(sl_state *s, size_t dimension) {
    sl_copy(s, s->extra[LOCAL], s->x, dimension);
}

static void tune(sl_algorithm_config *c) {
    c->compressor.threshold = c->threshold;
}

static void defaults(sl_algorithm_config *c) {
    sl_default_count(&c->warmup_rounds, 1);
}

static const sl_stage stages[] = {
    {.wanted = is_compressed, .vector = residual, .own = take_own, .combine = take_theirs},
    {.plain = true,
     .wanted = is_whole,
     .prepare = warm_up,
     .vector = total,
     .combine = take_theirs},
    {.plain = true,
     .gather = true,
     .wanted = has_gradient_to_send,
     .vector = total,
     .combine = copy_total},
};

const sl_algorithm sl_cd_sgd = {
    .name = "cd-sgd",
    .route = SL_ROUTE_SERVER,
    .compressor = SL_TAKES_ANY,
    .own_compressor = SL_COMPRESSOR_THRESHOLD,
    .tune = tune,
    .keys = "correction_period warmup_rounds threshold local_learning_rate",
    .defaults = defaults,
    .idle_rounds = 1,
    .publishes_old_model = true,
    .waits = is_warm_up,
    .extra_vectors = 3,
    .tied_to_members = true,
    .stages = stages,
    .stage_count = 3,
    .start = start,
    .settle = settle,
    .point = point,
};
