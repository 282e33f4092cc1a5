/* rounding.h - listed weights that were float32 once. */
#ifndef SL_ROUNDING_H
#define SL_ROUNDING_H

#include "topology/graph/graph.h"

/* Where all rows, or all columns, of listed weights miss 1 by no more than float32 rounds, they sum
 * to 1 afterwards: each node's own weight becomes 1 minus the rest. Where rows and columns do, both
 * sum to 1. Other weights stay as they are. */
int sl_weights_mend_rounding(slot *p, uint32_t nodes, sl_error *error);

#endif
