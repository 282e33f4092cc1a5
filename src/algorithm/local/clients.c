/* clients.c - see clients.h. */
#include "algorithm/local/clients.h"

#include "algorithm/algorithms.h"
#include "starling/rng.h"

const char *const sl_client_weight_names[] = {"samples", "uniform", NULL};

/* m */
static uint32_t drawn(const sl_algorithm_config *c, uint32_t nodes) {
    const double wanted = floor(c->clients * nodes + 0.5);
    return wanted > 1 ? (uint32_t)wanted : 1;
}

static int check_weights(const sl_algorithm_config *c, uint32_t nodes, sl_error *error) {
    if (c->weights_of.count > 0 && c->weights_of.count != nodes)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.client_weights: has %zu numbers, the topology %u nodes; give one "
                       "for each, \"samples\" or \"uniform\"",
                       c->weights_of.count, nodes);
    uint32_t zeros = 0;
    for (size_t i = 0; i < c->weights_of.count; i++)
        zeros += c->weights_of.values[i] == 0;
    return c->clients_of.count > 0 || zeros < drawn(c, nodes)
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "algorithm.client_weights: %u are 0, and a turn may have just %u nodes; "
                         "fewer must be 0",
                         zeros, drawn(c, nodes));
}

static size_t set_begin(const sl_rank_sets *sets, size_t set) {
    return set > 0 ? sets->ends[set - 1] : 0;
}

static int check_set(const sl_algorithm_config *c, size_t set, uint32_t nodes, sl_error *error) {
    const size_t from = set_begin(&c->clients_of, set);
    const uint32_t *ranks = c->clients_of.ranks;
    double sum = 0;
    for (size_t i = from; i < c->clients_of.ends[set]; i++) {
        bool twice = false;
        for (size_t j = from; j < i; j++)
            twice = twice || ranks[j] == ranks[i];
        if (ranks[i] >= nodes || twice)
            return sl_fail(
                error, SL_EINVAL,
                "algorithm.clients[%zu]: rank %u %s; a list names some of the ranks 0 to "
                "%u, each once",
                set, ranks[i], twice ? "is there twice" : "is no node's", nodes - 1);
        sum += c->weights_of.count > 0 ? c->weights_of.values[ranks[i]] : 1;
    }
    return sum > 0 ? 0
                   : sl_fail(error, SL_EINVAL,
                             "algorithm.clients[%zu]: all of its nodes have an "
                             "algorithm.client_weights of 0; one must have more",
                             set);
}

int sl_clients_check(const sl_algorithm_config *c, const sl_topology *topology, sl_error *error) {
    const uint32_t nodes = sl_topology_nodes(topology);
    if (c->local_epochs > 0 && (c->local_steps > 1 || c->steps_of.count > 0))
        return sl_fail(
            error, SL_EINVAL,
            "algorithm.local_steps and algorithm.local_epochs both say how long a client "
            "trains; give one of them");
    if (c->steps_of.count > 0 && c->steps_of.count != nodes)
        return sl_fail(
            error, SL_EINVAL,
            "algorithm.local_steps: has %zu numbers, the topology %u nodes; give one for "
            "each, or one number for all",
            c->steps_of.count, nodes);
    int result = check_weights(c, nodes, error);
    for (size_t set = 0; result == 0 && set < c->clients_of.count; set++)
        result = check_set(c, set, nodes, error);
    return result;
}

const char *sl_clients_need_all(const sl_algorithm_config *c) {
    return c->clients_of.count > 0   ? "has lists of ranks in algorithm.clients"
           : c->weights_of.count > 0 ? "has a number for each rank in algorithm.client_weights"
           : c->steps_of.count > 0   ? "has a number for each rank in algorithm.local_steps"
                                     : NULL;
}

uint64_t sl_clients_steps(const sl_algorithm_config *c, double samples) {
    return c->local_epochs * (uint64_t)ceil(samples / c->batch);
}

size_t sl_clients_numbers(const sl_algorithm_config *config) {
    (void)config;
    return SL_CLIENTS_NUMBERS;
}

static bool is_in(const sl_rank_sets *sets, size_t set, uint32_t rank) {
    for (size_t i = set_begin(sets, set); i < sets->ends[set]; i++)
        if (sets->ranks[i] == rank)
            return true;
    return false;
}

/* Node after node is taken with the share of those wanted among those left: all sets of m are
 * equally likely (Knuth, TAOCP 2, 3.4.2, Algorithm S). */
static bool is_chosen(const sl_state *s, uint64_t exchange) {
    const sl_rank_sets *sets = &s->config->clients_of;
    if (sets->count > 0)
        return is_in(sets, (exchange - 1) % sets->count, s->rank); /* of all ranks */
    uint32_t left = drawn(s->config, s->nodes);
    sl_rng rng = sl_rng_open(s->seed, 0, exchange, SL_PURPOSE_CLIENTS);
    bool is_taken = false;
    for (uint32_t i = 0; i <= s->place; i++) {
        is_taken = sl_rng_below(&rng, s->nodes - i) < left;
        left -= is_taken;
    }
    return is_taken;
}

bool sl_clients_is_one(sl_state *s) {
    return s->own_numbers[SL_CLIENTS_IS_ONE] != 0;
}

double sl_clients_weight(const sl_state *s) {
    if (s->config->weights_of.count > 0)
        return s->config->weights_of.values[s->rank];
    return s->config->client_weights == SL_CLIENTS_SAMPLES ? s->samples : 1;
}

static uint64_t most_steps(const sl_state *s) {
    return s->config->local_steps > 1 ? s->config->local_steps : 1;
}

static uint64_t own_steps(const sl_state *s) {
    const sl_algorithm_config *c = s->config;
    if (c->local_epochs > 0)
        return sl_clients_steps(c, s->samples);
    return c->steps_of.count > 0 ? c->steps_of.values[s->rank] : most_steps(s);
}

void sl_clients_choose(sl_state *s) {
    s->own_numbers[SL_CLIENTS_IS_ONE] = is_chosen(s, (s->round - 1) / most_steps(s) + 1);
    s->own_numbers[SL_CLIENTS_TOTAL] = sl_clients_is_one(s) ? sl_clients_weight(s) : 0;
}

void sl_clients_hear(sl_state *s, const sl_mix *mix) {
    for (size_t j = 0; j < mix->k; j++)
        s->own_numbers[SL_CLIENTS_TOTAL] += mix->parts[j].index == 0 ? mix->parts[j].scalar : 0;
}

void sl_clients_divide(const sl_state *s, float *out, const float *sum, size_t count) {
    s->vec->combine(out, &sum, (const float[]){(float)(1 / s->own_numbers[SL_CLIENTS_TOTAL])}, 1,
                    count);
}

void sl_clients_step(sl_state *s, size_t from, size_t count) {
    if (sl_clients_is_one(s) && (s->round - 1) % most_steps(s) < own_steps(s))
        sl_local_step(s, from, count);
}

void sl_clients_forget(sl_state *s, size_t from, size_t count) {
    if (s->m != NULL)
        s->vec->fill(s->m + from, 0, count);
}
