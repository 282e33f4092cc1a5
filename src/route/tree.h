/* tree.h - a tree over the nodes of a run, or those of a view, along edges that they have anyway,
 * and sums in its order.
 *
 * Breadth first from the lowest rank, peers in rising order: equal on all nodes. A node adds its
 * children's sums to its own share, child after child in rising order, in double; the root divides
 * and rounds once. So the sum has the same bits in agents, whatever the order of arrival, and here.
 */
#ifndef SL_TREE_H
#define SL_TREE_H

#include "starling/algorithm.h"
#include "starling/view.h"

typedef struct sl_tree {
    uint32_t nodes;    /* of the run */
    uint32_t count;    /* of those in the tree */
    uint32_t *order;   /* (count) ranks, breadth first; order[0] is the root */
    uint32_t *parents; /* (nodes) the root's is itself; of who is not in it, SL_TREE_NOBODY */
} sl_tree;

#define SL_TREE_NOBODY UINT32_MAX

/* Those of a view. */
typedef struct sl_tree_members {
    sl_members members;
    const sl_pair *broken; /* (broken_count) edges that it does without */
    uint32_t broken_count;
} sl_tree_members;

/* some NULL: all. */
int sl_tree_open(sl_tree *out, const sl_algorithm *algorithm, const sl_algorithm_config *config,
                 const sl_topology *topology, const sl_tree_members *some, sl_error *error);
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

/* All nodes' shares (nodes), where one process has them all: the bits of sl_agent_sum. Those of who
 * is not in the tree are not looked at. */
int sl_tree_sum(const sl_tree *tree, const sl_share *shares, sl_error *error);

#endif
