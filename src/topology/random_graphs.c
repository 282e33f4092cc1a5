/* random_graphs.c - families that draw their edges.
 *
 * They draw integers from (seed, attempt) and nothing else, so that a seed gives the same graph everywhere.
 */
#include <stdlib.h>
#include <string.h>

#include "starling/rng.h"
#include "topology/family.h"

#define RANDOM(label, text) .info = {.name = label, .meaning = text, .random = true, .weighting = SL_WEIGHTING_METROPOLIS}

enum { SWAPS_A_STUB = 200 };

/* ---- random-regular ---- */

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

static int settle_random_regular(sl_topology_spec *spec, sl_error *error) {
    uint32_t n = spec->nodes, d = spec->degree;
    if (d >= n)
        return sl_fail(error, SL_EINVAL, "degree: %u is not allowed for %u nodes; it must be from 1 to %u", d, n, n - 1);
    if ((uint64_t)n * d % 2 != 0)
        return sl_fail(error, SL_EINVAL, "degree: %u nodes times degree %u is odd, and every edge has two ends; choose another degree", n, d);
    return 0;
}

static int generate_random_regular(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out, sl_error *error) {
    uint32_t n = spec->nodes, d = spec->degree;
    int result = family_check_edges(spec, (uint64_t)n * d, error);
    if (result != 0)
        return result;
    size_t stubs = (size_t)n * d;
    matching m = {malloc(stubs * sizeof(uint32_t)), malloc(stubs * sizeof(uint32_t)), n, d};
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
    edge_list *list = edge_lists_add(out);
    for (size_t p = 0; result == 0 && p < stubs / 2; p++)
        edge_list_push_both(list, m.stubs[2 * p], m.stubs[2 * p + 1]);
    free(m.stubs);
    free(m.joined);
    return result;
}

const family random_regular_family = {
    RANDOM("random-regular", "every node has degree neighbours: stubs paired at random"),
    .takes = TAKES(DEGREE) | TAKES(SEED),
    .needs = TAKES(DEGREE),
    .nodes_min = 1,
    .raise = "degree",
    .settle = settle_random_regular,
    .generate = generate_random_regular,
};

/* ---- erdos-renyi ---- */

/* How many pairs in a row have no edge: geometric, and so its binary digits are independent, digit b being 1 with probability x/(1 + x),
 * x = (1 - p)^(2^b). That takes no logarithm, which two machines may round differently. */
typedef struct geometric {
    uint32_t thresholds[64];
    int digits;
} geometric;

static geometric geometric_of(double probability) {
    geometric g = {0};
    for (double x = 1 - probability; x / (1 + x) >= 0x1p-32 && g.digits < 48; x *= x)
        g.thresholds[g.digits++] = (uint32_t)(x / (1 + x) * 0x1p32);
    return g;
}

static uint64_t geometric_draw(const geometric *g, sl_rng *rng) {
    uint64_t value = 0;
    for (int b = 0; b < g->digits; b++)
        value |= (uint64_t)(sl_rng_u32(rng) < g->thresholds[b]) << b;
    return value;
}

/* From edge to edge over the pairs (0, 1), (0, 2), (1, 2), (0, 3), ...: Batagelj, Brandes, "Efficient generation of large random networks", 2005. */
static int generate_erdos_renyi(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out, sl_error *error) {
    uint64_t n = spec->nodes;
    int result = family_check_edges(spec, (uint64_t)((double)n * (double)(n - 1) * spec->probability), error);
    if (result != 0)
        return result;
    edge_list *list = edge_lists_add(out);
    geometric skip = geometric_of(spec->probability);
    sl_rng rng = sl_rng_open(spec->seed, 0, attempt, SL_PURPOSE_TOPOLOGY);
    uint64_t i = geometric_draw(&skip, &rng), j = 1;
    while (j < n) {
        if (i >= j) {
            i -= j++;
            continue;
        }
        edge_list_push_both(list, (uint32_t)i, (uint32_t)j);
        i += 1 + geometric_draw(&skip, &rng);
    }
    return 0;
}

const family erdos_renyi_family = {
    RANDOM("erdos-renyi", "each pair with the same probability"),
    .takes = TAKES(PROBABILITY) | TAKES(SEED),
    .needs = TAKES(PROBABILITY),
    .nodes_min = 1,
    .raise = "probability (ln(n)/n is where connected graphs begin)",
    .generate = generate_erdos_renyi,
};
