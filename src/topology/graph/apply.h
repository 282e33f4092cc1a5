/* apply.h - W times a vector, slot by slot. */
#ifndef SL_APPLY_H
#define SL_APPLY_H

#include "topology/graph/graph.h"

/* y = W x and y = W^T x of one slot; x and y (nodes) do not overlap. */
void sl_slot_apply(const slot *p, uint32_t nodes, const double *x, double *y);
void sl_slot_apply_transposed(const slot *p, uint32_t nodes, const double *x, double *y);
/* Takes the mean off. */
void sl_vector_center(double *x, uint32_t nodes);
/* Mean 0, length 1, from the counter-based generator: the same everywhere. */
void sl_vector_random(double *x, uint32_t nodes, uint64_t which);
double sl_vector_length(const double *x, uint32_t nodes);

#endif
