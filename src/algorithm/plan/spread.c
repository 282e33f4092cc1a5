/* spread.c - how far apart the rounds of two nodes can be.
 *
 * A node ends an exchange once its in-neighbours have begun it, so it can be one exchange ahead of
 * them, two ahead of theirs, and so on: as many as news takes to come to it from all. A round
 * without an exchange waits for nobody. Exact up to EXACT_MAX nodes; of more it is at most the time
 * to one node and from there to all.
 */
#include <stdlib.h>
#include <string.h>

#include "algorithm/algorithms.h"
#include "topology/graph/endless.h"

enum { EXACT_MAX = 2048, BITS = 64 };

/* What each node has heard of, a row of bits each. */
typedef struct hearing {
    const sl_topology *topology;
    uint32_t nodes;
    size_t words;          /* of a row */
    uint64_t *heard, *now; /* (nodes, words) */
} hearing;

static bool all_have_heard(const hearing *h, uint32_t of) {
    for (uint32_t i = 0; i < h->nodes; i++)
        for (uint32_t j = 0; j < of; j++)
            if ((h->heard[i * h->words + j / BITS] >> j % BITS & 1) == 0)
                return false;
    return true;
}

static void hear(hearing *h, uint64_t round, bool backwards) {
    memcpy(h->now, h->heard, h->nodes * h->words * sizeof *h->now);
    for (uint32_t i = 0; i < h->nodes; i++) {
        const sl_row from = backwards ? sl_topology_out(h->topology, round, i)
                                      : sl_topology_in(h->topology, round, i);
        for (uint32_t k = 0; k < from.count; k++)
            for (size_t w = 0; w < h->words; w++)
                h->now[i * h->words + w] |= h->heard[from.peers[k] * h->words + w];
    }
    uint64_t *swapped = h->heard;
    h->heard = h->now;
    h->now = swapped;
}

/* Rounds from `first` on until all have heard of nodes [0, of); 0: they never do. */
static uint64_t rounds_to_hear(hearing *h, uint64_t first, uint32_t of, bool backwards) {
    const uint64_t period = sl_topology_period(h->topology), most = h->nodes * period;
    memset(h->heard, 0, h->nodes * h->words * sizeof *h->heard);
    for (uint32_t j = 0; j < of; j++)
        h->heard[j * h->words + j / BITS] |= UINT64_C(1) << j % BITS;
    for (uint64_t k = 0; k <= most; k++) {
        if (all_have_heard(h, of))
            return k > 0 ? k : 1;
        const uint64_t step = k % period, slot = backwards ? period - step : step;
        hear(h, (first - 1 + slot) % period + 1, backwards);
    }
    return 0;
}

static uint64_t longest(hearing *h, uint32_t of, bool backwards) {
    uint64_t most = 0;
    for (uint64_t first = 1; first <= sl_topology_period(h->topology); first++) {
        const uint64_t rounds = rounds_to_hear(h, first, of, backwards);
        if (rounds == 0)
            return 0;
        most = rounds > most ? rounds : most;
    }
    return most;
}

static int spread_of(uint64_t *rounds, const sl_topology *topology, sl_error *error) {
    if (sl_topology_is_endless(topology)) {
        *rounds = SL_ENDLESS_HEARD;
        return 0;
    }
    hearing h = {.topology = topology, .nodes = sl_topology_nodes(topology)};
    const bool exact = h.nodes <= EXACT_MAX;
    h.words = exact ? (h.nodes + BITS - 1) / BITS : 1;
    h.heard = calloc(h.nodes * h.words, sizeof *h.heard);
    h.now = calloc(h.nodes * h.words, sizeof *h.now);
    int result = 0;
    if (h.heard == NULL || h.now == NULL) {
        result = sl_fail(error, SL_ENOMEM, "topology: out of memory for %u nodes", h.nodes);
    } else {
        const uint64_t there = longest(&h, exact ? h.nodes : 1, false),
                       back = exact ? 1 : longest(&h, 1, true);
        if (there == 0 || back == 0)
            result = sl_fail(error, SL_EINVAL,
                             "topology: is not connected, so that no checkpoint of all nodes is "
                             "sure to exist; set checkpoint.every 0");
        else
            *rounds = exact ? there : there + back;
    }
    free(h.heard);
    free(h.now);
    return result;
}

int sl_algorithm_spread(uint64_t *rounds, const sl_algorithm_config *config,
                        const sl_topology *topology, sl_error *error) {
    const sl_algorithm *a = sl_algorithm_of(config, error);
    if (a == NULL)
        return SL_EINVAL;
    const uint64_t interval = sl_algorithm_interval(a, config);
    uint64_t exchanges = 1;
    const bool edges =
        a->route == SL_ROUTE_TOPOLOGY || a->route == SL_ROUTE_EDGES || a->route == SL_ROUTE_BOTH;
    int result = edges ? spread_of(&exchanges, topology, error) : 0;
    if (a->route == SL_ROUTE_TREE) /* no tree is deeper */
        exchanges = sl_topology_nodes(topology);
    if (a->route == SL_ROUTE_BOTH && sl_algorithm_average_period(a, config) < exchanges)
        exchanges = sl_algorithm_average_period(a, config);
    if (result == 0)
        *rounds = exchanges * interval + a->idle_rounds + (a->begins_silent ? interval - 1 : 0);
    return result;
}
