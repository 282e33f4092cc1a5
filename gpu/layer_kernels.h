/* layer_kernels.h - the layers' kernels, in the form of kernels.h: each is the work of one thread.
 *
 * Floating-point sums over many threads use no atomics. A thread sums a slice of SLICE rows in
 * single precision. Then add_rows adds slices in double precision, SLICE at a time, until one is
 * left; batch normalization's sums go through blocks instead, in one launch (columns_of). So shapes
 * alone decide the order of a sum. It is not the CPU's order: results differ from the CPU's by
 * rounding.
 *
 * Indices within one launch fit 32 bits (SL_NETWORK_WORK_MAX). They are divided in 32 bits, which
 * is faster on a GPU. */
#ifndef SL_LAYER_KERNELS_H
#define SL_LAYER_KERNELS_H

#include "gpu/kernels_convolution.h"
#include "gpu/kernels_dense.h"
#include "gpu/kernels_image.h"
#include "gpu/kernels_text.h"

/* Each header lists its kernels at its end. */
#define SL_LAYER_KERNELS(X)                                                                        \
    SL_DENSE_KERNELS(X) SL_CONVOLUTION_KERNELS(X) SL_IMAGE_KERNELS(X) SL_TEXT_KERNELS(X)
#define SL_LAYER_BLOCK_KERNELS(X)                                                                  \
    SL_DENSE_BLOCK_KERNELS(X) SL_IMAGE_BLOCK_KERNELS(X) SL_TEXT_BLOCK_KERNELS(X)

#endif
