/* apply.h - W times a vector, phase by phase. */
#ifndef SL_APPLY_H
#define SL_APPLY_H

#include "topology/graph.h"

/* y = W x and y = W^T x of one phase; x and y (nodes) do not overlap. */
void phase_apply(const phase *p, uint32_t nodes, const double *x, double *y);
void phase_apply_transposed(const phase *p, uint32_t nodes, const double *x, double *y);
/* Takes the mean off. */
void subtract_mean(double *x, uint32_t nodes);
/* Mean 0, length 1, from the counter-based generator: the same everywhere. */
void random_direction(double *x, uint32_t nodes, uint64_t which);
double length_of(const double *x, uint32_t nodes);

#endif
