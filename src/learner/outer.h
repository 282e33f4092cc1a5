/* outer.h - sums of outer products: the gradient of a layer's weights.
 *
 * g = x^T d for x (rows, in) and d (rows, out), both row by row, g (in, out). A batch has few rows,
 * so g is large against the work on it, and what counts is to write it once: a general sgemm clears
 * it, then reads and adds. On processors with AVX2 and FMA a kernel of our own takes two thirds of
 * OpenBLAS's time; elsewhere, and for large batches, OpenBLAS does it. The order of the sum over
 * rows is fixed, so that the bits do not depend on where the vectors lie.
 */
#ifndef SL_LEARNER_OUTER_H
#define SL_LEARNER_OUTER_H

#include <stdint.h>

#define SL_OUTER_PANEL_MAX                                                                         \
    65536u /* numbers of d (columns padded to 16) up to which the kernel is used: they stay in     \
              cache */

/* `panel` is working memory of SL_OUTER_PANEL_MAX floats, 32-byte aligned. */
void sl_outer_sum(float *g, const float *x, const float *d, uint32_t rows, uint32_t in,
                  uint32_t out, float *panel);

#endif
