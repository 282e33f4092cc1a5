/* beer.c - BEER: Zhao, Li, Li, Richtarik, Chi, "BEER: Fast O(1/T) Rate for Decentralized Nonconvex
 * Optimization with Communication Compression", NeurIPS 2022, Algorithm 1.
 *
 * Gradient tracking whose two vectors are sent as EF21 sends gradients: what is compressed is the
 * difference to what all know. H_i = G_i = 0, V_i = g_i(x_i(0)) at first.
 *
 *   x_i <- x_i + gamma_c sum_j W_ij (H_j - H_i) - gamma V_i;  q_i = C(x_i - H_i), sent;  H_j += q_j
 *   V_i <- V_i + gamma_c sum_j W_ij (G_j - G_i) + g_i(x_i) - g_i(x_i before);
 *                                                             r_i = C(V_i - G_i), sent;  G_j += r_j
 *
 * A round takes its gradient first, so it begins with the second line; in the first round of a view
 * that only sets V, and all else is 0. W symmetric, doubly stochastic and fixed; C contractive,
 * biased is fine. The mean of V is the mean gradient. Memory beside x and g: H, G, their
 * neighbours' sums, V and the last gradient, six vectors. Wire: two compressed messages a round.
 * The authors' program (liboyue/beer) begins with H = C(x_i(0)) and G = C(V), which takes a message
 * of each more.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

enum { MODEL = 0, MODEL_SUM, GRADIENT, GRADIENT_SUM, TRACKER, LAST };

/* v += gamma_c (sum_{j != i} W_ij hat_j - given hat) + factor u - last */
static void mix(sl_state *s, float *v, int hat, size_t from, const float *u, float factor,
                const float *last, size_t count) {
    const float step = s->alone ? 0 : s->step_size;
    s->vec->combine(
        v, (const float *const[]){v, s->extra[hat + 1] + from, s->extra[hat] + from, u, last},
        (const float[]){1, step, -step * sl_given(s), factor, -1}, last != NULL ? 5 : 4, count);
}

static void track(sl_state *s, size_t from, size_t count) {
    sl_regularize(s, s->x + from, from, count);
    mix(s, s->extra[TRACKER] + from, GRADIENT, from, s->g + from, 1, s->extra[LAST] + from, count);
}

static bool is_later(const sl_state *s) {
    return s->exchange > s->first_exchange;
}

static void step(sl_state *s, size_t from, size_t count) {
    if (!is_later(s))
        track(s, from, count);
    mix(s, s->x + from, MODEL, from, s->extra[TRACKER] + from, -s->sgd.learning_rate, NULL, count);
}

static void read_tracker(void *state, size_t from, size_t count, float *out) {
    const sl_state *s = state;
    sl_subtract(s, out, s->extra[TRACKER] + from, s->extra[GRADIENT] + from, count);
}

static void read_model(void *state, size_t from, size_t count, float *out) {
    const sl_state *s = state;
    sl_subtract(s, out, s->x + from, s->extra[MODEL] + from, count);
}

static void take_own_tracker(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, 1, s->extra[GRADIENT]);
}

static void take_own_model(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, 1, s->extra[MODEL]);
}

static void take_trackers(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, 1, s->extra[GRADIENT_SUM]);
}

static void take_models(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, 1, s->extra[MODEL_SUM]);
}

static void keep_gradient(sl_state *s) {
    sl_swap(&s->g, &s->extra[LAST]);
}

static void begin_again(sl_state *s, size_t dimension) {
    for (int own = MODEL; own <= LAST; own++)
        s->vec->fill(s->extra[own], 0, dimension);
}

static const sl_stage stages[] = {
    {.wanted = is_later,
     .prepare = track,
     .read = read_tracker,
     .own = take_own_tracker,
     .combine = take_trackers},
    {.prepare = step, .read = read_model, .own = take_own_model, .combine = take_models},
};

static const sl_key keys[] = {
    {SL_ROW_CONSENSUS_STEP, .help = "step size of the mixing, 0 = derived from the compressor"},
    SL_KEYS_END,
};

const sl_algorithm sl_beer = {
    .name = "beer",
    .matrix = SL_MATRIX_SYMMETRIC,
    .fixed_matrix = true,
    .compressor = SL_TAKES_CONTRACTIVE,
    .step_rule = SL_STEP_CONSENSUS,
    .keys = keys,
    .keeps_gradient = true,
    .extra_vectors = 6,
    .stages = stages,
    .stage_count = 2,
    .restart = begin_again,
    .finish = keep_gradient,
};
