/* connectivity.c - how many edges, and how many nodes, must be lost before some node cannot reach
 * another: minimum cuts by maximum flows (Menger).
 *
 * Edges: a cut with fewer edges than the smallest degree leaves on each side a node whose
 * neighbours are all on that side; so every dominating set has nodes on both sides, and flows from
 * one of its nodes to the others are enough (Matula 1987). On a directed graph flows go both ways,
 * and to all nodes. Nodes: either a node v is in no smallest cut, and flows between v and all
 * others find it; or v is in one, which then parts a neighbour that leads to v from one that v
 * leads to (Even 1975; Esfahanian, Hakimi 1984). On a directed graph the same, along the
 * directions. Capacities are 1, so that an augmentation is one search, and a flow stops at the
 * smallest cut known so far.
 */
#include <stdlib.h>
#include <string.h>

#include "topology/analysis/union.h"

typedef struct arc {
    uint32_t from, to;
    uint8_t capacity, reverse; /* of the way back */
} arc;

typedef struct network {
    uint32_t nodes;
    uint64_t *start;               /* (nodes + 1) */
    uint32_t *to;                  /* (arcs) each arc and its way back */
    uint64_t *back;                /* (arcs) where the way back stands */
    uint8_t *capacity, *left;      /* (arcs) as built; while a flow is found */
    uint64_t *via;                 /* (nodes) the arc by which a search came here */
    uint32_t *queue, *mark, round; /* (nodes) */
} network;

static void network_close(network *w) {
    free(w->start);
    free(w->to);
    free(w->back);
    free(w->capacity);
    free(w->left);
    free(w->via);
    free(w->queue);
    free(w->mark);
}

static uint64_t place(network *w, uint64_t *next, uint32_t from, uint32_t to, uint8_t capacity) {
    uint64_t at = next[from]++;
    w->to[at] = to;
    w->capacity[at] = capacity;
    return at;
}

static int network_open(network *out, uint32_t nodes, const arc *arcs, uint64_t count,
                        sl_error *error) {
    network w = {.nodes = nodes,
                 .start = calloc((size_t)nodes + 2, sizeof *w.start),
                 .to = calloc(2 * count + 1, sizeof *w.to),
                 .back = calloc(2 * count + 1, sizeof *w.back),
                 .capacity = calloc(2 * count + 1, 1),
                 .left = calloc(2 * count + 1, 1),
                 .via = calloc(nodes, sizeof *w.via),
                 .queue = calloc(nodes, sizeof *w.queue),
                 .mark = calloc(nodes, sizeof *w.mark)};
    if (!w.start || !w.to || !w.back || !w.capacity || !w.left || !w.via || !w.queue || !w.mark) {
        network_close(&w);
        return sl_fail(error, SL_ENOMEM, "out of memory for flows between %u nodes", nodes);
    }
    uint64_t *next = w.start + 1; /* counts, shifted by one: after placing it is the start itself */
    for (uint64_t a = 0; a < count; a++) {
        next[arcs[a].from + 1]++;
        next[arcs[a].to + 1]++;
    }
    for (uint32_t i = 0; i < nodes; i++)
        next[i + 1] += next[i];
    for (uint64_t a = 0; a < count; a++) {
        uint64_t there = place(&w, next, arcs[a].from, arcs[a].to, arcs[a].capacity);
        uint64_t back = place(&w, next, arcs[a].to, arcs[a].from, arcs[a].reverse);
        w.back[there] = back;
        w.back[back] = there;
    }
    *out = w;
    return 0;
}

/* A path with capacity left from s to t; pushes one unit along it. */
static bool augment(network *w, uint32_t s, uint32_t t, budget *b) {
    uint32_t head = 0, tail = 0;
    uint64_t work = 0;
    w->mark[s] = ++w->round;
    w->queue[tail++] = s;
    while (head < tail && w->mark[t] != w->round) {
        uint32_t i = w->queue[head++];
        work += w->start[i + 1] - w->start[i];
        for (uint64_t a = w->start[i]; a < w->start[i + 1]; a++)
            if (w->left[a] > 0 && w->mark[w->to[a]] != w->round) {
                w->mark[w->to[a]] = w->round;
                w->via[w->to[a]] = a;
                w->queue[tail++] = w->to[a];
            }
    }
    budget_spend(b, work);
    if (w->mark[t] != w->round)
        return false;
    for (uint32_t i = t; i != s; i = w->to[w->back[w->via[i]]]) {
        w->left[w->via[i]]--;
        w->left[w->back[w->via[i]]]++;
    }
    return true;
}

/* Lowers bound->high to the flow from s to t if that is less. */
static void flow(network *w, uint32_t s, uint32_t t, sl_bounds *bound, budget *b) {
    memcpy(w->left, w->capacity, w->start[w->nodes]);
    budget_spend(b, w->start[w->nodes] / 8);
    uint64_t value = 0;
    while (value < bound->high && b->left > 0) {
        if (!augment(w, s, t, b)) {
            bound->high = value;
            return;
        }
        value++;
    }
}

/* So many flows at a search of all arcs each, and more: not worth beginning. */
static bool is_hopeless(const network *w, uint64_t flows) {
    return flows > 2 * SL_ANALYSIS_WORK / (w->start[w->nodes] + 1);
}

/* ---- edges ---- */

/* Every node is in the set or beside one that is. */
static uint32_t dominate(const union_graph *g, uint32_t *set, bool *covered) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->nodes; i++) {
        if (covered[i])
            continue;
        set[count++] = i;
        for (uint64_t e = g->both.start[i]; e < g->both.start[i + 1]; e++)
            covered[g->both.peers[e]] = true;
    }
    return count;
}

/* One arc for each pair of neighbours. */
static uint64_t pair_arcs(const union_graph *g, arc *arcs) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < g->nodes; i++)
        for (uint64_t e = g->both.start[i]; e < g->both.start[i + 1]; e++) {
            uint32_t j = g->both.peers[e];
            if (i < j)
                arcs[count++] = (arc){i, j, !g->directed || sl_adjacency_has(&g->out, i, j),
                                      !g->directed || sl_adjacency_has(&g->out, j, i)};
        }
    return count;
}

static void cut_edges(network *w, const union_graph *g, const uint32_t *set, uint32_t count,
                      sl_bounds *bound) {
    budget b = {SL_ANALYSIS_WORK};
    if (is_hopeless(w, count))
        return;
    for (uint32_t k = 1; k < count && bound->low < bound->high && b.left > 0; k++) {
        flow(w, set[0], set[k], bound, &b);
        if (g->directed)
            flow(w, set[k], set[0], bound, &b);
    }
    if (b.left > 0)
        bound->low = bound->high;
}

int sl_union_edge_connectivity(sl_bounds *inout, const union_graph *g, sl_error *error) {
    size_t n = g->nodes;
    if (inout->low >= inout->high)
        return 0;
    arc *arcs = calloc(g->both.start[n] / 2 + 1, sizeof *arcs);
    uint32_t *set = calloc(n, sizeof *set);
    bool *covered = calloc(n, sizeof *covered);
    network w = {0};
    int result =
        arcs && set && covered
            ? network_open(&w, g->nodes, arcs, pair_arcs(g, arcs), error)
            : sl_fail(error, SL_ENOMEM, "out of memory for the edge connectivity of %zu nodes", n);
    if (result == 0) {
        uint32_t count = g->directed ? g->nodes : dominate(g, set, covered);
        for (uint32_t i = 0; i < n && g->directed; i++)
            set[i] = i;
        cut_edges(&w, g, set, count, inout);
    }
    network_close(&w);
    free(arcs);
    free(set);
    free(covered);
    return result;
}

/* ---- nodes: each is an arc of capacity 1 from its entry 2i to its exit 2i + 1 ---- */

static uint64_t split_arcs(const union_graph *g, arc *arcs) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < g->nodes; i++) {
        arcs[count++] = (arc){2 * i, 2 * i + 1, 1, 0};
        for (uint64_t e = g->out.start[i]; e < g->out.start[i + 1]; e++)
            arcs[count++] = (arc){2 * i + 1, 2 * g->out.peers[e], 1, 0};
    }
    return count;
}

static void cut_between(network *w, const union_graph *g, uint32_t i, uint32_t j, sl_bounds *bound,
                        budget *b) {
    if (i != j && bound->low < bound->high && b->left > 0 && !sl_adjacency_has(&g->out, i, j))
        flow(w, 2 * i + 1, 2 * j, bound, b);
}

static uint64_t around(const union_graph *g, uint32_t i) {
    return (g->in.start[i + 1] - g->in.start[i]) * (g->out.start[i + 1] - g->out.start[i]);
}

static void cut_nodes(network *w, const union_graph *g, sl_bounds *bound) {
    budget b = {SL_ANALYSIS_WORK};
    uint32_t v = 0;
    if (is_hopeless(w, g->nodes))
        return;
    for (uint32_t i = 1; i < g->nodes; i++)
        if (around(g, i) < around(g, v))
            v = i;
    for (uint32_t i = 0; i < g->nodes; i++) {
        cut_between(w, g, v, i, bound, &b);
        if (g->directed)
            cut_between(w, g, i, v, bound, &b);
    }
    for (uint64_t e = g->in.start[v]; e < g->in.start[v + 1]; e++)
        for (uint64_t f = g->out.start[v]; f < g->out.start[v + 1]; f++)
            cut_between(w, g, g->in.peers[e], g->out.peers[f], bound, &b);
    if (b.left > 0)
        bound->low = bound->high;
}

int sl_union_node_connectivity(sl_bounds *inout, const union_graph *g, sl_error *error) {
    size_t n = g->nodes;
    if (inout->low >= inout->high)
        return 0;
    arc *arcs = calloc(n + g->out.start[n], sizeof *arcs);
    network w = {0};
    int result = arcs != NULL ? network_open(&w, 2 * g->nodes, arcs, split_arcs(g, arcs), error)
                              : sl_fail(error, SL_ENOMEM,
                                        "out of memory for the node connectivity of %zu nodes", n);
    if (result == 0)
        cut_nodes(&w, g, inout);
    network_close(&w);
    free(arcs);
    return result;
}
