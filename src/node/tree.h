/* tree.h - a tree over all nodes along edges that they have anyway, and sums in its order.
 *
 * Breadth first from rank 0, peers in rising order: equal on all nodes. A node adds its children's
 * sums to its own share, child after child in rising order, in double; the root divides and rounds
 * once. So the sum has the same bits in agents, whatever the order of arrival, and here.
 */
#ifndef SL_TREE_H
#define SL_TREE_H

#include "starling/algorithm.h"

typedef struct sl_tree {
    uint32_t nodes;
    uint32_t *order;   /* (nodes) ranks, breadth first; order[0] is the root, rank 0 */
    uint32_t *parents; /* (nodes) the root's is itself */
} sl_tree;

int sl_tree_open(sl_tree *out, const sl_algorithm *algorithm, const sl_algorithm_config *config,
                 const sl_topology *topology, sl_error *error);
void sl_tree_close(sl_tree *tree);

/* What one node adds, and where it gets the result. The counts and the divisor are equal on all
 * nodes; a node that has nothing to add gives zeros. */
typedef struct sl_share {
    float *x; /* (count) in: its own; out: (float)(sum over all nodes / divisor) */
    size_t count;
    double *numbers; /* (number_count) in: its own; out: the sum over all nodes, not divided */
    size_t number_count;
    double divisor;
} sl_share;

enum { SL_SHARE_NUMBERS_MAX = 32 };

/* All nodes' shares (nodes), where one process has them all: the bits of sl_agent_sum. */
int sl_tree_sum(const sl_tree *tree, const sl_share *shares, sl_error *error);

#endif
