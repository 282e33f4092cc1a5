/* choco_sgd.c - CHOCO-SGD: Koloskova, Stich, Jaggi, "Decentralized Stochastic Optimization and
 * Gossip Algorithms with Compressed Communication", ICML 2019, Algorithm 2; Koloskova, Lin, Stich,
 * Jaggi, ICLR 2020.
 *
 *   compress-then-mix:  x_i <- x_i - gamma mom(g_i);  q_i = C(x_i - xhat_i);  xhat_j += q_j;  x_i
 *                       += gamma_c sum_j W_ij (xhat_j - xhat_i)
 *   mix-then-compress:  x_i <- x_i - gamma mom(g_i) + gamma_c sum_j W_ij (xhat_j - xhat_i), the old
 *                       xhat;  q_i = C(x_i - xhat_i);  xhat_j += q_j
 *
 * W symmetric, doubly stochastic and, unless each neighbour's replica is kept, fixed; C
 * contractive, biased is fine; gamma_c the consensus step. Memory beside x, g, momentum: xhat_i and
 * s_i = sum_{j != i} W_ij xhat_j, two vectors whatever the degree; or xhat_i and each xhat_j. The
 * difference is never stored: the compressor reads it block by block. Wire: one compressed message
 * a round, in the first one of a
 * later view the model itself. The second form's message of round t goes out while the gradient of
 * round t + 1 is computed, so its exchange belongs to round t + 1 here, and a run of T rounds has T
 * - 1. With local steps it goes out beside the next exchange's gradient, and tells them too.
 *
 * With `trigger` c it is SPARQ-SGD: Singh, Data, George, Diggavi, "SPARQ-SGD: Event-Triggered and
 * Compressed Communication in Decentralized Stochastic Optimization", 2019, Algorithm 1: after the
 * local step of round t, q_i = 0, a silent message, if ||x_i - xhat_i||^2 <= c t^p gamma_t^2, p
 * being `trigger_growth`. c = 0: CHOCO-SGD. The mean is kept as exactly.
 */
#include "algorithm/algorithms.h"
#include "algorithm/replicas.h"

enum { HAT = 0 };

static void read_difference(void *state, size_t from, size_t count, float *out) {
    const sl_state *s = state;
    sl_subtract(s, out, s->x + from, s->extra[HAT] + from, count);
}

static void defaults(sl_algorithm_config *c) {
    sl_default(&c->trigger, 0);
}

/* Is the model far from what others know of it, after the local step of that round? */
static bool has_moved(const sl_state *s, uint64_t round, const sl_sgd *step) {
    const sl_algorithm_config *c = s->config;
    if (c->trigger <= 0)
        return true;
    const double gamma = step->learning_rate,
                 near = c->trigger * pow((double)round, c->trigger_growth) * gamma * gamma;
    return !(s->vec->distance_squared(s->x, s->extra[HAT], s->dimension) <= near);
}

static bool has_moved_now(sl_state *s) {
    return has_moved(s, s->round, &s->sgd);
}

static bool had_moved(sl_state *s) {
    return has_moved(s, s->round - 1, &s->last_sgd);
}

static void take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, 1, s->extra[HAT]);
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_replicas_take(s, mix);
}

/* x += gamma_c (sum_{j != i} W_ij xhat_j - given xhat): equal replicas give nothing. */
static void mix_replicas(sl_state *s, size_t from, size_t count) {
    sl_terms sum = sl_terms_begin(s, s->x + from, count);
    sl_terms_add(&sum, s->x + from, 1);
    sl_replicas_add_to(&sum, s, s->step_size, from);
    sl_terms_add(&sum, s->extra[HAT] + from, -s->step_size * sl_given(s));
    sl_terms_end(&sum);
}

/* A later view's first message is the model itself, which sets every replica. */
static bool restates(const sl_state *s) {
    return s->first_exchange > 1 && s->exchange == s->first_exchange;
}

static bool differs(const sl_state *s) {
    return !restates(s);
}

static void take_model(sl_state *s, size_t from, size_t count) {
    sl_copy(s, s->extra[HAT] + from, s->x + from, count);
}

static void adapt_and_take(sl_state *s, size_t from, size_t count) {
    sl_local_step(s, from, count);
    take_model(s, from, count);
}

#define BOTH_FORMS                                                                                 \
    .name = "choco-sgd", .matrix = SL_MATRIX_SYMMETRIC, .fixed_matrix = true,                      \
    .keeps_replicas = true, .compressor = SL_TAKES_CONTRACTIVE, .step_rule = SL_STEP_CONSENSUS,    \
    .keys = "trigger trigger_growth", .defaults = defaults, .takes_momentum = true,                \
    .takes_local_steps = true, .extra_vectors = 1, .stage_count = 2, .local = sl_local_step

static const sl_stage compress_then_mix[] = {
    {.wanted = differs,
     .speaks = has_moved_now,
     .prepare = sl_local_step,
     .read = read_difference,
     .own = take_own,
     .combine = take_theirs},
    {.plain = true,
     .restates = true,
     .wanted = restates,
     .prepare = adapt_and_take,
     .vector = sl_publish_model,
     .combine = take_theirs},
};

const sl_algorithm sl_choco_compress_then_mix = {
    BOTH_FORMS,
    .variant = SL_VARIANT_COMPRESS_THEN_MIX,
    .stages = compress_then_mix,
    .settle = mix_replicas,
};

static bool has_model_to_send(const sl_state *s) {
    return s->exchange > 1 && !restates(s);
}

static void adapt_and_mix(sl_state *s, size_t from, size_t count) {
    sl_local_step(s, from, count);
    mix_replicas(s, from, count);
}

static const sl_stage mix_then_compress[] = {
    {.wanted = has_model_to_send,
     .speaks = had_moved,
     .read = read_difference,
     .own = take_own,
     .combine = take_theirs},
    {.plain = true,
     .restates = true,
     .wanted = restates,
     .prepare = take_model,
     .vector = sl_publish_model,
     .combine = take_theirs},
};

const sl_algorithm sl_choco_mix_then_compress = {
    BOTH_FORMS,
    .variant = SL_VARIANT_MIX_THEN_COMPRESS,
    .publishes_old_model = true,
    .begins_silent = true,
    .stages = mix_then_compress,
    .settle = adapt_and_mix,
};
