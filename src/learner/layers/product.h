/* product.h - a layer's two large matrix products, y = x w and g = x^T d, for the few rows of a
 * batch.
 *
 * All matrices lie row by row: x (rows, in), w (in, out), d and y (rows, out), g (in, out). With
 * few rows w and g are large against the work on them, and what counts is to touch each once: a
 * general sgemm first copies w into panels; it clears g, then reads it and adds. On processors with
 * AVX2 or AVX-512, kernels of our own (product_tiles.c) take nine and six tenths (y), two thirds
 * and nine tenths (g) of OpenBLAS's time; elsewhere, and for other shapes, OpenBLAS does it. The
 * order of every sum is fixed, so that the bits do not depend on where the vectors lie, nor the
 * kernels' on which of them ran.
 */
#ifndef SL_LEARNER_PRODUCT_H
#define SL_LEARNER_PRODUCT_H

#include <stdint.h>

/* Numbers of y or d (columns padded to 16) up to which the kernels are used: they stay in cache. */
#define SL_PRODUCT_PANEL_MAX 65536u

/* y = x w. `panel`, in both: working memory of SL_PRODUCT_PANEL_MAX floats, 32-byte aligned. */
void sl_product_forward(float *y, const float *x, const float *w, uint32_t rows, uint32_t in,
                        uint32_t out, float *panel);

/* g = x^T d. */
void sl_product_gradient(float *g, const float *x, const float *d, uint32_t rows, uint32_t in,
                         uint32_t out, float *panel);

#endif
