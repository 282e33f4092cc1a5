/* dgc.c - DGC: Lin, Han, Mao, Wang, Dally, "Deep Gradient Compression: Reducing the Communication
 * Bandwidth for Distributed Training", ICLR 2018, Algorithm 2.
 *
 *   local clipping:       g_i <- g_i min(1, clip / (sqrt(n) |g_i|))
 *   momentum correction:  u_i <- mu u_i + g_i;  v_i <- v_i + u_i, with Nesterov + g_i + mu u_i
 *   masking:              q_i = top-k of v_i, sent;  v_i and u_i are 0 where it was sent
 *                         x <- x - gamma (1/n) sum_i q_i
 *   warm-up:              k of the first rounds is larger (plan/phases.c)
 *   a round of k = d:     u <- mu u + (1/n) sum_i g_i;  x <- x - gamma u, or Nesterov's
 *
 * mu: optimizer.momentum; u is in its buffer. Weight decay enters g_i before clipping. A coordinate
 * whose v is exactly 0 counts as sent: there is nothing to send of it. mu = 0 without clipping is
 * error feedback; k = d throughout is C-SGD with momentum. Memory beside x, g, momentum: v. Wire: k
 * values and indices to everybody. In the authors' program (synxlin/deep-gradient-compression) the
 * decay has a momentum buffer of its own, beside what comes from the nodes.
 */
#include <math.h>

#include "algorithm/own_keys.h"
#include "algorithm/squeeze.h"

enum { SENT = SL_SQUEEZE_SENT };

/* All of the vector is sent: there is nothing to correct. */
static bool sends_all(const sl_state *s) {
    return s->compressor->kind == SL_COMPRESSOR_IDENTITY;
}

static void defaults(sl_algorithm_config *c) {
    sl_default(&c->clip, 0);
}

static void clip(sl_state *s) {
    sl_regularize(s, s->x, 0, s->dimension);
    if (s->config->clip <= 0)
        return;
    const double most = s->config->clip / sqrt(s->nodes),
                 norm = sqrt(s->vec->norm2_squared(s->g, s->dimension));
    if (norm > most)
        s->vec->combine(s->g, (const float *const[]){s->g}, (const float[]){(float)(most / norm)},
                        1, s->dimension);
}

static void correct(sl_state *s, size_t from, size_t count) {
    const float mu = s->sgd.momentum;
    float *v = s->extra[SENT] + from, *g = s->g + from, *u = s->m != NULL ? s->m + from : g;
    if (s->m != NULL && !sends_all(s))
        s->vec->combine(u, (const float *const[]){u, g}, (const float[]){mu, 1}, 2, count);
    if (sends_all(s))
        sl_copy(s, v, g, count);
    else if (s->sgd.nesterov)
        s->vec->combine(v, (const float *const[]){v, g, u}, (const float[]){1, 1, mu}, 3, count);
    else
        s->vec->combine(v, (const float *const[]){v, u}, (const float[]){1, 1}, 2, count);
    s->vec->fill(g, 0, count);
}

static void settle(sl_state *s, size_t from, size_t count) {
    float *x = s->x + from, *g = s->g + from, *u = s->m != NULL ? s->m + from : NULL;
    sl_sgd sgd = s->sgd;
    sgd.weight_decay = 0; /* it is in g */
    if (u != NULL && !sends_all(s))
        s->vec->keep_where(u, s->extra[SENT] + from, count);
    s->vec->sgd_step(x, x, g, sends_all(s) ? u : NULL, &sgd, count);
}

static const sl_stage stages[] = {{.ranked = true,
                                   .prepare = correct,
                                   .vector = sl_squeeze_sent,
                                   .own = sl_squeeze_take,
                                   .combine = sl_squeeze_add}};

static const sl_key keys[] = {
    {SL_ROW_CLIP, .help = "length to which n gradients are clipped, each to clip/sqrt(n), "
                          "second-largest = 0, not at all"},
    {SL_OWN_LIST(warmup, warmup_count), .type = SL_KEY_FACTORS, SL_KEY_BETWEEN(1e-9, 1),
     .length_max = SL_PHASES_MAX, .fallback = "[]",
     .help = "fraction of the entries sent in each of the first epochs"},
    {SL_OWN_LIST(warmup_k, warmup_k_count), .type = SL_KEY_U32S, SL_KEY_BETWEEN(1, 4294967295.0),
     .length_max = SL_PHASES_MAX, .fallback = "[]",
     .help = "number of entries sent in each of the first rounds, in place of warmup"},
    SL_KEYS_END,
};

#define DGC                                                                                        \
    .name = "dgc", .compressor = SL_TAKES_LARGEST, .keys = keys, .defaults = defaults,             \
    .takes_momentum = true, .takes_sgd_only = true, .keeps_gradient = true, .extra_vectors = 1,    \
    .take_gradient = clip, .settle = settle

const sl_algorithm sl_dgc = {
    DGC, .when = sl_sends_to_all, .route = SL_ROUTE_ALL, .stages = stages, .stage_count = 1,
};

static const sl_stage by_a_form[] = {SL_SPARSE_SUM_STAGES(correct, sl_squeeze_take_and_add)};

const sl_algorithm sl_dgc_sparse = {
    DGC,
    .when = sl_sums_sparse,
    .route = SL_ROUTE_ALL_REDUCE,
    .host_only = true,
    .stages = by_a_form,
    .stage_count = SL_SPARSE_SUM_STAGE_COUNT,
};
