/* relay_tree.c - see relay_tree.h. */
#include "algorithm/gossip/relay_tree.h"

#include <stdlib.h>

/* Adds the node's neighbours that are not there yet, in the order of their ranks. */
static int add_children(sl_relay_tree *t, const sl_topology *topology, sl_tree_choice choice,
                        uint32_t node, bool *seen, uint32_t *count, sl_error *error) {
    const sl_row row = sl_topology_in(topology, 1, node);
    uint32_t colour = 0;
    for (uint32_t k = 0; k < row.count; k++) {
        const uint32_t peer = row.peers[k];
        if (seen[peer] && peer != t->parents[node] && choice == SL_TREE_TOPOLOGY)
            return sl_fail(error, SL_EINVAL,
                           "algorithm.tree: \"topology\", but the edge of nodes %u and %u closes a "
                           "cycle; take \"spanning\", or a topology that is a tree, such as path, "
                           "star or k-ary-tree",
                           node, peer);
        if (seen[peer])
            continue;
        colour += t->parents[node] != SL_NOBODY && colour == t->colour[node];
        seen[peer] = true;
        t->parents[peer] = node;
        t->colour[peer] = colour++;
        t->colours = colour > t->colours ? colour : t->colours;
        t->order[(*count)++] = peer;
    }
    return 0;
}

int sl_relay_tree_open(sl_relay_tree *t, const sl_topology *topology, sl_tree_choice choice,
                       sl_error *error) {
    const uint32_t nodes = sl_topology_nodes(topology);
    bool *seen = calloc(nodes, sizeof *seen);
    *t = (sl_relay_tree){.nodes = nodes,
                         .parents = calloc(nodes, sizeof *t->parents),
                         .colour = calloc(nodes, sizeof *t->colour),
                         .order = calloc(nodes, sizeof *t->order)};
    int result = 0;
    uint32_t count = 0;
    if (seen == NULL || t->parents == NULL || t->colour == NULL || t->order == NULL)
        result = sl_fail(error, SL_ENOMEM, "topology: out of memory for a tree of %u nodes", nodes);
    for (uint32_t i = 0; i < nodes && result == 0; i++)
        t->parents[i] = SL_NOBODY;
    for (uint32_t root = 0, done = 0; root < nodes && result == 0; root++) {
        if (seen[root])
            continue;
        seen[root] = true;
        t->order[count++] = root;
        for (; done < count && result == 0; done++)
            result = add_children(t, topology, choice, t->order[done], seen, &count, error);
    }
    free(seen);
    if (result != 0)
        sl_relay_tree_close(t);
    return result;
}

void sl_relay_tree_close(sl_relay_tree *t) {
    free(t->parents);
    free(t->colour);
    free(t->order);
    *t = (sl_relay_tree){0};
}

void sl_relay_tree_peers(const sl_relay_tree *t, uint32_t rank, uint32_t *peers) {
    for (uint32_t c = 0; c < t->colours; c++)
        peers[c] = SL_NOBODY;
    if (t->parents[rank] != SL_NOBODY)
        peers[t->colour[rank]] = t->parents[rank];
    for (uint32_t i = 0; i < t->nodes; i++)
        if (t->parents[i] == rank)
            peers[t->colour[i]] = i;
}

/* A node's distance is known from its parent's; those of the rank's forebears first. */
int sl_relay_tree_within(const sl_relay_tree *t, uint32_t rank, uint32_t *within) {
    uint32_t *distance = calloc(t->nodes, sizeof *distance);
    if (distance == NULL)
        return SL_ENOMEM;
    for (uint32_t i = 0; i < t->nodes; i++) {
        distance[i] = t->nodes;
        within[i] = 0;
    }
    for (uint32_t i = rank, steps = 0; i != SL_NOBODY; i = t->parents[i])
        distance[i] = steps++;
    for (uint32_t k = 0; k < t->nodes; k++) {
        const uint32_t i = t->order[k], parent = t->parents[i];
        if (distance[i] == t->nodes && parent != SL_NOBODY && distance[parent] < t->nodes)
            distance[i] = distance[parent] + 1;
        if (distance[i] < t->nodes)
            within[distance[i]]++;
    }
    for (uint32_t d = 1; d < t->nodes; d++)
        within[d] += within[d - 1];
    free(distance);
    return 0;
}
