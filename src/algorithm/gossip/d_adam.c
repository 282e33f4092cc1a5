/* d_adam.c - decentralized Adam: DADAM, Nazari, Tarzanagh, Michailidis, "DADAM: A Consensus-Based
 * Distributed Adaptive Gradient Method for Online Optimization", 2019, without AMSGrad's maximum.
 *
 *   m_i <- beta1 m_i + (1 - beta1) g_i;  v_i <- beta2 v_i + (1 - beta2) g_i^2
 *   u_i = x_i - gamma (mhat_i / (sqrt(vhat_i) + epsilon) + lambda x_i);  x_i <- sum_j W_ij u_j
 *
 * W doubly stochastic; mhat, vhat without bias; lambda: optimizer.weight_decay. The moments are
 * local: with uneven data the v_i differ, and it ends elsewhere than Adam does. d-psgd with
 * optimizer.name "adamw" has the same numbers. Memory beside x and g: m and v, two vectors. Wire:
 * 32 d bits to each out-neighbour.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

enum { FIRST = 0, SECOND = 1 };

static void adapt(sl_state *s, size_t from, size_t count) {
    const sl_adam adam = sl_adam_of(s, (double)s->round);
    float *x = s->x + from, *g = s->g + from;
    if (s->sgd.learning_rate == 0)
        return;
    s->vec->adam_direction(g, x, s->extra[FIRST] + from, s->extra[SECOND] + from, &adam, count);
    s->vec->combine(x, (const float *const[]){x, g}, (const float[]){1, -s->sgd.learning_rate}, 2,
                    count);
}

static const sl_stage stages[] = {
    {.in_place = true, .prepare = adapt, .vector = sl_publish_model, .combine = sl_mix_models}};

static const sl_key keys[] = {
    {SL_ROW_BETA1},
    {SL_ROW_BETA2},
    {SL_ROW_EPSILON, .help = "added to the root of the second moment"},
    SL_KEYS_END,
};

const sl_algorithm sl_d_adam = {
    .name = "d-adam",
    .matrix = SL_MATRIX_DOUBLY,
    .keys = keys,
    .extra_vectors = 2,
    .stages = stages,
    .stage_count = 1,
};
