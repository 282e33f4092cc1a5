/* schedules.c - time-varying families: a graph of few edges in each round, which mix well over a
 * period. */
#include <stdlib.h>

#include "starling/rng.h"
#include "topology/family/family.h"

#define SCHEDULE(label, text)                                                                      \
    .info = {.name = label, .meaning = text, .schedule = true, .weighting = SL_WEIGHTING_METROPOLIS}

/* Assran, Loizou, Ballas, Rabbat 2019; Ying, Yuan, Chen, Hu, Pan, Yin, "Exponential graph is
 * provably efficient", 2021: exact over a period for powers of two. */
static int generate_one_peer_exponential(const sl_topology_spec *spec, uint64_t attempt,
                                         edge_lists *out, sl_error *error) {
    (void)attempt, (void)error;
    for (uint32_t offset = 1; offset < spec->nodes; offset <<= 1) {
        edge_list *list = sl_edge_lists_add(out);
        for (uint32_t i = 0; i < spec->nodes; i++)
            sl_edge_list_push(list, i, (i + offset) % spec->nodes);
    }
    return 0;
}

static int generate_one_peer_hypercube(const sl_topology_spec *spec, uint64_t attempt,
                                       edge_lists *out, sl_error *error) {
    (void)attempt, (void)error;
    for (uint32_t bit = 1; bit < spec->nodes; bit <<= 1) {
        edge_list *list = sl_edge_lists_add(out);
        for (uint32_t i = 0; i < spec->nodes; i++)
            sl_edge_list_push(list, i, i ^ bit);
    }
    return 0;
}

static int settle_one_peer_hypercube(sl_topology_spec *spec, sl_error *error) {
    return sl_family_check_power_of_two(&sl_one_peer_hypercube_family, spec, error);
}

const family sl_one_peer_exponential_family = {
    .info = {.name = "one-peer-exponential",
             .meaning = "round k: i sends to i + 2^(k-1)",
             .schedule = true,
             .directed = true,
             .weighting = SL_WEIGHTING_UNIFORM},
    .nodes_min = 1,
    .generate = generate_one_peer_exponential,
    .info.examples = EXAMPLES("{\"nodes\": 8}", "{\"nodes\": 13}"),
    .info.transitive = true,
    .ranked = RANKED_PLAIN,
};
const family sl_one_peer_hypercube_family = {
    SCHEDULE("one-peer-hypercube", "round k: numbers that differ in bit k - 1; a power of two"),
    .nodes_min = 1,
    .settle = settle_one_peer_hypercube,
    .generate = generate_one_peer_hypercube,
    .info.examples = EXAMPLES("{\"nodes\": 16}"),
    .info.transitive = true,
    .ranked = RANKED_PLAIN,
};

/* ---- hyper-cuboid ---- */

static void prime_factors(sl_topology_spec *spec) {
    uint32_t rest = spec->nodes;
    spec->side_count = 0;
    for (uint32_t p = 2; (uint64_t)p * p <= rest; p++)
        for (; rest % p == 0; rest /= p)
            spec->sides[spec->side_count++] = p;
    if (rest > 1 || spec->side_count == 0)
        spec->sides[spec->side_count++] = rest;
}

static int settle_hyper_cuboid(sl_topology_spec *spec, sl_error *error) {
    if (spec->side_count == 0)
        prime_factors(spec);
    return sl_family_settle_sides(spec, error);
}

void sl_average_digit(edge_list *list, uint32_t first, uint32_t stride, uint32_t size,
                      uint32_t place, uint32_t radix) {
    for (uint32_t i = 0; i < size; i++) {
        uint32_t at = i / place % radix, zero = i - at * place;
        for (uint32_t digit = 0; digit < radix; digit++)
            if (digit != at)
                sl_edge_list_push_weighted(list, first + (zero + digit * place) * stride,
                                           first + i * stride, 1.0 / radix);
    }
}

static int generate_hyper_cuboid(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                                 sl_error *error) {
    (void)attempt;
    uint32_t place = 1;
    for (uint32_t d = spec->side_count; d-- > 0; place *= spec->sides[d]) {
        int result = sl_family_check_edges(&sl_hyper_cuboid_family, spec,
                                           (uint64_t)spec->nodes * (spec->sides[d] - 1), error);
        if (result != 0)
            return result;
        sl_average_digit(sl_edge_lists_add(out), 0, 1, spec->nodes, place, spec->sides[d]);
    }
    return 0;
}

const family sl_hyper_cuboid_family = {
    .info = {.name = "hyper-cuboid",
             .meaning = "each round: the mean of nodes that differ in one digit of a mixed radix",
             .schedule = true,
             .weighting = SL_WEIGHTING_EXPLICIT},
    .takes = TAKES(SIDES),
    .nodes_min = 1,
    .settle = settle_hyper_cuboid,
    .generate = generate_hyper_cuboid,
    .info.examples = EXAMPLES("{\"nodes\": 12}", "{\"nodes\": 30, \"sides\": [5, 6]}"),
    .info.transitive = true,
};

/* ---- matchings of a ring ---- */

static int settle_matchings(sl_topology_spec *spec, sl_error *error) {
    if (spec->nodes % 2 == 0)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "nodes: %u is odd, and family \"alternating-matchings\" pairs all nodes in each "
                   "round; choose an even number",
                   spec->nodes);
}

static int generate_matchings(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                              sl_error *error) {
    (void)attempt, (void)error;
    for (uint32_t first = 0; first < 2; first++) {
        edge_list *list = sl_edge_lists_add(out);
        for (uint32_t i = first; i < spec->nodes; i += 2)
            sl_edge_list_push_both(list, i, (i + 1) % spec->nodes);
    }
    return 0;
}

const family sl_alternating_matchings_family = {
    SCHEDULE("alternating-matchings",
             "the two perfect matchings of a ring, by turns; an even number"),
    .nodes_min = 2,
    .settle = settle_matchings,
    .generate = generate_matchings,
    .info.examples = EXAMPLES("{\"nodes\": 8}"),
    .ranked = RANKED_PLAIN,
};

/* ---- random pairs ---- */

/* Of an odd number, one node is left alone. */
static void pair_at_random(edge_list *list, sl_rng *rng, uint32_t n, uint32_t *order) {
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    sl_rng_shuffle(rng, order, n);
    for (uint32_t i = 0; i + 1 < n; i += 2)
        sl_edge_list_push_both(list, order[i], order[i + 1]);
}

static int generate_random_matching(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                                    sl_error *error) {
    const uint32_t n = spec->nodes;
    int result =
        sl_family_check_edges(&sl_random_matching_family, spec, (uint64_t)n * spec->period, error);
    uint32_t *order = malloc(n * sizeof *order);
    if (result == 0 && order == NULL)
        result = sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", n);
    for (uint32_t k = 0; result == 0 && k < spec->period; k++) {
        sl_rng rng = sl_rng_open(spec->seed, k, attempt, SL_PURPOSE_TOPOLOGY);
        pair_at_random(sl_edge_lists_add(out), &rng, n, order);
    }
    free(order);
    return result;
}

const family sl_random_matching_family = {
    SCHEDULE("random-matching", "each round: random pairs; of an odd number one node rests"),
    .info.random = true,
    .takes = TAKES(PERIOD) | TAKES(SEED),
    .nodes_min = 2,
    .raise = "period",
    .settle = sl_family_settle_period,
    .generate = generate_random_matching,
    .info.examples = EXAMPLES("{\"nodes\": 9}", "{\"nodes\": 20, \"period\": 12, \"seed\": 3}"),
};

/* ---- another random graph in every round ---- */

static int settle_epidemic(sl_topology_spec *spec, sl_error *error) {
    if (spec->weighting != SL_WEIGHTING_METROPOLIS)
        return sl_fail(error, SL_EINVAL,
                       "weights: family \"epidemic\" takes metropolis, or its lazy form");
    if (spec->degree < spec->nodes)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "degree: %u is not allowed for %u nodes; it must be from 1 to %u", spec->degree,
                   spec->nodes, spec->nodes - 1);
}

static int generate_epidemic(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                             sl_error *error) {
    const sl_endless e = {.nodes = spec->nodes, .degree = spec->degree, .seed = spec->seed};
    (void)attempt;
    /* over all rounds everybody meets everybody */
    int result = sl_family_check_edges(&sl_epidemic_family, spec,
                                       (uint64_t)spec->nodes * (spec->nodes - 1), error);
    uint32_t *peers = malloc(spec->degree * sizeof *peers);
    if (result == 0 && peers == NULL)
        result = sl_fail(error, SL_ENOMEM, "out of memory for %u neighbours", spec->degree);
    for (uint64_t round = 1; result == 0 && round <= SL_ENDLESS_SHOWN; round++) {
        edge_list *list = sl_edge_lists_add(out);
        for (uint32_t i = 0; i < spec->nodes; i++) {
            const uint32_t count = sl_endless_peers(&e, round, i, peers);
            for (uint32_t k = 0; k < count; k++)
                if (peers[k] < i)
                    sl_edge_list_push_both(list, peers[k], i);
        }
    }
    free(peers);
    return result;
}

const family sl_epidemic_family = {
    SCHEDULE("epidemic", "each round another random graph, which never repeats"),
    .info.random = true,
    .takes = TAKES(DEGREE) | TAKES(SEED),
    .needs = TAKES(DEGREE),
    .nodes_min = 2,
    .raise = "degree",
    .attempts_max = 1,
    .endless = true,
    .settle = settle_epidemic,
    .generate = generate_epidemic,
    .info.examples =
        EXAMPLES("{\"nodes\": 9, \"degree\": 3}", "{\"nodes\": 16, \"degree\": 4, \"seed\": 5}"),
};
