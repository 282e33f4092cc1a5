/* clients.c - see clients.h. */
#include "algorithm/clients.h"

#include "algorithm/algorithms.h"
#include "starling/rng.h"

size_t sl_clients_numbers(const sl_algorithm_config *config) {
    (void)config;
    return SL_CLIENTS_NUMBERS;
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

bool sl_clients_is_one(sl_state *s) {
    return s->own_numbers[SL_CLIENTS_IS_ONE] != 0;
}

double sl_clients_weight(const sl_state *s) {
    return s->config->client_weights == SL_CLIENTS_SAMPLES ? s->samples : 1;
}

void sl_clients_choose(sl_state *s) {
    const uint64_t steps = s->config->local_steps > 1 ? s->config->local_steps : 1;
    s->own_numbers[SL_CLIENTS_IS_ONE] = is_chosen(s, (s->round - 1) / steps + 1);
    s->own_numbers[SL_CLIENTS_TOTAL] = sl_clients_is_one(s) ? sl_clients_weight(s) : 0;
}

void sl_clients_hear(sl_state *s, const sl_part *part) {
    s->own_numbers[SL_CLIENTS_TOTAL] += part->index == 0 ? part->scalar : 0;
}

void sl_clients_step(sl_state *s, size_t from, size_t count) {
    if (sl_clients_is_one(s))
        sl_local_step(s, from, count);
}

void sl_clients_forget(sl_state *s, size_t from, size_t count) {
    if (s->m != NULL)
        s->vec->fill(s->m + from, 0, count);
}
