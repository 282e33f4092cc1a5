/* edge_colours.h - an order in which all neighbours of a topology meet, edge by edge.
 *
 * Edges have colours, no two at a node the same, so that edges of one colour meet at once. Each
 * edge, in the order of its lower and then its higher rank, takes the first colour that neither end
 * has: fewer than twice the largest degree. Each slot of a schedule is coloured by itself.
 */
#ifndef SL_EDGE_COLOURS_H
#define SL_EDGE_COLOURS_H

#include "starling/algorithm.h"

typedef struct sl_coloured_edge {
    uint32_t slot, i, j, colour; /* i < j */
} sl_coloured_edge;
/* Tells each edge in the order in which it is coloured. *colours: of the slot that has most.
 * SL_ENOMEM. */
int sl_edge_colours_each(uint32_t *colours, const sl_topology *topology,
                         void (*each)(void *context, const sl_coloured_edge *edge), void *context,
                         sl_error *error);

/* (*peers) (slots, *colours + 1), malloc'ed: whom `rank` meets over its edge of each colour, or
 * SL_NOBODY; the last one of a slot is nobody. *colours: of the slot that has most. The topology is
 * undirected. SL_ENOMEM. */
int sl_edge_colours(uint32_t *colours, uint32_t **peers, const sl_topology *topology, uint32_t rank,
                    sl_error *error);

#endif
