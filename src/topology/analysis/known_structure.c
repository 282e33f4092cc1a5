/* known_structure.c - the structure of families by formula, for graphs that are too large to be
 * built. */
#include <string.h>

#include "starling/analysis.h"

static sl_bounds exactly(uint64_t value) {
    return (sl_bounds){value, value};
}

/* Of one node; a factor of a product. */
static sl_structure single(void) {
    return (sl_structure){.bipartite = true};
}

/* Connectivity of products is set afterwards. */
static sl_structure of_path(uint32_t n) {
    sl_structure s = single();
    s.edges = n - 1;
    s.diameter = exactly(n - 1);
    s.degree_min = n > 1;
    s.degree_max = n > 2 ? 2 : n - 1;
    s.bridges = n - 1;
    s.cut_nodes = n > 2 ? n - 2 : 0;
    return s;
}

static sl_structure of_ring(uint32_t n) {
    if (n <= 2) /* without a double edge */
        return of_path(n);
    sl_structure s = single();
    s.edges = n;
    s.diameter = exactly(n / 2);
    s.degree_min = s.degree_max = 2;
    s.bipartite = n % 2 == 0;
    return s;
}

static sl_structure of_complete(uint32_t n) {
    if (n <= 2)
        return of_path(n);
    sl_structure s = {.edges = (uint64_t)n * (n - 1) / 2, .degree_min = n - 1, .degree_max = n - 1};
    s.diameter = exactly(1);
    return s;
}

static sl_structure of_star(uint32_t n) {
    if (n <= 2)
        return of_path(n);
    sl_structure s = {.edges = n - 1,
                      .degree_min = 1,
                      .degree_max = n - 1,
                      .bipartite = true,
                      .bridges = n - 1,
                      .cut_nodes = 1};
    s.diameter = exactly(2);
    return s;
}

/* Cartesian: a graph of a_nodes, b_nodes times over, and the other way round. With two real factors
 * there is a way round every edge and node. */
static sl_structure product(sl_structure a, uint32_t a_nodes, sl_structure b, uint32_t b_nodes) {
    if (a_nodes == 1 || b_nodes == 1)
        return a_nodes == 1 ? b : a;
    sl_structure s = {
        .edges = a.edges * b_nodes + b.edges * a_nodes,
        .bipartite = a.bipartite && b.bipartite,
        .degree_min = a.degree_min + b.degree_min,
        .degree_max = a.degree_max + b.degree_max,
    };
    s.diameter = exactly(a.diameter.low + b.diameter.low);
    return s;
}

static sl_structure of_sides(const sl_topology_spec *spec, sl_structure (*factor)(uint32_t side)) {
    sl_structure s = single();
    uint32_t nodes = 1;
    for (uint32_t d = 0; d < spec->side_count; d++) {
        s = product(s, nodes, factor(spec->sides[d]), spec->sides[d]);
        nodes *= spec->sides[d];
    }
    return s;
}

static sl_structure of_hypercube(uint32_t n) {
    sl_structure s = single();
    for (uint32_t nodes = 1; nodes < n; nodes *= 2)
        s = product(s, nodes, of_path(2), 2);
    return s;
}

/* Connected, as its description has been checked to be. No formula is known for the diameter: half
 * way round is the most. */
static sl_structure of_circulant(const sl_topology_spec *spec) {
    sl_structure s = {.bipartite = spec->nodes % 2 == 0, .diameter = {1, spec->nodes / 2}};
    for (uint32_t k = 0; k < spec->offset_count; k++) {
        s.degree_max += 2 * spec->offsets[k] == spec->nodes ? 1 : 2;
        s.bipartite = s.bipartite && spec->offsets[k] % 2 == 1;
    }
    s.degree_min = s.degree_max;
    s.edges = (uint64_t)spec->nodes * s.degree_max / 2;
    if (s.degree_max == spec->nodes - 1)
        s.diameter.high = 1;
    return s;
}

/* Where bridges and cut nodes do not say 1, as many as the smallest degree (products: Chiue, Shieh
 * 1999; Xu, Yang 2006). */
static void complete(sl_structure *s, uint32_t nodes) {
    s->components = 1;
    s->component_nodes_max = nodes;
    s->connected = true;
    s->in_degree_min = s->degree_min;
    s->in_degree_max = s->degree_max;
    s->degree_mean = 2 * (double)s->edges / nodes;
    s->edge_connectivity = exactly(s->degree_min);
    s->node_connectivity = exactly(s->cut_nodes > 0 ? 1 : s->degree_min);
}

/* False for a family without a formula. */
static bool find_formula(sl_structure *s, const sl_topology_spec *spec) {
    switch ((int)spec->family) {
    case SL_FAMILY_RING:
        *s = of_ring(spec->nodes);
        return true;
    case SL_FAMILY_PATH:
        *s = of_path(spec->nodes);
        return true;
    case SL_FAMILY_STAR:
        *s = of_star(spec->nodes);
        return true;
    case SL_FAMILY_COMPLETE:
        *s = of_complete(spec->nodes);
        return true;
    case SL_FAMILY_TORUS:
        *s = of_sides(spec, of_ring);
        return true;
    case SL_FAMILY_GRID:
        *s = of_sides(spec, of_path);
        return true;
    case SL_FAMILY_HYPERCUBE:
        *s = of_hypercube(spec->nodes);
        return true;
    case SL_FAMILY_CIRCULANT:
        *s = of_circulant(spec);
        return true;
    }
    return false;
}

bool sl_structure_closed_form(sl_structure *out, const sl_topology_spec *spec) {
    sl_structure s;
    if (!find_formula(&s, spec))
        return false;
    complete(&s, spec->nodes);
    /* Watkins 1970: all nodes are alike. */
    if (spec->family == SL_FAMILY_CIRCULANT && s.degree_max > 2)
        s.node_connectivity.low = (2ull * s.degree_max + 4) / 3;
    *out = s;
    return true;
}
