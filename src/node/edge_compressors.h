/* edge_compressors.h - what a node compresses with over each of its edges, where messages follow
 * the links (starling/link_budget.h). */
#ifndef SL_EDGE_COMPRESSORS_H
#define SL_EDGE_COMPRESSORS_H

#include "node/route.h"

/* Fills route->of_edge, which sl_route_close frees; the rest of the route is there. SL_ENOMEM. */
int sl_edge_compressors_open(sl_route *route, sl_error *error);
/* Of the edge of that colour; NULL: all edges have the plan's. Equal ones are one. */
const sl_compressor_config *sl_edge_compressor(const sl_route *route, uint32_t colour);

#endif
