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
#include "algorithm/centralized/cd_local.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

/* The warm-up sends the gradient of the round itself; its last round also takes the first local
 * step. */
static void warm_up(sl_state *s, size_t from, size_t count) {
    if (!sl_cd_is_warm_up(s))
        return;
    sl_regularize(s, s->x, from, count);
    sl_copy(s, s->extra[SL_CD_TOTAL] + from, s->g + from, count);
    if (s->round == s->config->warmup_rounds)
        sl_cd_step(s, from, count);
}

static const float *residual(const sl_state *s) {
    return s->extra[SL_CD_RESIDUAL];
}

static const float *total(const sl_state *s) {
    return s->extra[SL_CD_TOTAL];
}

static void take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, -1, s->extra[SL_CD_RESIDUAL]);
    if (mine->weight > 0)
        sl_part_add(mine, 1, s->extra[SL_CD_TOTAL]);
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, 1, s->extra[SL_CD_TOTAL]);
}

static void copy_total(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_copy(s, s->extra[SL_CD_TOTAL] + from, mix->parts[0].payload.data, count);
}

/* The sum is of the last round's gradients, and so is its learning rate; in the warm-up of this
 * round's. */
static void descend(sl_state *s, size_t from, size_t count) {
    const sl_sgd *sgd = sl_cd_is_warm_up(s) ? &s->sgd : &s->last_sgd;
    s->vec->combine(s->x + from, (const float *const[]){s->x + from, s->extra[SL_CD_TOTAL] + from},
                    (const float[]){1, -sgd->learning_rate / (float)s->nodes}, 2, count);
}

static void settle(sl_state *s, size_t from, size_t count) {
    if (sl_cd_has_gradient(s))
        descend(s, from, count);
    if (sl_cd_is_warm_up(s))
        return;
    sl_regularize(s, s->extra[SL_CD_MODEL], from, count);
    sl_cd_step(s, from, count);
    sl_cd_keep_gradient(s, from, count);
}

static void tune(sl_algorithm_config *c) {
    c->compressor.threshold = c->threshold;
}

static void defaults(sl_algorithm_config *c) {
    sl_default_count(&c->warmup_rounds, 1);
}

static const sl_stage stages[] = {
    {.wanted = sl_cd_has_compressed, .vector = residual, .own = take_own, .combine = take_theirs},
    {.plain = true,
     .wanted = sl_cd_has_whole,
     .prepare = warm_up,
     .vector = total,
     .combine = take_theirs},
    {.plain = true,
     .gather = true,
     .wanted = sl_cd_has_gradient,
     .vector = total,
     .combine = copy_total},
};

static const sl_key keys[] = {
    {SL_OWN_U64(correction_period, 1, 1e9), .fallback = "5",
     .help = "every so many rounds, the gradient is sent uncompressed"},
    {SL_ROW_WARMUP_ROUNDS, .help = "rounds of uncompressed messages at the start, auto = 1"},
    {SL_OWN_REAL(threshold, 1e-30, 1e30), .fallback = "0.1",
     .help = "tau; a coordinate of at least tau is sent as tau, with its sign"},
    {SL_OWN_REAL(local_learning_rate, 0, 1e6), .fallback = "0",
     .help = "learning rate of the local step; 0 = optimizer.learning_rate"},
    SL_KEYS_END,
};

const sl_algorithm sl_cd_sgd = {
    .name = "cd-sgd",
    .route = SL_ROUTE_SERVER,
    .compressor = SL_TAKES_ANY,
    .own_compressor = SL_COMPRESSOR_THRESHOLD,
    .tune = tune,
    .keys = keys,
    .defaults = defaults,
    .idle_rounds = 1,
    .publishes_old_model = true,
    .waits = sl_cd_is_warm_up,
    .extra_vectors = SL_CD_VECTORS,
    .stages = stages,
    .stage_count = 3,
    .start = sl_cd_start,
    .settle = settle,
    .point = sl_cd_point,
};
