/* equitopo.c - EquiTopo: Song, Li, Jin, Shi, Yan, Yin, Yuan, "Communication-efficient topologies
 * for decentralized learning with O(1) consensus rate", NeurIPS 2022.
 *
 * The basis: in A(u) every node i sends to i + u mod n; A(u) weighs what comes in by (n - 1)/n and
 * keeps 1/n. EquiStatic is the mean of M of them, with offsets u drawn without repetition, so that
 * every node has exactly the degree that was asked for; the undirected one averages A(u) and its
 * transpose. EquiDyn takes one of them a round, half of it and half of the identity (eta = 1/2): OD
 * as it is, OU a matching whose pairs are u apart, grown from a random node on.
 */
#include <stdlib.h>

#include "starling/rng.h"
#include "topology/family/family.h"

/* The first `count` of a random order of 1 .. most; NULL without memory. */
static uint32_t *draw_offsets(uint32_t most, uint32_t count, sl_rng *rng, sl_error *error) {
    uint32_t *offsets = malloc(((size_t)most + 1) * sizeof *offsets);
    if (offsets == NULL) {
        sl_fail(error, SL_ENOMEM, "out of memory for %u offsets", most);
        return NULL;
    }
    for (uint32_t u = 0; u < most; u++)
        offsets[u] = u + 1;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t other = k + sl_rng_below(rng, most - k), swap = offsets[k];
        offsets[k] = offsets[other];
        offsets[other] = swap;
    }
    return offsets;
}

static void send_around(edge_list *list, uint32_t n, uint32_t offset, double weight) {
    for (uint32_t i = 0; i < n; i++)
        sl_edge_list_push_weighted(list, i, (i + offset) % n, weight);
}

/* ---- static ---- */

static int settle_directed(sl_topology_spec *spec, sl_error *error) {
    if (spec->degree < spec->nodes)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "degree: %u is not allowed for %u nodes; it must be from 1 to %u", spec->degree,
                   spec->nodes, spec->nodes - 1);
}

static int generate_directed(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                             sl_error *error) {
    uint32_t n = spec->nodes, m = spec->degree;
    int result = sl_family_check_edges(&sl_d_equistatic_family, spec, (uint64_t)n * m, error);
    sl_rng rng = sl_rng_open(spec->seed, 0, attempt, SL_PURPOSE_TOPOLOGY);
    uint32_t *offsets = result == 0 ? draw_offsets(n - 1, m, &rng, error) : NULL;
    if (offsets == NULL)
        return result != 0 ? result : SL_ENOMEM;
    edge_list *list = sl_edge_lists_add(out);
    for (uint32_t k = 0; k < m; k++)
        send_around(list, n, offsets[k], (n - 1) / ((double)n * m));
    free(offsets);
    return 0;
}

/* An offset of n/2 would be one neighbour instead of two, and is not drawn. */
static int generate_undirected(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                               sl_error *error) {
    uint32_t n = spec->nodes, m = spec->degree;
    int result = sl_family_check_edges(&sl_u_equistatic_family, spec, (uint64_t)n * m, error);
    sl_rng rng = sl_rng_open(spec->seed, 0, attempt, SL_PURPOSE_TOPOLOGY);
    uint32_t *offsets = result == 0 ? draw_offsets((n - 1) / 2, m / 2, &rng, error) : NULL;
    if (offsets == NULL)
        return result != 0 ? result : SL_ENOMEM;
    edge_list *list = sl_edge_lists_add(out);
    for (uint32_t k = 0; k < m / 2; k++) {
        send_around(list, n, offsets[k], (n - 1) / ((double)n * m));
        send_around(list, n, n - offsets[k], (n - 1) / ((double)n * m));
    }
    free(offsets);
    return 0;
}

const family sl_d_equistatic_family = {
    .info = {.name = "d-equistatic",
             .meaning = "i sends to i + u for random offsets u",
             .random = true,
             .directed = true,
             .weighting = SL_WEIGHTING_EXPLICIT},
    .takes = TAKES(DEGREE) | TAKES(SEED),
    .needs = TAKES(DEGREE),
    .nodes_min = 2,
    .raise = "degree",
    .settle = settle_directed,
    .generate = generate_directed,
    .info.examples = EXAMPLES("{\"nodes\": 10, \"degree\": 3}"),
    .ranked = RANKED_DEGREES,
};
const family sl_u_equistatic_family = {
    .info = {.name = "u-equistatic",
             .meaning = "i is joined to i + u and i - u for random offsets u",
             .random = true,
             .weighting = SL_WEIGHTING_EXPLICIT},
    .takes = TAKES(DEGREE) | TAKES(SEED),
    .needs = TAKES(DEGREE),
    .nodes_min = 3,
    .raise = "degree",
    .settle = sl_family_settle_even_degree,
    .generate = generate_undirected,
    .info.examples = EXAMPLES("{\"nodes\": 10, \"degree\": 4}"),
    .ranked = RANKED_DEGREES,
};

/* ---- one peer a round ---- */

static int generate_od(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                       sl_error *error) {
    uint32_t n = spec->nodes;
    int result =
        sl_family_check_edges(&sl_od_equidyn_family, spec, (uint64_t)n * spec->period, error);
    for (uint32_t k = 0; result == 0 && k < spec->period; k++) {
        sl_rng rng = sl_rng_open(spec->seed, k, attempt, SL_PURPOSE_TOPOLOGY);
        send_around(sl_edge_lists_add(out), n, 1 + sl_rng_below(&rng, n - 1), (n - 1) / (2.0 * n));
    }
    return result;
}

static void match_apart(edge_list *list, uint32_t n, uint32_t offset, uint32_t first, bool *taken) {
    for (uint32_t i = 0; i < n; i++)
        taken[i] = false;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = (first + k) % n, j = (i + offset) % n;
        if (taken[i] || taken[j])
            continue;
        taken[i] = taken[j] = true;
        sl_edge_list_push_weighted(list, i, j, (n - 1) / (2.0 * n));
        sl_edge_list_push_weighted(list, j, i, (n - 1) / (2.0 * n));
    }
}

static int generate_ou(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                       sl_error *error) {
    uint32_t n = spec->nodes;
    int result =
        sl_family_check_edges(&sl_ou_equidyn_family, spec, (uint64_t)n * spec->period, error);
    bool *taken = malloc(n * sizeof *taken);
    if (result == 0 && taken == NULL)
        result = sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", n);
    for (uint32_t k = 0; result == 0 && k < spec->period; k++) {
        sl_rng rng = sl_rng_open(spec->seed, k, attempt, SL_PURPOSE_TOPOLOGY);
        uint32_t offset = 1 + sl_rng_below(&rng, n - 1), first = sl_rng_below(&rng, n);
        match_apart(sl_edge_lists_add(out), n, offset, first, taken);
    }
    free(taken);
    return result;
}

#define ONE_PEER .random = true, .schedule = true, .weighting = SL_WEIGHTING_EXPLICIT
const family sl_od_equidyn_family = {
    .info = {.name = "od-equidyn",
             .meaning = "each round: i sends to i + u for one random offset u",
             ONE_PEER,
             .directed = true},
    .takes = TAKES(PERIOD) | TAKES(SEED),
    .nodes_min = 2,
    .raise = "period",
    .settle = sl_family_settle_period,
    .generate = generate_od,
    .info.examples = EXAMPLES("{\"nodes\": 9}", "{\"nodes\": 20, \"period\": 12, \"seed\": 3}"),
    .ranked = RANKED_PLAIN,
};
const family sl_ou_equidyn_family = {
    .info = {.name = "ou-equidyn",
             .meaning = "each round: a matching whose pairs are u apart, u random",
             ONE_PEER},
    .takes = TAKES(PERIOD) | TAKES(SEED),
    .nodes_min = 2,
    .raise = "period",
    .settle = sl_family_settle_period,
    .generate = generate_ou,
    .info.examples = EXAMPLES("{\"nodes\": 9}"),
    .ranked = RANKED_PLAIN,
};
