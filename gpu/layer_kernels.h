/* layer_kernels.h - the layers' kernels, in the form of kernels.h: each the work of one thread.
 *
 * Numbers that many threads' work goes into are never met by atomics: a thread sums a slice of
 * SLICE rows in single precision, and add_rows then adds slices in double precision, SLICE at a
 * time, until one is left. So every sum has one order, which depends on shapes alone. It is not the
 * CPU's order: results differ from the CPU's by rounding.
 *
 * Indices within one launch fit 32 bits (SL_NETWORK_WORK_MAX), and are taken apart in 32 bits, for
 * which a GPU has faster divisions.
 */
#ifndef SL_LAYER_KERNELS_H
#define SL_LAYER_KERNELS_H

#include "gpu/kernels_dense.h"
#include "gpu/kernels_image.h"
#include "gpu/kernels_text.h"

/* Each header lists its kernels at its end. */
#define SL_LAYER_KERNELS(X) SL_DENSE_KERNELS(X) SL_IMAGE_KERNELS(X) SL_TEXT_KERNELS(X)

#endif
