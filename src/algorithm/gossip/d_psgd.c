/* d_psgd.c - D-PSGD: Lian, Zhang, Zhang, Hsieh, Zhang, Liu, "Can Decentralized Algorithms
 * Outperform Centralized Algorithms?", NeurIPS 2017.
 *
 * gamma: learning rate; mom(g): the SGD direction with momentum and weight decay; W doubly
 * stochastic.
 *
 *   adapt-then-combine (Sayed's diffusion):  u_i = x_i - gamma mom(g_i(x_i));  x_i <- sum_j W_ij
 *                                            u_j
 *   combine-while-adapt (Algorithm 1):       x_i <- sum_j W_ij x_j - gamma mom(g_i(x_i)), gradient
 *                                            at the old x_i
 *
 * Wire: 32 d bits to each out-neighbour. Memory beside x, g, momentum: none for the first (u and
 * the sum live in x); for the second one accumulator, because the gradient still reads the old x
 * while the sum is formed. combine-while-adapt is stable only if gamma L < 1 + lambda_min(W).
 *
 * A driver whose user takes the steps lends a vector v of its own (sl_node_lend): x_i <- sum_j W_ij
 * v_j, and no gradient. v is what both forms would send: an adapted u, or an old x.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"

enum { ACCUMULATOR = 0 };

static bool lends(const sl_state *s) {
    return s->lends;
}

static const float *old_model(const sl_state *s) {
    return s->lent != NULL ? s->lent : s->x;
}

static void combine_aside(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_mix_into(s, s->extra[ACCUMULATOR] + from, old_model(s) + from, mix, mix->self_weight, 1, 0,
                count);
}

static void adapt_sum(sl_state *s, size_t from, size_t count) {
    if (s->lent == NULL)
        sl_descend(s, s->extra[ACCUMULATOR] + from, s->x + from, from, count);
}

static void take_sum(sl_state *s) {
    sl_swap(&s->x, &s->extra[ACCUMULATOR]);
    s->lent = NULL;
}

/* Masked, it is another row. */
static bool is_whole(const sl_algorithm_config *config) {
    return config->compressor.kind != SL_COMPRESSOR_SHARED_MASK;
}

static const sl_stage adapted[] = {{.in_place = true,
                                    .prepare = sl_local_step,
                                    .vector = sl_publish_model,
                                    .combine = sl_mix_models}};

const sl_algorithm sl_d_psgd_adapt_then_combine = {
    .name = "d-psgd",
    .variant = SL_VARIANT_ADAPT_THEN_COMBINE,
    .when = is_whole,
    .matrix = SL_MATRIX_DOUBLY,
    .lazy_below = sl_lazy_adapting,
    .takes_momentum = true,
    .takes_local_steps = true,
    .stages = adapted,
    .stage_count = 1,
    .local = sl_local_step,
};

static const sl_stage as_it_was[] = {{.vector = old_model, .combine = combine_aside}};

const sl_algorithm sl_d_psgd_combine_while_adapt = {
    .name = "d-psgd",
    .variant = SL_VARIANT_COMBINE_WHILE_ADAPT,
    .matrix = SL_MATRIX_DOUBLY,
    .lazy_below = sl_lazy_while_adapting,
    .takes_momentum = true,
    .takes_local_steps = true,
    .publishes_old_model = true,
    .waits = lends,
    .extra_vectors = 1,
    .stages = as_it_was,
    .stage_count = 1,
    .local = sl_local_step,
    .settle = adapt_sum,
    .finish = take_sum,
};
