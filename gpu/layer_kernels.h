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

/* By hand: clang-format moves a name to the next line each time that it runs. */
/* clang-format off */
#define SL_LAYER_KERNELS(X)                                                                        \
    X(add_rows) X(finish_rows) X(take_rows) X(find_loss) X(unfold) X(fold) X(pool_largest)         \
    X(pool_mean) X(give_to_largest) X(give_to_all) X(add_moments) X(settle_moments)                \
    X(recall_moments) X(normalise) X(take_normalised) X(settle_factors) X(give_normalised)         \
    X(embed) X(gather_codes) X(gather_positions) X(lstm_advance) X(lstm_retreat)                   \
    X(position_lanes) X(position_moments) X(normalise_positions) X(position_products)              \
    X(position_means) X(give_positions) X(take_positions) X(softmax_rows) X(softmax_gradient)      \
    X(gelu_value) X(gelu_slope)
/* clang-format on */

#endif
