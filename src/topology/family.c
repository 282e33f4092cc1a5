/* family.c - the edges of each graph family.
 *
 * Random families draw integers from (seed, attempt) and nothing else, so that a seed gives the same graph everywhere.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "starling/rng.h"
#include "topology/graph.h"

enum { ERDOS_RENYI_NODES_MAX = 20000, SWAPS_A_STUB = 200 };
static const uint64_t edges_max = 200000000;

const char *family_name(sl_family family) {
    switch (family) {
    case SL_FAMILY_EDGES:
        return "edges";
    case SL_FAMILY_RING:
        return "ring";
    case SL_FAMILY_PATH:
        return "path";
    case SL_FAMILY_TORUS:
        return "torus";
    case SL_FAMILY_STAR:
        return "star";
    case SL_FAMILY_COMPLETE:
        return "complete";
    case SL_FAMILY_HYPERCUBE:
        return "hypercube";
    case SL_FAMILY_RANDOM_REGULAR:
        return "random-regular";
    case SL_FAMILY_ERDOS_RENYI:
        return "erdos-renyi";
    case SL_FAMILY_ONE_PEER_EXPONENTIAL:
        return "one-peer-exponential";
    }
    return "?";
}

bool family_is_random(sl_family family) {
    return family == SL_FAMILY_RANDOM_REGULAR || family == SL_FAMILY_ERDOS_RENYI;
}

static void path(edge_list *list, uint32_t n) {
    for (uint32_t i = 0; i + 1 < n; i++)
        edge_list_push_both(list, i, i + 1);
}

static void ring(edge_list *list, uint32_t n) {
    path(list, n);
    if (n > 2)
        edge_list_push_both(list, n - 1, 0);
}

static void star(edge_list *list, uint32_t n) {
    for (uint32_t i = 1; i < n; i++)
        edge_list_push_both(list, 0, i);
}

static int complete(edge_list *list, uint32_t n, sl_error *error) {
    if ((uint64_t)n * n > edges_max)
        return sl_fail(error, SL_EINVAL, "nodes: %u is too many for family 'complete'; at most 14142", n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++)
            edge_list_push_both(list, i, j);
    return 0;
}

static int hypercube(edge_list *list, uint32_t n, sl_error *error) {
    if (n & (n - 1))
        return sl_fail(error, SL_EINVAL, "nodes: %u is not a power of two, which family 'hypercube' needs", n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t bit = 1; bit < n; bit <<= 1)
            if (!(i & bit))
                edge_list_push_both(list, i, i | bit);
    return 0;
}

/* Two dimensions as square as n allows. */
static void default_sides(uint32_t n, uint32_t sides[SL_SIDES_MAX], uint32_t *count) {
    uint32_t shorter = 1;
    for (uint32_t s = 1; (uint64_t)s * s <= n; s++)
        if (n % s == 0)
            shorter = s;
    sides[0] = shorter;
    sides[1] = n / shorter;
    *count = 2;
}

static int torus(edge_list *list, const sl_topology_spec *spec, sl_error *error) {
    uint32_t sides[SL_SIDES_MAX], count = spec->side_count, n = spec->nodes;
    memcpy(sides, spec->sides, sizeof sides);
    if (count == 0)
        default_sides(n, sides, &count);
    uint64_t product = 1;
    for (uint32_t d = 0; d < count; d++)
        product *= sides[d];
    if (product != n)
        return sl_fail(error, SL_EINVAL, "sides: their product is %llu, but nodes is %u; they must be equal",
                       (unsigned long long)product, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t stride = 1;
        for (uint32_t d = count; d-- > 0; stride *= sides[d]) {
            uint32_t at = i / stride % sides[d];
            /* A side of 2 is one edge, not two between the same nodes; a side of 1 is none. */
            if (at + 1 < sides[d])
                edge_list_push_both(list, i, i + stride);
            else if (sides[d] > 2)
                edge_list_push_both(list, i, i - at * stride);
        }
    }
    return 0;
}

/* A d-regular graph under construction: stub s belongs to node s / d, pair p joins stubs[2p] and stubs[2p + 1]. */
typedef struct matching {
    uint32_t *stubs;  /* (n d) */
    uint32_t *joined; /* (n, d) neighbours so far, loops and doubles included; d = no entry is UINT32_MAX */
    uint32_t n, d;
} matching;

static uint32_t times_joined(const matching *m, uint32_t a, uint32_t b) {
    uint32_t times = 0;
    for (uint32_t k = 0; k < m->d; k++)
        times += m->joined[(size_t)a * m->d + k] == b;
    return times;
}

static void replace(matching *m, uint32_t node, uint32_t old, uint32_t new) {
    for (uint32_t k = 0; k < m->d; k++)
        if (m->joined[(size_t)node * m->d + k] == old) {
            m->joined[(size_t)node * m->d + k] = new;
            return;
        }
}

static bool is_bad(const matching *m, uint32_t pair) {
    uint32_t a = m->stubs[2 * pair], b = m->stubs[2 * pair + 1];
    return a == b || times_joined(m, a, b) > 1;
}

/* Pair p = (a, b) and q = (c, e) become (a, e) and (c, b), if both are then simple. */
static bool swap_pairs(matching *m, uint32_t p, uint32_t q) {
    uint32_t a = m->stubs[2 * p], b = m->stubs[2 * p + 1], c = m->stubs[2 * q], e = m->stubs[2 * q + 1];
    if (a == e || c == b || times_joined(m, a, e) > 0 || times_joined(m, c, b) > 0)
        return false;
    replace(m, a, b, e);
    replace(m, b, a, c);
    replace(m, c, e, b);
    replace(m, e, c, a);
    m->stubs[2 * p + 1] = e;
    m->stubs[2 * q + 1] = b;
    return true;
}

/* The pairing model, its loops and double edges removed by random swaps (McKay, Wormald 1990 in spirit). */
static bool pair_stubs(matching *m, sl_rng *rng) {
    uint32_t pairs = m->n * m->d / 2, fill = 0;
    for (uint32_t s = 0; s < m->n * m->d; s++)
        m->stubs[s] = s / m->d;
    sl_rng_shuffle(rng, m->stubs, m->n * m->d);
    memset(m->joined, 0xFF, (size_t)m->n * m->d * sizeof *m->joined);
    for (uint32_t p = 0; p < pairs; p++) {
        replace(m, m->stubs[2 * p], UINT32_MAX, m->stubs[2 * p + 1]);
        replace(m, m->stubs[2 * p + 1], UINT32_MAX, m->stubs[2 * p]);
    }
    for (uint32_t p = 0; p < pairs; p++)
        for (fill = 0; is_bad(m, p); fill++) {
            if (fill == SWAPS_A_STUB * m->d)
                return false;
            swap_pairs(m, p, sl_rng_below(rng, pairs));
        }
    return true;
}

static int random_regular(edge_list *list, const sl_topology_spec *spec, uint64_t attempt, sl_error *error) {
    uint32_t n = spec->nodes, d = spec->degree;
    if (d < 1 || d >= n)
        return sl_fail(error, SL_EINVAL, "degree: %u is not allowed for %u nodes; it must be from 1 to %u", d, n, n - 1);
    if ((uint64_t)n * d % 2 != 0 || (uint64_t)n * d > edges_max)
        return sl_fail(error, SL_EINVAL, "degree: %u nodes times degree %u is %s; choose another degree", n, d,
                       (uint64_t)n * d > edges_max ? "too many edges" : "odd, and every edge has two ends");
    size_t stubs = (size_t)n * d;
    matching m = {malloc(stubs * sizeof(uint32_t)), malloc(stubs * sizeof(uint32_t)), n, d};
    int result = 0;
    if (m.stubs == NULL || m.joined == NULL)
        result = sl_fail(error, SL_ENOMEM, "out of memory for a random graph of %u nodes", n);
    bool simple = false;
    for (uint32_t try = 0; result == 0 && !simple && try < 100; try++) {
        sl_rng rng = sl_rng_open(spec->seed, try, attempt, SL_PURPOSE_TOPOLOGY);
        simple = pair_stubs(&m, &rng);
    }
    if (result == 0 && !simple)
        result = sl_fail(error, SL_EINVAL, "degree: no simple %u-regular graph of %u nodes was found from seed %llu; "
                                           "choose a smaller degree or family 'complete'", d, n, (unsigned long long)spec->seed);
    for (size_t p = 0; result == 0 && p < stubs / 2; p++)
        edge_list_push_both(list, m.stubs[2 * p], m.stubs[2 * p + 1]);
    free(m.stubs);
    free(m.joined);
    return result;
}

static int erdos_renyi(edge_list *list, const sl_topology_spec *spec, uint64_t attempt, sl_error *error) {
    uint32_t n = spec->nodes;
    if (!(spec->probability > 0 && spec->probability <= 1))
        return sl_fail(error, SL_EINVAL, "probability: %g is not allowed; it must be above 0 and at most 1", spec->probability);
    if (n > ERDOS_RENYI_NODES_MAX)
        return sl_fail(error, SL_EINVAL, "nodes: %u is too many for family 'erdos-renyi'; at most %d", n, ERDOS_RENYI_NODES_MAX);
    uint64_t threshold = (uint64_t)(spec->probability * 0x1p32);
    for (uint32_t i = 0; i < n; i++) {
        sl_rng rng = sl_rng_open(spec->seed, i, attempt, SL_PURPOSE_TOPOLOGY);
        for (uint32_t j = i + 1; j < n; j++)
            if (sl_rng_u32(&rng) < threshold)
                edge_list_push_both(list, i, j);
    }
    return 0;
}

static void one_peer_exponential(edge_list *list, uint32_t n, uint32_t step) {
    for (uint32_t i = 0; i < n; i++)
        edge_list_push(list, i, (i + step) % n);
}

static int one_phase(const sl_topology_spec *spec, uint64_t attempt, uint32_t k, edge_list *list, sl_error *error) {
    uint32_t n = spec->nodes;
    switch (spec->family) {
    case SL_FAMILY_RING:
        ring(list, n);
        return 0;
    case SL_FAMILY_PATH:
        path(list, n);
        return 0;
    case SL_FAMILY_STAR:
        star(list, n);
        return 0;
    case SL_FAMILY_TORUS:
        return torus(list, spec, error);
    case SL_FAMILY_COMPLETE:
        return complete(list, n, error);
    case SL_FAMILY_HYPERCUBE:
        return hypercube(list, n, error);
    case SL_FAMILY_RANDOM_REGULAR:
        return random_regular(list, spec, attempt, error);
    case SL_FAMILY_ERDOS_RENYI:
        return erdos_renyi(list, spec, attempt, error);
    case SL_FAMILY_ONE_PEER_EXPONENTIAL:
        one_peer_exponential(list, n, 1u << k);
        return 0;
    case SL_FAMILY_EDGES:
        break;
    }
    return sl_fail(error, SL_EINVAL, "family: explicit edges are not generated");
}

int family_edges(const sl_topology_spec *spec, uint64_t attempt, edge_list **lists, uint32_t *period, sl_error *error) {
    uint32_t count = 1;
    if (spec->family == SL_FAMILY_ONE_PEER_EXPONENTIAL)
        while ((1u << count) < spec->nodes)
            count++;
    edge_list *all = calloc(count, sizeof *all);
    if (all == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a schedule of %u rounds", count);
    int result = 0;
    for (uint32_t k = 0; k < count && result == 0 && spec->nodes > 1; k++)
        result = one_phase(spec, attempt, k, &all[k], error);
    if (result != 0) {
        for (uint32_t k = 0; k < count; k++)
            edge_list_free(&all[k]);
        free(all);
        return result;
    }
    *lists = all;
    *period = count;
    return 0;
}
