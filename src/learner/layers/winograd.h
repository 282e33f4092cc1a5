/* winograd.h - 3x3 convolutions of stride 1 with a quarter of the multiplications: F(4x4, 3x3).
 *
 * Lavin, Gray: "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, equations 8 to 15;
 * weights' gradient by the transposed transforms. For 4x4 outputs a convolution becomes 36 products
 * instead of 144, in a transformed space where each of the 36 numbers is a matrix product over
 * channels of its own. Rounding errors are about ten times those of the direct sums: some 1e-6 of
 * the largest output.
 */
#ifndef SL_LEARNER_WINOGRAD_H
#define SL_LEARNER_WINOGRAD_H

#include "learner/layers/layer_cpu.h"

#define sl_winograd_forward SL_JOIN(sl_winograd_forward, SL_LEVEL)
#define sl_winograd_input_gradient SL_JOIN(sl_winograd_input_gradient, SL_LEVEL)
#define sl_winograd_weight_gradient SL_JOIN(sl_winograd_weight_gradient, SL_LEVEL)
#define sl_winograd_fits SL_JOIN(sl_winograd_fits, SL_LEVEL)
#define sl_winograd_scratch SL_JOIN(sl_winograd_scratch, SL_LEVEL)

/* 3x3, stride 1, padding 1, channels in multiples of 16, neither bias nor relu. */
bool sl_winograd_fits(const sl_layer *layer);
size_t sl_winograd_scratch(const sl_layer *layer); /* floats of call->scratch */

/* The parts of a convolution's forward and backward pass, as in sl_layer_call. */
void sl_winograd_forward(const sl_layer_call *call);
void sl_winograd_input_gradient(const sl_layer_call *call);
void sl_winograd_weight_gradient(const sl_layer_call *call);

#endif
