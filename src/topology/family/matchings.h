/* matchings.h - the edges of a graph in as few matchings as can be found quickly. */
#ifndef SL_MATCHINGS_H
#define SL_MATCHINGS_H

#include "topology/graph/graph.h"

typedef struct matchings {
    uint32_t nodes, edges, count; /* count: matchings, the largest degree or one more */
    uint32_t degree_max;
    uint32_t (*ends)[2]; /* (edges, 2) */
    uint32_t *of;        /* (edges) which matching an edge is in */
} matchings;

/* Of an undirected list, in which each edge stands in both directions one after the other. */
int sl_matchings_open(matchings *out, const edge_list *list, uint32_t nodes, sl_error *error);
void sl_matchings_close(matchings *m);

#endif
