/* tree.c - see tree.h. */
#include "route/tree.h"

#include <stdlib.h>
#include <string.h>

#include "route/route.h"

enum { BLOCK = 1024 };

/* What the tree is over. */
typedef struct ground {
    const sl_algorithm *algorithm;
    const sl_algorithm_config *config;
    const sl_topology *topology;
    const sl_tree_members *some;
} ground;

/* At the end of its order, if the tree does not have it yet. */
static void add(sl_tree *t, const ground *g, uint32_t parent, uint32_t rank) {
    const sl_view broken = {.broken = g->some != NULL ? g->some->broken : NULL,
                            .broken_count = g->some != NULL ? g->some->broken_count : 0};
    if (t->parents[rank] != SL_TREE_NOBODY || sl_view_is_broken(&broken, parent, rank))
        return;
    t->parents[rank] = parent;
    t->order[t->count++] = rank;
}

/* Puts the peers of the tree's rank number `at` there. */
static int add_children(sl_tree *t, const ground *g, uint32_t at, sl_error *error) {
    sl_route route;
    const int result = sl_route_open(&route, g->algorithm, g->config, g->topology,
                                     g->some != NULL ? &g->some->members : NULL, t->order[at],
                                     &(sl_shapes){.dimension = 1}, NULL, error);
    for (uint32_t i = 0; i < route.peer_count && result == 0; i++)
        add(t, g, route.rank, route.peers[i]);
    sl_route_close(&route);
    return result;
}

/* Broken edges may leave members out: the first of them goes to the first of the tree that it
 * reaches, as members are all connected then. */
static void add_left_out(sl_tree *t, const ground *g) {
    const uint32_t before = t->count;
    for (uint32_t k = 0; k < g->some->members.count && t->count == before; k++)
        for (uint32_t i = 0; i < before && t->count == before; i++)
            add(t, g, t->order[i], g->some->members.ranks[k]);
}

/* Breadth first again: the children of a rank may have come at two times. */
static int sort(sl_tree *t, sl_error *error) {
    uint32_t *first = malloc(t->nodes * sizeof *first), *next = malloc(t->nodes * sizeof *next);
    const uint32_t root = t->order[0];
    const bool fits = first != NULL && next != NULL;
    for (uint32_t i = 0; fits && i < t->nodes; i++)
        first[i] = SL_TREE_NOBODY;
    for (uint32_t i = t->nodes; fits && i-- > 0;)
        if (i != root && t->parents[i] != SL_TREE_NOBODY) {
            next[i] = first[t->parents[i]];
            first[t->parents[i]] = i;
        }
    t->count = 1;
    for (uint32_t i = 0; fits && i < t->count; i++)
        for (uint32_t child = first[t->order[i]]; child != SL_TREE_NOBODY; child = next[child])
            t->order[t->count++] = child;
    free(first);
    free(next);
    return fits ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for a tree of %u nodes", t->nodes);
}

static int search(sl_tree *t, const ground *g, sl_error *error) {
    const uint32_t *ranks = g->some != NULL ? g->some->members.ranks : NULL,
                   root = ranks != NULL ? ranks[0] : 0;
    int result = 0;
    t->order[t->count++] = root;
    t->parents[root] = root;
    for (uint32_t i = 0; i < t->count && result == 0; i++) {
        result = add_children(t, g, i, error);
        if (i + 1 == t->count && ranks != NULL && g->some->broken_count > 0)
            add_left_out(t, g);
    }
    return result == 0 ? sort(t, error) : result;
}

int sl_tree_open(sl_tree *out, const sl_algorithm *algorithm, const sl_algorithm_config *config,
                 const sl_topology *topology, const sl_tree_members *some, sl_error *error) {
    const ground g = {algorithm, config, topology, some};
    sl_tree t = {.nodes = sl_topology_nodes(topology)};
    t.order = calloc(t.nodes, sizeof *t.order);
    t.parents = calloc(t.nodes, sizeof *t.parents);
    for (uint32_t i = 0; t.parents != NULL && i < t.nodes; i++)
        t.parents[i] = SL_TREE_NOBODY;
    int result = t.order != NULL && t.parents != NULL
                     ? search(&t, &g, error)
                     : sl_fail(error, SL_ENOMEM, "out of memory for a tree of %u nodes", t.nodes);
    if (result != 0)
        sl_tree_close(&t);
    else
        *out = t;
    return result;
}

void sl_tree_close(sl_tree *t) {
    free(t->order);
    free(t->parents);
    memset(t, 0, sizeof *t);
}

/* ---- sums in one process ---- */

/* partials: (nodes, BLOCK) the nodes' own; the root's row becomes the sum, and is returned. A
 * node's row is whole before its parent adds it, and a parent adds its children in rising order:
 * they stand so in `order`. */
static const double *add_up(const sl_tree *t, double *partials, size_t count) {
    for (uint32_t last = t->count; last > 1;) {
        uint32_t first = last - 1; /* the children of one parent stand side by side */
        const uint32_t parent = t->parents[t->order[first]];
        while (first > 1 && t->parents[t->order[first - 1]] == parent)
            first--;
        for (uint32_t i = first; i < last; i++)
            for (size_t e = 0; e < count; e++)
                partials[(size_t)parent * BLOCK + e] += partials[(size_t)t->order[i] * BLOCK + e];
        last = first;
    }
    return partials + (size_t)t->order[0] * BLOCK;
}

static void sum_vectors(const sl_tree *t, const sl_share *shares, double *partials, size_t from,
                        size_t count) {
    const double divisor = shares[t->order[0]].divisor;
    for (uint32_t k = 0; k < t->count; k++)
        for (size_t e = 0; e < count; e++)
            partials[(size_t)t->order[k] * BLOCK + e] = shares[t->order[k]].x[from + e];
    const double *sum = add_up(t, partials, count);
    for (uint32_t k = 0; k < t->count; k++)
        for (size_t e = 0; e < count; e++)
            shares[t->order[k]].x[from + e] = (float)(sum[e] / divisor);
}

static void sum_numbers(const sl_tree *t, const sl_share *shares, double *partials, size_t from,
                        size_t count) {
    for (uint32_t k = 0; k < t->count; k++)
        memcpy(partials + (size_t)t->order[k] * BLOCK, shares[t->order[k]].numbers + from,
               count * sizeof *partials);
    const double *sum = add_up(t, partials, count);
    for (uint32_t k = 0; k < t->count; k++)
        memcpy(shares[t->order[k]].numbers + from, sum, count * sizeof *partials);
}

static size_t block_at(size_t from, size_t count) {
    return count - from < BLOCK ? count - from : BLOCK;
}

int sl_tree_sum(const sl_tree *t, const sl_share *shares, sl_error *error) {
    double *partials = malloc((size_t)t->nodes * BLOCK * sizeof *partials);
    if (partials == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a sum over %u nodes", t->nodes);
    const sl_share *any = &shares[t->order[0]];
    for (size_t from = 0; from < any->count; from += BLOCK)
        sum_vectors(t, shares, partials, from, block_at(from, any->count));
    for (size_t from = 0; from < any->number_count; from += BLOCK)
        sum_numbers(t, shares, partials, from, block_at(from, any->number_count));
    free(partials);
    return 0;
}
