/* ecd_psgd.c - ECD-PSGD, extrapolation compression: Tang, Gan, Zhang, Zhang, Liu, NeurIPS 2018,
 * Algorithm 2.
 *
 *   t = 1, 2, ...:  x+_i = sum_j W_ij xtilde_j - gamma mom(g_i(x_i))           (own xtilde, not x)
 *                   z_i = (1 - t/2) x_i + (t/2) x+_i;  send C(z_i);  x_i <- x+_i
 *                   xtilde_j <- (1 - 2/t) xtilde_j + (2/t) C(z_j)              (every coordinate)
 *
 * W symmetric, doubly stochastic and fixed; C unbiased. All that is needed of the estimates is s_i
 * = sum_j W_ij xtilde_j: one vector beside x, whatever the degree. z takes the gradient's place.
 * Wire: one compressed message a round; in a view's first exchange the model itself before it, so
 * that starts may differ.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"

enum { SUM = 0 };

static bool is_first(const sl_state *s) {
    return s->exchange == s->first_exchange;
}

/* t/2, counted from the view's first exchange. */
static float half_of(const sl_state *s) {
    return (float)(s->exchange - s->first_exchange + 1) / 2;
}

static void sum_models(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_mix_into(s, s->extra[SUM] + from, s->x + from, mix, mix->self_weight, 1, 0, count);
}

/* x <- x+, g <- z, s <- (1 - 2/t) s: what the messages are then added to. */
static void extrapolate(sl_state *s, size_t from, size_t count) {
    float *sum = s->extra[SUM];
    const float half = half_of(s);
    for (size_t at = from; at < from + count; at += s->block) {
        size_t n = from + count - at < s->block ? from + count - at : s->block;
        sl_copy(s, s->scratch, (s->alone ? s->x : sum) + at, n);
        sl_descend(s, s->scratch, s->x + at, at, n);
        s->vec->combine(s->g + at, (const float *const[]){s->x + at, s->scratch},
                        (const float[]){1 - half, half}, 2, n);
        sl_copy(s, s->x + at, s->scratch, n);
        s->vec->combine(sum + at, (const float *const[]){sum + at}, (const float[]){1 - 1 / half},
                        1, n);
    }
}

static float share_of(const sl_state *s, const sl_part *part) {
    return part->weight / half_of(s);
}

static void add_estimate(sl_state *s, const sl_part *part) {
    sl_part_add(part, share_of(s, part), s->extra[SUM]);
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add_by(s, mix, share_of, s->extra[SUM]);
}

static const sl_stage stages[] = {
    {.plain = true, .wanted = is_first, .vector = sl_publish_model, .combine = sum_models},
    {.prepare = extrapolate,
     .vector = sl_publish_gradient,
     .own = add_estimate,
     .combine = take_theirs},
};

const sl_algorithm sl_ecd_psgd = {
    .name = "ecd-psgd",
    .matrix = SL_MATRIX_SYMMETRIC,
    .lazy_below = sl_lazy_while_adapting,
    .fixed_matrix = true,
    .keeps_gradient = true,
    .compressor = SL_TAKES_UNBIASED,
    .takes_momentum = true,
    .extra_vectors = 1,
    .stages = stages,
    .stage_count = 2,
};
