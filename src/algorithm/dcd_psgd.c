/* dcd_psgd.c - DCD-PSGD, difference compression: Tang, Gan, Zhang, Zhang, Liu, "Communication Compression for Decentralized Training",
 * NeurIPS 2018, Algorithm 1.
 *
 *   h_i = sum_j W_ij xhat_j - gamma mom(g_i(x_i));  q_i = C(h_i - x_i);  x_i += q_i;  xhat_j += q_j
 *
 * W symmetric, doubly stochastic and fixed; C unbiased with low variance. Since xhat_i = x_i always, the replicas are kept only as their sum
 * s_i = sum_j W_ij xhat_j: one vector beside x, whatever the degree. The difference h - x takes the gradient's place.
 * Wire: one compressed message a round; in the first exchange the model itself before it, so that starts may differ.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"

enum { SUM = 0 };

static bool is_first(const sl_state *s) {
    return s->exchange == 1;
}

static void sum_models(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_mix_into(s, s->extra[SUM] + from, s->x + from, mix, mix->self_weight, 1, 0, count);
}

/* g <- h - x */
static void form_difference(sl_state *s, size_t from, size_t count) {
    const float *sum = s->extra[SUM];
    for (size_t at = from; at < from + count; at += s->block) {
        size_t n = from + count - at < s->block ? from + count - at : s->block;
        s->vec->combine(s->scratch, (const float *const[]){sum + at}, (const float[]){1}, 1, n);
        sl_descend(s, s->scratch, s->x + at, at, n);
        s->vec->combine(s->g + at, (const float *const[]){s->scratch, s->x + at}, (const float[]){1, -1}, 2, n);
    }
}

static void take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, 1, s->x);
    sl_part_add(mine, mine->weight, s->extra[SUM]);
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    for (size_t j = 0; j < mix->k; j++)
        sl_part_add(&mix->parts[j], mix->parts[j].weight, s->extra[SUM]);
}

static const sl_stage stages[] = {
    {.plain = true, .wanted = is_first, .vector = sl_publish_model, .combine = sum_models},
    {.prepare = form_difference, .vector = sl_publish_gradient, .own = take_own, .combine = take_theirs},
};

const sl_algorithm sl_dcd_psgd = {
    .name = "dcd-psgd",
    .matrix = SL_MATRIX_SYMMETRIC,
    .fixed_matrix = true,
    .keeps_gradient = true,
    .compressor = SL_TAKES_UNBIASED,
    .takes_momentum = true,
    .extra_vectors = 1,
    .stages = stages,
    .stage_count = 2,
};
