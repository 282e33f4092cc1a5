/* layout.h - where the nodes of a graph stand in its picture.
 *
 * A family is placed as its structure suggests: a ring on a circle, a grid on its lattice, a tree
 * by levels. Anything else is placed by its distances (stress majorization). Everything is
 * deterministic: the same graph stands the same everywhere.
 */
#ifndef LAYOUT_H
#define LAYOUT_H

#include "starling/topology.h"

typedef enum layout_kind {
    LAYOUT_CIRCLE,  /* clockwise from the top */
    LAYOUT_CYCLE,   /* the same in the order of the one cycle that the graph is */
    LAYOUT_ARC,     /* a circle with a gap below, for a path */
    LAYOUT_HUB,     /* node 0 amid the others */
    LAYOUT_COLUMNS, /* nodes 0 .. part - 1 left, the others right */
    LAYOUT_LATTICE, /* two dimensions plain, further ones nested into them */
    LAYOUT_TREE,    /* by distance from node 0: rows where there are few leaves, circles where there
                       are many */
    LAYOUT_STRESS   /* distances in the plane like those in the graph */
} layout_kind;

typedef struct layout {
    layout_kind kind;
    uint32_t part;
    uint32_t sides[SL_SIDES_MAX], side_count;
} layout;

/* Nodes that a picture can show one by one; distances of all pairs are kept. */
#define LAYOUT_NODES_MAX 500u

typedef struct layout_point {
    double x, y; /* y downwards */
} layout_point;

/* Which layout suits the topology; tells trees from their edges. */
layout layout_choose(const sl_topology *topology);
/* points (nodes, at most LAYOUT_NODES_MAX) within the square from 0 to 1, centred, touching two
 * sides of it at least. Edges of all slots count. */
int layout_place(layout_point *points, const layout *l, const sl_topology *topology,
                 sl_error *error);
/* In a lattice: how many steps along one dimension lead from i to j, if they are its two ends and
 * not neighbours (an edge that wraps around); else 0. */
uint32_t layout_wraps(const layout *l, uint32_t i, uint32_t j);

#endif
