/* sides.h - the two sides of a bipartite graph: that of rank 0, and the other. */
#ifndef SL_SIDES_H
#define SL_SIDES_H

#include "starling/graph.h"

/* Of a connected undirected graph, the side of each node (nodes): 0, rank 0's, or 1. SL_EINVAL: it
 * has a cycle of odd length, which the error shows. SL_ENOMEM. */
int sl_sides(uint8_t *side, const sl_topology *topology, sl_error *error);

#endif
