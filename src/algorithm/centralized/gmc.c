/* gmc.c - GMC: Zhao, Xie, Gao, Li, "Global Momentum Compression for Sparse Communication in
 * Distributed Learning", 2019.
 *
 *   v_i = e_i + g_i - (beta/gamma) (x_t - x_{t-1});  q_i = C(v_i);  e_i = v_i - q_i
 *   x_{t+1} = x_t - gamma (1/n) sum_i q_i
 *
 * beta: optimizer.momentum. The momentum is that of the common model, so that it knows what all
 * nodes have sent, where DGC's knows its own node only. C contractive; C = identity is C-SGD with
 * heavy-ball momentum. Where gamma is 0 nothing moves, and the momentum ends. Memory beside x, g:
 * e_i, and the last x_t - x_{t-1} in the momentum buffer. Wire: a compressed message to everybody.
 */
#include "algorithm/squeeze.h"

enum { SENT = SL_SQUEEZE_SENT };

static void load(sl_state *s, size_t from, size_t count) {
    const float rate = s->sgd.learning_rate;
    float *v = s->extra[SENT] + from, *g = s->g + from;
    sl_regularize(s, s->x, from, count);
    s->vec->combine(v, (const float *const[]){v, g}, (const float[]){1, 1}, 2, count);
    if (s->m != NULL && rate != 0)
        s->vec->combine(v, (const float *const[]){v, s->m + from},
                        (const float[]){1, -s->sgd.momentum / rate}, 2, count);
    s->vec->fill(g, 0, count);
}

static void settle(sl_state *s, size_t from, size_t count) {
    const float rate = s->sgd.learning_rate;
    float *x = s->x + from, *mean = s->g + from;
    s->vec->combine(x, (const float *const[]){x, mean}, (const float[]){1, -rate}, 2, count);
    if (s->m != NULL)
        s->vec->combine(s->m + from, (const float *const[]){mean}, (const float[]){-rate}, 1,
                        count);
}

static const sl_stage stages[] = {{.ranked = true,
                                   .prepare = load,
                                   .vector = sl_squeeze_sent,
                                   .own = sl_squeeze_take,
                                   .combine = sl_squeeze_add}};

#define GMC                                                                                        \
    .name = "gmc", .compressor = SL_TAKES_CONTRACTIVE, .takes_momentum = true,                     \
    .takes_sgd_only = true, .heavy_ball = true, .keeps_gradient = true, .extra_vectors = 1,        \
    .settle = settle

const sl_algorithm sl_gmc = {
    GMC, .when = sl_sends_to_all, .route = SL_ROUTE_ALL, .stages = stages, .stage_count = 1,
};

static const sl_stage by_a_form[] = {SL_SPARSE_SUM_STAGES(load, sl_squeeze_take_and_add)};

const sl_algorithm sl_gmc_sparse = {
    GMC,
    .when = sl_sums_sparse,
    .route = SL_ROUTE_ALL_REDUCE,
    .host_only = true,
    .stages = by_a_form,
    .stage_count = SL_SPARSE_SUM_STAGE_COUNT,
};
