/* rounding.h - listed weights that were rounded: to float32, or to the digits of a paper. */
#ifndef SL_ROUNDING_H
#define SL_ROUNDING_H

#include "topology/graph/graph.h"

/* Where all rows, or all columns, of listed weights miss 1 by no more than rounding makes of so
 * many (SL_ROUNDED_WEIGHT each), they sum to 1 afterwards: each node's own weight becomes 1 minus
 * the rest. Where rows and columns do, both sum to 1; where W is as nearly symmetric, it is
 * symmetric. Other weights, and sums that are right, stay as they are. p->mended says how far off
 * they were. */
int sl_weights_mend_rounding(slot *p, uint32_t nodes, sl_error *error);

#endif
