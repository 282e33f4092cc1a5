/* lead.c - LEAD: Liu, Li, Wang, Tang, Yan, "Linear Convergent Decentralized Optimization with
 * Compression", ICLR 2021, Algorithm 1.
 *
 *   y_i = x_i - gamma g_i(x_i) - gamma D_i;   q_i = C(y_i - H_i), sent;    D_i = H_i = 0 at first
 *   p_i = H_i + q_i - sum_j W_ij (H_j + q_j);         H_i <- H_i + alpha q_i
 *   D_i <- D_i + gamma_c/(2 gamma) p_i;               x_i <- x_i - gamma g_i - gamma D_i
 *
 * The first round of a view is a plain step, without an exchange; D_i = H_i = 0 then. W symmetric,
 * doubly stochastic and fixed; C unbiased. The D_i sum to 0. What is kept of the neighbours is E_i
 * = H_i - sum_j W_ij H_j, and the gradient's place takes q_i - sum_j W_ij q_j, so that p_i is their
 * sum; x_i = y_i - gamma_c/2 p_i. With a learning rate of 0 D stays. Memory beside x and g: D, H,
 * E, three vectors. Wire: one compressed message a round.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

enum { DUAL = 0, HAT, APART };

static void defaults(sl_algorithm_config *c) {
    sl_default(&c->alpha, 0.5);
}

static bool is_later(const sl_state *s) {
    return s->exchange > s->first_exchange;
}

/* x <- y, and g is free. */
static void adapt(sl_state *s, size_t from, size_t count) {
    const float rate = s->sgd.learning_rate;
    float *x = s->x + from, *g = s->g + from;
    sl_regularize(s, x, from, count);
    if (rate != 0)
        s->vec->combine(x, (const float *const[]){x, g, s->extra[DUAL] + from},
                        (const float[]){1, -rate, -rate}, 3, count);
    s->vec->fill(g, 0, count);
}

static void read_difference(void *state, size_t from, size_t count, float *out) {
    const sl_state *s = state;
    sl_subtract(s, out, s->x + from, s->extra[HAT] + from, count);
}

static void take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, (float)s->config->alpha, s->extra[HAT]);
    sl_part_add(mine, sl_given(s), s->g);
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, -1, s->g);
}

static void settle(sl_state *s, size_t from, size_t count) {
    if (!is_later(s)) {
        sl_local_step(s, from, count);
        return;
    }
    if (s->alone) /* x is y */
        return;
    const float rate = s->sgd.learning_rate, half = (float)s->config->gamma / 2;
    const float *q = s->g + from;
    float *x = s->x + from, *dual = s->extra[DUAL] + from, *apart = s->extra[APART] + from;
    s->vec->combine(x, (const float *const[]){x, apart, q}, (const float[]){1, -half, -half}, 3,
                    count);
    if (rate != 0)
        s->vec->combine(dual, (const float *const[]){dual, apart, q},
                        (const float[]){1, half / rate, half / rate}, 3, count);
    s->vec->combine(apart, (const float *const[]){apart, q},
                    (const float[]){1, (float)s->config->alpha}, 2, count);
}

static void begin_again(sl_state *s, size_t dimension) {
    for (int own = DUAL; own <= APART; own++)
        s->vec->fill(s->extra[own], 0, dimension);
}

static const sl_stage stages[] = {{.wanted = is_later,
                                   .prepare = adapt,
                                   .read = read_difference,
                                   .own = take_own,
                                   .combine = take_theirs}};

static const sl_key keys[] = {
    {SL_ROW_ALPHA, .help = "share of a message that its replicas follow, auto = 0.5"},
    {SL_OWN_REAL(gamma, 0, 1), .fallback = "1", .help = "step size of the mixing"},
    SL_KEYS_END,
};

const sl_algorithm sl_lead = {
    .name = "lead",
    .matrix = SL_MATRIX_SYMMETRIC,
    .fixed_matrix = true,
    .keeps_self = true,
    .compressor = SL_TAKES_UNBIASED,
    .keys = keys,
    .defaults = defaults,
    .begins_silent = true,
    .keeps_gradient = true,
    .extra_vectors = 3,
    .stages = stages,
    .stage_count = 1,
    .restart = begin_again,
    .settle = settle,
};
