/* layer_budget.h - compression by layer: each sends the most entries whose sending is hidden beside
 * the backward pass of the layer below (LAGS-SGD: Shi, Tang, Wang, Chu 2019, "Layer-wise adaptive
 * gradient sparsification for distributed deep learning", its choice of compression ratios), within
 * algorithm.compressor.fraction_min and .fraction. */
#ifndef STARLING_LAYER_BUDGET_H
#define STARLING_LAYER_BUDGET_H

#include "starling/compressor.h"
#include "starling/ranges.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Is one asked for, of a compressor that can have it? */
SL_API bool sl_has_layer_budget(const sl_compressor_config *compressor);

/* Sets fractions[t], (tensors), of each tensor of a vector, whose `ends` are given. A layer is a
 * matrix with what is between it and the next one, such as its bias; its tensors have one fraction.
 * Behind the last layer that is sent nothing is computed: it has the least fraction. */
SL_API void sl_layer_fractions(double *fractions, const sl_compressor_config *compressor,
                               const sl_shapes *shapes, const sl_sending_costs *costs);

#ifdef __cplusplus
}
#endif
#endif
