/* network.h - layers of y = relu(x W + b), softmax and cross-entropy on top: the gradient of one
 * flat parameter vector.
 *
 * Parameters, layer after layer: W (in, out) row by row, then b (out). With no hidden layer this is
 * multinomial logistic regression. W lies (in, out) because OpenBLAS multiplies a small batch by it
 * a tenth faster than by its transpose. The gradient is written straight into the caller's vector;
 * the first layer's input needs none.
 */
#ifndef SL_LEARNER_NETWORK_H
#define SL_LEARNER_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#include "starling/experiment.h"

#define SL_NETWORK_SIZES_MAX (SL_HIDDEN_MAX + 2)
#define SL_NETWORK_DIMENSION_MAX ((size_t)1 << 31)
#define SL_NETWORK_WORK_MAX ((size_t)1 << 30) /* floats of activations */

typedef struct sl_network {
    uint32_t sizes[SL_NETWORK_SIZES_MAX]; /* input, hidden layers, classes */
    size_t layers;                        /* sizes - 1 */
    size_t dimension;                     /* parameters */
    size_t tensor_ends[2 * SL_NETWORK_SIZES_MAX]; /* (2 layers) weights and biases of each layer */
    uint32_t rows_max;
    float *work;                              /* one allocation behind the pointers below */
    float *activations[SL_NETWORK_SIZES_MAX]; /* each (rows_max, size); [0]: the input, filled by
                                                 the caller */
    float *deltas[2];                         /* (rows_max, widest hidden layer), alternating */
    float *panel;                             /* for sl_product_gradient */
    uint16_t *labels;                         /* (rows_max) filled by the caller */
} sl_network;

/* sizes[0 .. size_count) are input, hidden layers and classes. */
int sl_network_open(sl_network *out, const uint32_t *sizes, size_t size_count, uint32_t rows_max,
                    sl_error *error);
void sl_network_close(sl_network *network);

/* Weights N(0, 2/in) (He et al. 2015), biases 0; all 0 without a hidden layer. */
void sl_network_initial(const sl_network *network, uint64_t seed, float *x);
/* Mean loss over the first `rows` of the input; its gradient into g (dimension). */
double sl_network_gradient(sl_network *network, uint32_t rows, const float *x, float *g);
/* Sum of losses over the first `rows` of the input; *correct grows by the rows whose largest output
 * is their label. */
double sl_network_score(sl_network *network, uint32_t rows, const float *x, uint64_t *correct);

#endif
