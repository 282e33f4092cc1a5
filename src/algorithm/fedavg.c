/* fedavg.c - FedAvg: McMahan, Moore, Ramage, Hampson, Aguera y Arcas, "Communication-Efficient
 * Learning of Deep Networks from Decentralized Data", AISTATS 2017, Algorithm 1.
 *
 *   before each H rounds (`local_steps`):  S = m nodes at random, m = max(1, round(clients n))
 *   in these rounds, each k in S:          x_k <- x_k - gamma mom(g_k); mom begins at 0
 *   then on all nodes:                     x <- sum_{k in S} (n_k / sum_{j in S} n_j) x_k
 *
 * n_k are the node's training samples, or 1 (`client_weights`). All clients take H steps, which
 * stand for the paper's epochs. The others keep the last common model; nobody uses their gradients.
 * All nodes must start from the same model. S is drawn for each exchange, the same on all nodes.
 * Memory beside x, g, momentum: the sum. Wire, every H rounds: 32 d bits up from each k in S, with
 * n_k in the header; 32 d down to all.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "starling/rng.h"
#include "vec/finite.h"

enum { SUM, VECTORS };              /* sum_{k in S} n_k x_k, of a server */
enum { IS_CLIENT, TOTAL, NUMBERS }; /* TOTAL: sum_{k in S} n_k */

static size_t numbers(const sl_algorithm_config *c) {
    (void)c;
    return NUMBERS;
}

/* Node after node is taken with the share of those wanted among those left: all sets of m are
 * equally likely (Knuth, TAOCP 2, 3.4.2, Algorithm S). */
static bool is_chosen(const sl_state *s, uint64_t exchange) {
    const double wanted = floor(s->config->clients * s->nodes + 0.5);
    uint32_t left = wanted > 1 ? (uint32_t)wanted : 1;
    sl_rng rng = sl_rng_open(s->seed, 0, exchange, SL_PURPOSE_CLIENTS);
    bool is_taken = false;
    for (uint32_t i = 0; i <= s->rank; i++) {
        is_taken = sl_rng_below(&rng, s->nodes - i) < left;
        left -= is_taken;
    }
    return is_taken;
}

static bool is_client(sl_state *s) {
    return s->own_numbers[IS_CLIENT] != 0;
}

static double weight(const sl_state *s) {
    return s->config->client_weights == SL_CLIENTS_SAMPLES ? s->samples : 1;
}

static void choose(sl_state *s) {
    const uint64_t steps = s->config->local_steps > 1 ? s->config->local_steps : 1;
    s->own_numbers[IS_CLIENT] = is_chosen(s, (s->round - 1) / steps + 1);
    s->own_numbers[TOTAL] = is_client(s) ? weight(s) : 0;
}

static void step(sl_state *s, size_t from, size_t count) {
    if (is_client(s))
        sl_local_step(s, from, count);
}

static void begin_sum(sl_state *s, size_t from, size_t count) {
    step(s, from, count);
    s->vec->combine(s->extra[SUM] + from, (const float *const[]){s->x + from},
                    (const float[]){is_client(s) ? (float)weight(s) : 0}, 1, count);
}

/* A message's first part counts for its weight. */
static void add(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_terms terms = sl_terms_begin(s, s->extra[SUM] + from, count);
    sl_terms_add(&terms, s->extra[SUM] + from, 1);
    for (size_t j = 0; j < mix->k; j++) {
        const sl_part *part = &mix->parts[j];
        sl_terms_add(&terms, part->payload.data, (float)part->scalar);
        s->own_numbers[TOTAL] += part->index == 0 ? part->scalar : 0;
    }
    sl_terms_end(&terms);
}

static void divide(sl_state *s, size_t from, size_t count) {
    s->vec->combine(s->x + from, (const float *const[]){s->extra[SUM] + from},
                    (const float[]){(float)(1 / s->own_numbers[TOTAL])}, 1, count);
    if (s->vec->on_host && !sl_vec_is_finite(s->x + from, count))
        s->is_finite = false;
}

static const sl_stage stages[] = {
    {.plain = true,
     .speaks = is_client,
     .says = weight,
     .prepare = begin_sum,
     .vector = sl_publish_model,
     .combine = add},
    {.plain = true,
     .gather = true,
     .prepare = divide,
     .vector = sl_publish_model,
     .combine = sl_copy_model},
};

/* Of those who wait for the next turn, too. */
static void forget(sl_state *s, size_t from, size_t count) {
    if (s->m != NULL)
        s->vec->fill(s->m + from, 0, count);
}

const sl_algorithm sl_fedavg = {
    .name = "fedavg",
    .route = SL_ROUTE_SERVER,
    .takes_momentum = true,
    .takes_sgd_only = true,
    .takes_local_steps = true,
    .tied_to_members = true,
    .keys = "clients client_weights",
    .extra_vectors = VECTORS,
    .own_numbers = numbers,
    .take_gradient = choose,
    .stages = stages,
    .stage_count = 2,
    .local = step,
    .settle = forget,
};
