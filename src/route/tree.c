/* tree.c - see tree.h. */
#include "route/tree.h"

#include <stdlib.h>
#include <string.h>

#include "route/route.h"

enum { BLOCK = 1024 };

/* Puts the peers of a rank that the tree does not have yet at the end of its order. */
static void add_children(sl_tree *t, const sl_route *route) {
    for (uint32_t i = 0; i < route->peer_count; i++)
        if (t->parents[route->peers[i]] == SL_TREE_NOBODY) {
            t->parents[route->peers[i]] = route->rank;
            t->order[t->count++] = route->peers[i];
        }
}

static int search(sl_tree *t, const sl_algorithm *algorithm, const sl_algorithm_config *config,
                  const sl_topology *topology, const sl_members *members, sl_error *error) {
    const uint32_t root = members != NULL && members->ranks != NULL ? members->ranks[0] : 0;
    t->order[t->count++] = root;
    t->parents[root] = root;
    for (uint32_t i = 0; i < t->count; i++) {
        sl_route route;
        int result = sl_route_open(&route, algorithm, config, topology, members, t->order[i],
                                   &(sl_shapes){.dimension = 1}, NULL, error);
        if (result == 0)
            add_children(t, &route);
        sl_route_close(&route);
        if (result != 0)
            return result;
    }
    return 0;
}

int sl_tree_open(sl_tree *out, const sl_algorithm *algorithm, const sl_algorithm_config *config,
                 const sl_topology *topology, const sl_members *members, sl_error *error) {
    sl_tree t = {.nodes = sl_topology_nodes(topology)};
    t.order = calloc(t.nodes, sizeof *t.order);
    t.parents = calloc(t.nodes, sizeof *t.parents);
    for (uint32_t i = 0; t.parents != NULL && i < t.nodes; i++)
        t.parents[i] = SL_TREE_NOBODY;
    int result = t.order != NULL && t.parents != NULL
                     ? search(&t, algorithm, config, topology, members, error)
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
