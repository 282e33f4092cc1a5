/* relay_tree.h - a tree of a topology's edges, and an order in which its nodes meet edge by edge.
 *
 * Where messages differ from neighbour to neighbour, an exchange is a list of meetings: the edges
 * have colours, no two at a node the same, and edges of one colour meet at once. A tree needs as
 * many colours as its largest degree.
 */
#ifndef SL_RELAY_TREE_H
#define SL_RELAY_TREE_H

#include "starling/algorithm.h"

#define SL_NOBODY UINT32_MAX

typedef struct sl_relay_tree {
    uint32_t nodes, colours;
    uint32_t *parents; /* (nodes) SL_NOBODY: of the root, the lowest rank, and who has no edges */
    uint32_t *colour;  /* (nodes) of the edge to the parent */
    uint32_t *order;   /* (nodes) parents before children */
} sl_relay_tree;

/* Breadth first from the lowest rank. `choice` SL_TREE_TOPOLOGY: an edge that closes a cycle is
 * refused with SL_EINVAL. SL_ENOMEM. */
int sl_relay_tree_open(sl_relay_tree *tree, const sl_topology *topology, sl_tree_choice choice,
                       sl_error *error);
void sl_relay_tree_close(sl_relay_tree *tree);
/* peers[c]: whom `rank` meets over its edge of colour c, or SL_NOBODY; (colours). */
void sl_relay_tree_peers(const sl_relay_tree *tree, uint32_t rank, uint32_t *peers);
/* within[t]: how many nodes are at most t edges from `rank`; (nodes), the last ones all alike.
 * SL_ENOMEM. */
int sl_relay_tree_within(const sl_relay_tree *tree, uint32_t rank, uint32_t *within);

#endif
