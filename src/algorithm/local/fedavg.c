/* fedavg.c - FedAvg: McMahan, Moore, Ramage, Hampson, Aguera y Arcas, "Communication-Efficient
 * Learning of Deep Networks from Decentralized Data", AISTATS 2017, Algorithm 1.
 *
 *   before each H rounds:        S = m nodes at random, m = max(1, round(clients n))
 *   each k in S, in H_k rounds:  x_k <- x_k - gamma mom(g_k); mom begins at 0
 *   then on all nodes:           x <- sum_{k in S} (n_k / sum_{j in S} n_j) x_k
 *
 * S, H_k and n_k are those of clients.h. The others keep the last common model; nobody uses their
 * gradients. All nodes must start from the same model. Memory beside x, g, momentum: the sum. Wire,
 * every H rounds: 32 d bits up from each k in S, with n_k in the header; 32 d down to all. With a
 * compressor: compressed_fedavg.c.
 */
#include "algorithm/algorithms.h"
#include "algorithm/local/clients.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"
#include "vec/finite.h"

enum { SUM, VECTORS }; /* sum_{k in S} n_k x_k, of a server */

static void begin_sum(sl_state *s, size_t from, size_t count) {
    sl_clients_step(s, from, count);
    s->vec->combine(s->extra[SUM] + from, (const float *const[]){s->x + from},
                    (const float[]){sl_clients_is_one(s) ? (float)sl_clients_weight(s) : 0}, 1,
                    count);
}

static void add(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_terms terms = sl_terms_begin(s, s->extra[SUM] + from, count);
    sl_terms_add(&terms, s->extra[SUM] + from, 1);
    for (size_t j = 0; j < mix->k; j++)
        sl_terms_add(&terms, mix->parts[j].payload.data, (float)mix->parts[j].scalar);
    sl_terms_end(&terms);
    sl_clients_hear(s, mix);
}

static void divide(sl_state *s, size_t from, size_t count) {
    sl_clients_divide(s, s->x + from, s->extra[SUM] + from, count);
    if (s->vec->on_host && !sl_vec_is_finite(s->x + from, count))
        s->is_finite = false;
}

static bool is_plain(const sl_algorithm_config *config) {
    return config->compressor.kind == SL_COMPRESSOR_IDENTITY;
}

static const sl_stage stages[] = {
    {.plain = true,
     .speaks = sl_clients_is_one,
     .says = sl_clients_weight,
     .prepare = begin_sum,
     .vector = sl_publish_model,
     .combine = add},
    {.plain = true,
     .gather = true,
     .prepare = divide,
     .vector = sl_publish_model,
     .combine = sl_copy_model},
};

static const sl_key keys[] = {
    SL_ROWS_CLIENTS,
    SL_KEYS_END,
};

const sl_algorithm sl_fedavg = {
    .name = "fedavg",
    .when = is_plain,
    .route = SL_ROUTE_SERVER,
    .takes_momentum = true,
    .takes_sgd_only = true,
    .takes_local_steps = true,
    .keys = keys,
    .extra_vectors = VECTORS,
    .own_numbers = sl_clients_numbers,
    .check = sl_clients_check,
    .needs_all = sl_clients_need_all,
    .take_gradient = sl_clients_choose,
    .stages = stages,
    .stage_count = 2,
    .local = sl_clients_step,
    .settle = sl_clients_forget,
};
