/* layout.h - where the nodes of a graph stand in its picture.
 *
 * A family is placed as its structure suggests: a ring on a circle, a grid on its lattice, a tree
 * by levels. Anything else is placed by its distances (stress majorization). Everything is
 * deterministic: the same graph stands the same everywhere.
 */
#ifndef STARLING_LAYOUT_H
#define STARLING_LAYOUT_H

#include "starling/api.h"
#include "starling/topology.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sl_layout_kind {
    SL_LAYOUT_CIRCLE,  /* clockwise from the top */
    SL_LAYOUT_CYCLE,   /* the same in the order of the one cycle that the graph is */
    SL_LAYOUT_ARC,     /* a circle with a gap below, for a path */
    SL_LAYOUT_HUB,     /* node 0 amid the others */
    SL_LAYOUT_COLUMNS, /* nodes 0 .. part - 1 left, the others right */
    SL_LAYOUT_LATTICE, /* two dimensions plain, further ones nested into them */
    SL_LAYOUT_TREE, /* by distance from node 0: rows where there are few leaves, circles where there
                    are many */
    SL_LAYOUT_STRESS /* distances in the plane like those in the graph */
} sl_layout_kind;

typedef struct sl_layout {
    sl_layout_kind kind;
    uint32_t part;
    uint32_t sides[SL_SIDES_MAX], side_count;
} sl_layout;

/* Nodes that a picture can show one by one; distances of all pairs are kept. */
#define SL_LAYOUT_NODES_MAX 500u

typedef struct sl_point {
    double x, y; /* y downwards */
} sl_point;

/* Which layout suits the topology; tells trees from their edges. */
SL_API sl_layout sl_layout_choose(const sl_topology *topology);
/* points (nodes, at most SL_LAYOUT_NODES_MAX) within the square from 0 to 1, centred, touching two
 * sides of it at least. Edges of all slots count. SL_EINVAL: there are more. */
SL_API int sl_layout_place(sl_point *points, const sl_layout *l, const sl_topology *topology,
                           sl_error *error);
/* In a lattice: how many steps along one dimension lead from i to j, if they are its two ends and
 * not neighbours (an edge that wraps around); else 0. */
SL_API uint32_t sl_layout_wraps(const sl_layout *l, uint32_t i, uint32_t j);

#ifdef __cplusplus
}
#endif
#endif
