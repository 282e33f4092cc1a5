/* union.h - the graph that a schedule makes over its whole period, and searches on it. Shared by
 * the files that measure structure. */
#ifndef SL_UNION_H
#define SL_UNION_H

#include "starling/analysis.h"
#include "topology/graph/graph.h"

/* Neighbours of i stand at start[i] .. start[i + 1], sorted, without i. */
typedef struct adjacency {
    uint64_t *start; /* (nodes + 1) */
    uint32_t *peers;
} adjacency;

/* The union over all slots, seen along the edges, against them, and both ways. Where there is
 * nothing to unite it borrows the topology's own rows. */
typedef struct union_graph {
    uint32_t nodes;
    bool directed; /* some edge has no reverse */
    adjacency out, in, both;
    bool owns;
} union_graph;

int sl_union_open(union_graph *out, const sl_topology *topology, sl_error *error);
void sl_union_close(union_graph *g);
bool sl_adjacency_has(const adjacency *a, uint32_t from, uint32_t to);

/* Work that is left; a measure stops when it is gone. */
typedef struct budget {
    uint64_t left;
} budget;
static inline bool budget_spend(budget *b, uint64_t work) { /* is any left? */
    b->left = b->left > work ? b->left - work : 0;
    return b->left > 0;
}

/* Breadth first from `source`: distance[j] in hops, UINT32_MAX where not reached; returns the
 * largest. queue: (nodes) */
uint32_t sl_union_breadth_first(const adjacency *a, uint32_t nodes, uint32_t source,
                                uint32_t *distance, uint32_t *queue, budget *b);

/* structure.c: edges and degrees into *r. */
void sl_topology_degrees(sl_structure *r, const sl_topology *t);
/* Is every node like every other, so that one stands for all? Known of families, not found out. */
bool sl_topology_is_alike(const sl_topology *t);

/* diameter.c; of a connected graph. */
int sl_union_diameter(sl_bounds *out, const union_graph *g, bool vertex_transitive,
                      sl_error *error);

/* cuts.c: bridges and cut nodes, directions aside; *first: the lowest cut node. */
int sl_union_cuts(const union_graph *g, uint32_t *bridges, uint32_t *cut_nodes, uint32_t *first,
                  sl_error *error);

/* connectivity.c; of a connected graph of at least 2 nodes; narrows bounds that hold. */
int sl_union_edge_connectivity(sl_bounds *inout, const union_graph *g, sl_error *error);
int sl_union_node_connectivity(sl_bounds *inout, const union_graph *g, sl_error *error);

#endif
