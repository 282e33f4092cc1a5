/* d_psgd.c - D-PSGD: Lian, Zhang, Zhang, Hsieh, Zhang, Liu, "Can Decentralized Algorithms Outperform Centralized Algorithms?",
 * NeurIPS 2017.
 *
 * gamma: learning rate; mom(g): the SGD direction with momentum and weight decay; W symmetric, doubly stochastic.
 *
 *   adapt-then-combine (Sayed's diffusion):  u_i = x_i - gamma mom(g_i(x_i));  x_i <- sum_j W_ij u_j
 *   combine-while-adapt (Algorithm 1):       x_i <- sum_j W_ij x_j - gamma mom(g_i(x_i)), gradient at the old x_i
 *
 * Wire: 4d bytes to each out-neighbour a round. Memory beside x, g, momentum: none for the first (u and the sum live in x); for the
 * second one accumulator, because the gradient still reads the old x while the sum is formed.
 * combine-while-adapt is stable only if gamma L < 1 + lambda_min(W).
 */
#include "algorithm/algorithms.h"

enum { ACCUMULATOR = 0 };

static const float *publish_model(const sl_state *s, size_t from) {
    return s->x + from;
}

/* A learning rate of 0 is pure gossip averaging: the gradient is not even read. */
static void step(sl_state *s, float *x, const float *x_decay, size_t from, size_t count) {
    if (s->sgd.learning_rate != 0)
        s->vec->sgd_step(x + from, x_decay + from, s->g + from, s->m ? s->m + from : NULL, &s->sgd, count);
}

static void adapt(sl_state *s, size_t from, size_t count) {
    step(s, s->x, s->x, from, count);
}

static void combine_in_place(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    float *x = s->x + from;
    s->compressor->accumulate(s->vec, x, x, mix->self_weight, mix->payloads, mix->weights, mix->k, count);
}

static void combine_aside(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    s->compressor->accumulate(s->vec, s->extra[ACCUMULATOR] + from, s->x + from, mix->self_weight, mix->payloads,
                              mix->weights, mix->k, count);
}

static void adapt_sum(sl_state *s, size_t dimension) {
    float *sum = s->extra[ACCUMULATOR];
    step(s, sum, s->x, 0, dimension);
    s->extra[ACCUMULATOR] = s->x;
    s->x = sum;
}

const sl_algorithm sl_d_psgd_adapt_then_combine = {
    .name = "d-psgd",
    .variant = SL_VARIANT_ADAPT_THEN_COMBINE,
    .doubly_stochastic = true,
    .combines_in_place = true,
    .local = adapt,
    .publish = publish_model,
    .combine = combine_in_place,
};

const sl_algorithm sl_d_psgd_combine_while_adapt = {
    .name = "d-psgd",
    .variant = SL_VARIANT_COMBINE_WHILE_ADAPT,
    .doubly_stochastic = true,
    .publishes_old_model = true,
    .extra_vectors = 1,
    .publish = publish_model,
    .combine = combine_aside,
    .settle = adapt_sum,
};
