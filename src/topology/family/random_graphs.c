/* random_graphs.c - families that draw their edges.
 *
 * They draw integers from (seed, attempt) and nothing else, so that a seed gives the same graph
 * everywhere.
 */
#include <stdlib.h>
#include <string.h>

#include "starling/rng.h"
#include "topology/family/family.h"

#define RANDOM(label, text)                                                                        \
    .info = {.name = label, .meaning = text, .random = true, .weighting = SL_WEIGHTING_METROPOLIS}

enum { SWAPS_A_STUB = 200, AHEAD = 16 };

/* ---- random-regular ---- */

/* A d-regular graph under construction: stub s belongs to node s / d, pair p joins stubs[2p] and
 * stubs[2p + 1]. */
typedef struct matching {
    uint32_t *stubs;  /* (n d) */
    uint32_t *joined; /* (n, d) neighbours so far, loops and doubles included; d = no entry is
                         UINT32_MAX */
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
    uint32_t a = m->stubs[2 * p], b = m->stubs[2 * p + 1], c = m->stubs[2 * q],
             e = m->stubs[2 * q + 1];
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

/* Pairs are all over memory: a later one's rows are called for while this one is at work. */
static void call_ahead(const matching *m, uint32_t pair) {
    if (pair + AHEAD < m->n * m->d / 2)
        for (uint32_t k = 0; k < 2; k++)
            __builtin_prefetch(&m->joined[(size_t)m->stubs[2 * (pair + AHEAD) + k] * m->d], 1);
}

/* The pairing model, its loops and double edges removed by random swaps (McKay, Wormald 1990 in
 * spirit). */
static bool pair_stubs(matching *m, sl_rng *rng) {
    uint32_t pairs = m->n * m->d / 2, fill = 0;
    for (uint32_t s = 0; s < m->n * m->d; s++)
        m->stubs[s] = s / m->d;
    sl_rng_shuffle(rng, m->stubs, m->n * m->d);
    memset(m->joined, 0xFF, (size_t)m->n * m->d * sizeof *m->joined);
    for (uint32_t p = 0; p < pairs; p++) {
        call_ahead(m, p);
        replace(m, m->stubs[2 * p], UINT32_MAX, m->stubs[2 * p + 1]);
        replace(m, m->stubs[2 * p + 1], UINT32_MAX, m->stubs[2 * p]);
    }
    for (uint32_t p = 0; p < pairs; p++) {
        call_ahead(m, p);
        for (fill = 0; is_bad(m, p); fill++) {
            if (fill == SWAPS_A_STUB * m->d)
                return false;
            swap_pairs(m, p, sl_rng_below(rng, pairs));
        }
    }
    return true;
}

static int settle_random_regular(sl_topology_spec *spec, sl_error *error) {
    uint32_t n = spec->nodes, d = spec->degree;
    if (d >= n)
        return sl_fail(error, SL_EINVAL,
                       "degree: %u is not allowed for %u nodes; it must be from 1 to %u", d, n,
                       n - 1);
    if ((uint64_t)n * d % 2 != 0)
        return sl_fail(error, SL_EINVAL,
                       "degree: %u nodes times degree %u is odd, and every edge has two ends; "
                       "choose another degree",
                       n, d);
    return 0;
}

static int generate_random_regular(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                                   sl_error *error) {
    uint32_t n = spec->nodes, d = spec->degree;
    int result = sl_family_check_edges(&sl_random_regular_family, spec, (uint64_t)n * d, error);
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
        result = sl_fail(error, SL_EINVAL,
                         "degree: no simple %u-regular graph of %u nodes was found from seed %llu; "
                         "choose a smaller degree or family 'complete'",
                         d, n, (unsigned long long)spec->seed);
    edge_list *list = sl_edge_lists_add(out);
    sl_edge_list_reserve(list, stubs);
    for (size_t p = 0; result == 0 && p < stubs / 2; p++)
        sl_edge_list_push_both(list, m.stubs[2 * p], m.stubs[2 * p + 1]);
    free(m.stubs);
    free(m.joined);
    return result;
}

const family sl_random_regular_family = {
    RANDOM("random-regular", "every node has degree neighbours: stubs paired at random"),
    .takes = TAKES(DEGREE) | TAKES(SEED),
    .needs = TAKES(DEGREE),
    .nodes_min = 1,
    .raise = "degree",
    .settle = settle_random_regular,
    .generate = generate_random_regular,
    .info.examples =
        EXAMPLES("{\"nodes\": 10, \"degree\": 3}", "{\"nodes\": 20, \"degree\": 4, \"seed\": 2}"),
    .ranked = RANKED_DEGREES,
};

/* ---- erdos-renyi ---- */

/* How many pairs in a row have no edge: geometric, and so its binary digits are independent, digit
 * b being 1 with probability x/(1 + x), x = (1 - p)^(2^b). That takes no logarithm, which two
 * machines may round differently. */
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

/* From edge to edge over the pairs (0, 1), (0, 2), (1, 2), (0, 3), ...: Batagelj, Brandes,
 * "Efficient generation of large random networks", 2005. */
static int generate_erdos_renyi(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                                sl_error *error) {
    uint64_t n = spec->nodes;
    int result =
        sl_family_check_edges(&sl_erdos_renyi_family, spec,
                              (uint64_t)((double)n * (double)(n - 1) * spec->probability), error);
    if (result != 0)
        return result;
    edge_list *list = sl_edge_lists_add(out);
    geometric skip = geometric_of(spec->probability);
    sl_rng rng = sl_rng_open(spec->seed, 0, attempt, SL_PURPOSE_TOPOLOGY);
    uint64_t i = geometric_draw(&skip, &rng), j = 1;
    while (j < n) {
        if (i >= j) {
            i -= j++;
            continue;
        }
        sl_edge_list_push_both(list, (uint32_t)i, (uint32_t)j);
        i += 1 + geometric_draw(&skip, &rng);
    }
    return 0;
}

const family sl_erdos_renyi_family = {
    RANDOM("erdos-renyi", "each pair with the same probability"),
    .takes = TAKES(PROBABILITY) | TAKES(SEED),
    .needs = TAKES(PROBABILITY),
    .nodes_min = 1,
    .raise = "probability (ln(n)/n is where connected graphs begin)",
    .generate = generate_erdos_renyi,
    .info.examples = EXAMPLES("{\"nodes\": 16, \"probability\": 0.3}"),
};

/* ---- watts-strogatz ---- */

enum { REWIRE_TRIES = 100 };

/* Edge k of node i, i to i + k + 1 in the lattice, belongs to i and stays its own when it is
 * rewired: targets[i * half + k]. */
typedef struct lattice {
    uint32_t *targets; /* (n, half) */
    uint32_t n, half;
} lattice;

static bool owns(const lattice *l, uint32_t i, uint32_t j) {
    for (uint32_t k = 0; k < l->half; k++)
        if (l->targets[(size_t)i * l->half + k] == j)
            return true;
    return false;
}

/* To a node drawn at random; an edge of a node that has nearly all others as neighbours may stay
 * where it is. */
static void rewire(lattice *l, uint32_t i, uint32_t k, sl_rng *rng) {
    for (int try = 0; try < REWIRE_TRIES; try++) {
        uint32_t j = sl_rng_below(rng, l->n);
        if (j == i || owns(l, i, j) || owns(l, j, i))
            continue;
        l->targets[(size_t)i * l->half + k] = j;
        return;
    }
}

/* Lap after lap round the ring, as Watts and Strogatz do. */
static int generate_watts_strogatz(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                                   sl_error *error) {
    lattice l = {.n = spec->nodes, .half = spec->degree / 2};
    int result = sl_family_check_edges(&sl_watts_strogatz_family, spec,
                                       (uint64_t)spec->nodes * spec->degree, error);
    if (result == 0 && (l.targets = malloc((size_t)l.n * l.half * sizeof *l.targets)) == NULL)
        result = sl_fail(error, SL_ENOMEM, "out of memory for a random graph of %u nodes", l.n);
    if (result != 0)
        return result;
    for (uint32_t i = 0; i < l.n; i++)
        for (uint32_t k = 0; k < l.half; k++)
            l.targets[(size_t)i * l.half + k] = (i + k + 1) % l.n;
    sl_rng rng = sl_rng_open(spec->seed, 0, attempt, SL_PURPOSE_TOPOLOGY);
    uint64_t threshold = (uint64_t)(spec->probability * 0x1p32);
    for (uint32_t k = 0; k < l.half; k++)
        for (uint32_t i = 0; i < l.n; i++)
            if (sl_rng_u32(&rng) < threshold)
                rewire(&l, i, k, &rng);
    edge_list *list = sl_edge_lists_add(out);
    for (uint32_t i = 0; i < l.n; i++)
        for (uint32_t k = 0; k < l.half; k++)
            sl_edge_list_push_both(list, i, l.targets[(size_t)i * l.half + k]);
    free(l.targets);
    return 0;
}

const family sl_watts_strogatz_family = {
    RANDOM("watts-strogatz", "a ring lattice, each edge rewired with some probability"),
    .takes = TAKES(DEGREE) | TAKES(PROBABILITY) | TAKES(SEED),
    .needs = TAKES(DEGREE) | TAKES(PROBABILITY),
    .nodes_min = 3,
    .raise = "degree",
    .settle = sl_family_settle_even_degree,
    .generate = generate_watts_strogatz,
    .info.examples = EXAMPLES("{\"nodes\": 20, \"degree\": 4, \"probability\": 0.2}"),
};

/* ---- random-geometric ---- */

/* Points with whole coordinates below 2^31, so that squared distances are exact, sorted by cells of
 * a grid that are no smaller than the radius. */
typedef struct plane {
    uint32_t *x, *y;         /* (n) */
    uint32_t *start, *nodes; /* (cells^2 + 1), (n): nodes[start[c]] .. are those of cell c */
    uint32_t n, cells;       /* along a side */
    uint64_t radius;
} plane;

static uint32_t cell_at(const plane *p, uint32_t coordinate) {
    return (uint32_t)((uint64_t)coordinate * p->cells >> 31);
}

static uint32_t cell_of(const plane *p, uint32_t i) {
    return cell_at(p, p->y[i]) * p->cells + cell_at(p, p->x[i]);
}

static void sort_into_cells(plane *p) {
    memset(p->start, 0, ((size_t)p->cells * p->cells + 1) * sizeof *p->start);
    for (uint32_t i = 0; i < p->n; i++)
        p->start[cell_of(p, i) + 1]++;
    for (uint32_t c = 0; c < p->cells * p->cells; c++)
        p->start[c + 1] += p->start[c];
    for (uint32_t i = p->n; i-- > 0;) /* ends move to starts */
        p->nodes[--p->start[cell_of(p, i) + 1]] = i;
    memmove(p->start, p->start + 1, (size_t)p->cells * p->cells * sizeof *p->start);
    p->start[p->cells * p->cells] = p->n;
}

static bool are_near(const plane *p, uint32_t i, uint32_t j) {
    int64_t dx = (int64_t)p->x[i] - p->x[j], dy = (int64_t)p->y[i] - p->y[j];
    return (uint64_t)(dx * dx + dy * dy) <= p->radius * p->radius;
}

static void join_near(const plane *p, uint32_t i, edge_list *list) {
    uint32_t cx = cell_at(p, p->x[i]), cy = cell_at(p, p->y[i]), last = p->cells - 1;
    for (uint32_t y = cy ? cy - 1 : 0; y <= (cy < last ? cy + 1 : last); y++)
        for (uint32_t x = cx ? cx - 1 : 0; x <= (cx < last ? cx + 1 : last); x++)
            for (uint32_t e = p->start[y * p->cells + x]; e < p->start[y * p->cells + x + 1]; e++)
                if (p->nodes[e] > i && are_near(p, i, p->nodes[e]))
                    sl_edge_list_push_both(list, i, p->nodes[e]);
}

static int generate_random_geometric(const sl_topology_spec *spec, uint64_t attempt,
                                     edge_lists *out, sl_error *error) {
    uint32_t n = spec->nodes;
    plane p = {.n = n, .cells = 1, .radius = (uint64_t)(spec->radius * 0x1p31)};
    int result =
        sl_family_check_edges(&sl_random_geometric_family, spec,
                              (uint64_t)(3.2 * spec->radius * spec->radius * n * (n - 1)), error);
    if (result != 0)
        return result;
    while ((uint64_t)(p.cells + 1) * (p.cells + 1) <= n && (p.cells + 1) * p.radius <= 1ull << 31)
        p.cells++;
    p.x = malloc(n * sizeof *p.x);
    p.y = malloc(n * sizeof *p.y);
    p.nodes = malloc(n * sizeof *p.nodes);
    p.start = malloc(((size_t)n + 1) * sizeof *p.start);
    if (p.x && p.y && p.nodes && p.start) {
        sl_rng rng = sl_rng_open(spec->seed, 0, attempt, SL_PURPOSE_TOPOLOGY);
        for (uint32_t i = 0; i < n; i++) {
            p.x[i] = sl_rng_u32(&rng) >> 1;
            p.y[i] = sl_rng_u32(&rng) >> 1;
        }
        sort_into_cells(&p);
        edge_list *list = sl_edge_lists_add(out);
        for (uint32_t i = 0; i < n; i++)
            join_near(&p, i, list);
    } else {
        result = sl_fail(error, SL_ENOMEM, "out of memory for a random graph of %u nodes", n);
    }
    free(p.x);
    free(p.y);
    free(p.nodes);
    free(p.start);
    return result;
}

const family sl_random_geometric_family = {
    RANDOM("random-geometric", "random points of a square, joined up to a distance"),
    .takes = TAKES(RADIUS) | TAKES(SEED),
    .needs = TAKES(RADIUS),
    .nodes_min = 1,
    .raise = "radius (sqrt(ln(n)/(pi n)) is where connected graphs begin)",
    .generate = generate_random_geometric,
    .info.examples = EXAMPLES("{\"nodes\": 30, \"radius\": 0.4}"),
};
