/* dcd_psgd.c - DCD-PSGD, difference compression: Tang, Gan, Zhang, Zhang, Liu, "Communication
 * Compression for Decentralized Training", NeurIPS 2018, Algorithm 1.
 *
 *   h_i = sum_j W_ij xhat_j - gamma mom(g_i(x_i));  q_i = C(h_i - x_i);  x_i += q_i;  xhat_j += q_j
 *
 * W symmetric, doubly stochastic and, unless each neighbour's replica is kept, fixed; C unbiased
 * with low variance. xhat_i = x_i always, and the others are kept as the sum s_i = sum_j W_ij
 * xhat_j: one vector beside x, whatever the degree; or each. The difference h - x takes the
 * gradient's place. Wire: one compressed message a round; in the first exchange the model itself
 * before it, so that starts may differ.
 */
#include "algorithm/algorithms.h"
#include "algorithm/gossip/replicas.h"

static bool is_first(const sl_state *s) {
    return s->exchange == s->first_exchange;
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_replicas_take(s, mix);
}

static void take_models(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    if (sl_replicas_are_summed(s))
        sl_mix_into(s, s->replicas[0] + from, s->x + from, mix, mix->self_weight, 1, 0, count);
    else
        take_theirs(s, mix, from, count);
}

/* out = sum_j W_ij xhat_j; the sum that is kept has the own one in it. */
static void mix_replicas(const sl_state *s, float *out, size_t from, size_t count) {
    sl_terms sum = sl_terms_begin(s, out, count);
    if (!sl_replicas_are_summed(s) || s->alone)
        sl_terms_add(&sum, s->x + from, s->self_weight);
    sl_replicas_add_to(&sum, s, 1, from);
    sl_terms_end(&sum);
}

/* g <- h - x */
static void form_difference(sl_state *s, size_t from, size_t count) {
    for (size_t at = from; at < from + count; at += s->block) {
        size_t n = from + count - at < s->block ? from + count - at : s->block;
        mix_replicas(s, s->scratch, at, n);
        sl_descend(s, s->scratch, s->x + at, at, n);
        s->vec->combine(s->g + at, (const float *const[]){s->scratch, s->x + at},
                        (const float[]){1, -1}, 2, n);
    }
}

static void take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, 1, s->x);
    if (sl_replicas_are_summed(s))
        sl_part_add(mine, mine->weight, s->replicas[0]);
}

static const sl_stage stages[] = {
    {.plain = true, .wanted = is_first, .vector = sl_publish_model, .combine = take_models},
    {.prepare = form_difference,
     .vector = sl_publish_gradient,
     .own = take_own,
     .combine = take_theirs},
};

const sl_algorithm sl_dcd_psgd = {
    .name = "dcd-psgd",
    .matrix = SL_MATRIX_SYMMETRIC,
    .lazy_below = sl_lazy_while_adapting,
    .fixed_matrix = true,
    .keeps_replicas = true,
    .keeps_gradient = true,
    .compressor = SL_TAKES_UNBIASED,
    .takes_momentum = true,
    .stages = stages,
    .stage_count = 2,
};
