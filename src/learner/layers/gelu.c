/* gelu.c - Gaussian error linear units, in the form with tanh (Hendrycks, Gimpel 2016, section 2;
 * Radford et al. 2019):
 *
 *     y = x s(2 u),  u = sqrt(2/pi) (x + 0.044715 x^3),  s the logistic function, since (1 + tanh
 *                    u)/2 = s(2 u)
 *     dy/dx = s + x s (1 - s) 2 u'
 */
#include "learner/layers/layer_cpu.h"

#include "learner/layers/simd_math.h"

#define TWICE_ROOT 1.59576912f /* 2 sqrt(2/pi) */
#define CUBIC 0.044715f

static sl_layer_memory memory(const sl_layer *layer, uint32_t rows) {
    (void)layer, (void)rows;
    return (sl_layer_memory){0};
}

KERNEL lanes value(lanes x) {
    return x * sigmoid_lanes(TWICE_ROOT * x * (1.0f + CUBIC * x * x));
}

KERNEL lanes slope(lanes x) {
    lanes s = sigmoid_lanes(TWICE_ROOT * x * (1.0f + CUBIC * x * x));
    return s + x * s * (1.0f - s) * TWICE_ROOT * (1.0f + 3 * CUBIC * x * x);
}

static void forward_all(float *y, const float *x, size_t count) {
    for (size_t i = 0; i < count; i += LANES) {
        uint32_t width = count - i < LANES ? (uint32_t)(count - i) : LANES;
        store_part(y + i, value(load_part(x + i, width)), width);
    }
}

static void backward_all(float *d_in, const float *d, const float *x, size_t count, bool add) {
    for (size_t i = 0; i < count; i += LANES) {
        uint32_t width = count - i < LANES ? (uint32_t)(count - i) : LANES;
        lanes v = load_part(d + i, width) * slope(load_part(x + i, width));
        store_part(d_in + i, add ? v + load_part(d_in + i, width) : v, width);
    }
}

static void forward(const sl_layer_call *c) {
    forward_all(c->out, c->in, c->rows * sl_shape_size(c->layer->in));
}

static void backward(const sl_layer_call *c) {
    if (c->d_in != NULL)
        backward_all(c->d_in, c->d_out, c->in, c->rows * sl_shape_size(c->layer->in), c->add_in);
}

SL_LAYER(gelu) = {.shape = sl_layer_keep_shape, .ops = {memory, forward, backward}};
