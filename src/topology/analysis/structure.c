/* structure.c - components, colours and degrees of the graph over a whole period, and what other
 * files measure of it. */
#include <stdlib.h>
#include <string.h>

#include "starling/family.h"
#include "topology/analysis/union.h"

/* ---- strongly connected components (Tarjan 1972), without recursion ---- */

typedef struct scan {
    uint32_t *order, *low, *stack,
        *path;      /* (nodes) order: from 1, 0 = not seen, UINT32_MAX = in a finished component */
    uint64_t *next; /* (nodes) the edge to be taken next */
    uint32_t seen, height, components, largest;
} scan;

static void finish_component(scan *s, uint32_t root) {
    uint32_t size = 0, i;
    do {
        i = s->stack[--s->height];
        s->order[i] = UINT32_MAX;
        size++;
    } while (i != root);
    s->components++;
    s->largest = size > s->largest ? size : s->largest;
}

static void enter(scan *s, const adjacency *a, uint32_t i) {
    s->order[i] = s->low[i] = ++s->seen;
    s->next[i] = a->start[i];
    s->stack[s->height++] = i;
}

static void scan_from(scan *s, const adjacency *a, uint32_t root) {
    uint32_t depth = 0;
    enter(s, a, root);
    s->path[0] = root;
    for (;;) {
        uint32_t i = s->path[depth];
        if (s->next[i] < a->start[i + 1]) {
            uint32_t j = a->peers[s->next[i]++];
            if (s->order[j] == 0) {
                enter(s, a, j);
                s->path[++depth] = j;
            } else if (s->order[j] < s->low[i]) {
                s->low[i] = s->order[j];
            }
            continue;
        }
        if (s->low[i] == s->order[i])
            finish_component(s, i);
        if (depth == 0)
            return;
        uint32_t parent = s->path[--depth];
        if (s->low[i] < s->low[parent])
            s->low[parent] = s->low[i];
    }
}

static int count_components(sl_structure *r, const union_graph *g, sl_error *error) {
    size_t n = g->nodes;
    scan s = {.order = calloc(4 * n, sizeof *s.order), .next = calloc(n, sizeof *s.next)};
    bool good = s.order != NULL && s.next != NULL;
    if (good) {
        s.low = s.order + n;
        s.stack = s.low + n;
        s.path = s.stack + n;
        for (uint32_t i = 0; i < n; i++)
            if (s.order[i] == 0)
                scan_from(&s, &g->out, i);
        r->components = s.components;
        r->component_nodes_max = s.largest;
        r->connected = s.components == 1;
    }
    free(s.order);
    free(s.next);
    return good ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for the components of %zu nodes", n);
}

/* ---- two colours ---- */

static bool color_from(const adjacency *a, uint32_t root, uint8_t *color, uint32_t *stack) {
    uint32_t height = 0;
    color[root] = 1;
    stack[height++] = root;
    while (height > 0) {
        uint32_t i = stack[--height];
        for (uint64_t e = a->start[i]; e < a->start[i + 1]; e++) {
            uint32_t j = a->peers[e];
            if (color[j] == color[i])
                return false;
            if (color[j] == 0) {
                color[j] = (uint8_t)(3 - color[i]);
                stack[height++] = j;
            }
        }
    }
    return true;
}

static int find_bipartite(sl_structure *r, const union_graph *g, sl_error *error) {
    uint8_t *color = calloc(g->nodes, 1);
    uint32_t *stack = calloc(g->nodes, sizeof *stack);
    bool good = color != NULL && stack != NULL;
    r->bipartite = good;
    for (uint32_t i = 0; good && i < g->nodes && r->bipartite; i++)
        if (color[i] == 0)
            r->bipartite = color_from(&g->both, i, color, stack);
    free(color);
    free(stack);
    return good ? 0
                : sl_fail(error, SL_ENOMEM, "out of memory for two colours of %u nodes", g->nodes);
}

/* ---- degrees ---- */

static void widen(const side *s, uint32_t nodes, uint32_t *min, uint32_t *max) {
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t degree = (uint32_t)(s->start[i + 1] - s->start[i]);
        *min = degree < *min ? degree : *min;
        *max = degree > *max ? degree : *max;
    }
}

void sl_topology_degrees(sl_structure *r, const sl_topology *t) {
    uint64_t total = 0;
    bool undirected = true;
    for (uint32_t k = 0; k < t->graph.period; k++)
        undirected = undirected && t->graph.slots[k].undirected;
    r->degree_min = r->in_degree_min = UINT32_MAX;
    for (uint32_t k = 0; k < t->graph.period; k++) {
        widen(&t->graph.slots[k].out, t->graph.nodes, &r->degree_min, &r->degree_max);
        widen(&t->graph.slots[k].in, t->graph.nodes, &r->in_degree_min, &r->in_degree_max);
        total += t->graph.slots[k].edges;
    }
    r->degree_mean = (double)total / t->graph.nodes / t->graph.period;
    r->edges = undirected ? total / 2 : total;
}

/* ---- together ---- */

bool sl_topology_is_alike(const sl_topology *t) {
    return sl_family_describe(t->spec.family)->transitive;
}

/* Smallest degree of the union, in or out: no more edges or nodes than these need be lost. */
static uint64_t smallest_degree(const union_graph *g) {
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < g->nodes; i++) {
        uint64_t out = g->out.start[i + 1] - g->out.start[i],
                 in = g->in.start[i + 1] - g->in.start[i];
        least = out < least ? out : least;
        least = in < least ? in : least;
    }
    return least;
}

/* What follows without flows: from bridges and cut nodes, from a diameter of at most 2 (Plesník
 * 1975), and where all nodes are alike (Mader 1971). */
static void bound_connectivity(sl_structure *r, const sl_topology *t, const union_graph *g) {
    uint64_t degree = smallest_degree(g);
    r->edge_connectivity = r->node_connectivity = (sl_bounds){1, degree};
    if (!g->directed && r->bridges == 0 && degree > 1)
        r->edge_connectivity.low = 2;
    if (!g->directed && r->cut_nodes == 0 && degree > 1)
        r->node_connectivity.low = 2;
    if (r->bridges > 0)
        r->edge_connectivity.high = 1;
    if (r->cut_nodes > 0)
        r->node_connectivity.high = 1;
    if ((!g->directed && r->diameter.high <= 2) || sl_topology_is_alike(t))
        r->edge_connectivity.low = degree;
    if (degree == (uint64_t)g->nodes - 1)
        r->node_connectivity.low = degree;
}

static int measure_connected(sl_structure *r, const sl_topology *t, const union_graph *g,
                             sl_error *error) {
    int result = sl_union_diameter(&r->diameter, g, sl_topology_is_alike(t), error);
    if (result != 0 || g->nodes == 1)
        return result;
    bound_connectivity(r, t, g);
    result = sl_union_edge_connectivity(&r->edge_connectivity, g, error);
    if (result == 0 && r->edge_connectivity.high < r->node_connectivity.high)
        r->node_connectivity.high = r->edge_connectivity.high; /* Whitney 1932 */
    return result == 0 ? sl_union_node_connectivity(&r->node_connectivity, g, error) : result;
}

int sl_topology_structure(sl_structure *out, const sl_topology *topology, sl_error *error) {
    union_graph g;
    int result = sl_union_open(&g, topology, error);
    if (result != 0)
        return result;
    sl_structure r = {.diameter = {SL_UNBOUNDED, SL_UNBOUNDED}};
    uint32_t first;
    sl_topology_degrees(&r, topology);
    r.directed = g.directed;
    result = count_components(&r, &g, error);
    if (result == 0)
        result = find_bipartite(&r, &g, error);
    if (result == 0)
        result = sl_union_cuts(&g, &r.bridges, &r.cut_nodes, &first, error);
    if (result == 0 && r.connected)
        result = measure_connected(&r, topology, &g, error);
    sl_union_close(&g);
    if (result == 0)
        *out = r;
    return result;
}
