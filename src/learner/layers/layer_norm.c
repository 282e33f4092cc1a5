/* layer_norm.c - layer normalisation (Ba, Kiros, Hinton 2016) over the channels of each position:
 *
 *     u = (x - m) / sqrt(v + epsilon),  y = s u + t
 *
 * m, v: mean and (biased) variance of the position's n channels. Backward, with d = d loss / d y
 * and e = d s:
 *
 *     dt = sum d;  ds = sum d u;  dx = (e - mean(e) - u mean(e u)) / sqrt(v + epsilon)
 *
 * dt and ds run in float over a sample's positions and in double over samples.
 */
#include "learner/layers/layer_cpu.h"

#include <math.h>

#include "learner/layers/simd.h"

#define EPSILON 1e-5f

static size_t positions_of(const sl_layer *l) {
    return (size_t)l->in.height * l->in.width;
}

/* saved: m and 1/sqrt(v + epsilon) of each position. scratch: ds and dt of a sample, then their
 * sums in double. */
static sl_layer_memory memory(const sl_layer *layer, uint32_t rows) {
    return (sl_layer_memory){.saved = 2 * rows * positions_of(layer),
                             .scratch = 6 * (size_t)layer->in.channels};
}

KERNEL float sum_of(lanes v) {
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

static inline uint32_t width_at(uint32_t k, uint32_t channels) {
    return channels - k < LANES ? channels - k : LANES;
}

KERNEL float mean_of(const float *x, uint32_t n) {
    lanes sum = broadcast(0);
    for (uint32_t k = 0; k < n; k += LANES)
        sum += load_part(x + k, width_at(k, n));
    return sum_of(sum) / (float)n;
}

/* Lanes beyond the last channel take the mean, so that they add nothing to the variance. */
KERNEL float variance_of(const float *x, uint32_t n, float mean) {
    lanes sum = broadcast(0);
    uint32_t whole = n / LANES * LANES;
    for (uint32_t k = 0; k < whole; k += LANES) {
        lanes v = load(x + k) - mean;
        sum += v * v;
    }
    float rest = 0;
    for (uint32_t k = whole; k < n; k++)
        rest += (x[k] - mean) * (x[k] - mean);
    return (sum_of(sum) + rest) / (float)n;
}

static void forward_all(const sl_layer_call *c, size_t positions, uint32_t n) {
    const float *scale = c->w, *shift = c->w + n;
    for (size_t p = 0; p < positions; p++) {
        const float *x = c->in + p * n;
        float *y = c->out + p * n, mean = mean_of(x, n),
              inverse = 1 / sqrtf(variance_of(x, n, mean) + EPSILON);
        c->saved[2 * p] = mean;
        c->saved[2 * p + 1] = inverse;
        for (uint32_t k = 0; k < n; k += LANES) {
            uint32_t width = width_at(k, n);
            lanes u = (load_part(x + k, width) - mean) * inverse;
            store_part(y + k, u * load_part(scale + k, width) + load_part(shift + k, width), width);
        }
    }
}

/* Adds one position's parts of ds and dt. */
KERNEL void add_parameters(float *ds, float *dt, const float *x, const float *d, uint32_t n,
                           float mean, float inverse) {
    for (uint32_t k = 0; k < n; k += LANES) {
        uint32_t width = width_at(k, n);
        lanes v = load_part(d + k, width), u = (load_part(x + k, width) - mean) * inverse;
        store_part(ds + k, load_part(ds + k, width) + v * u, width);
        store_part(dt + k, load_part(dt + k, width) + v, width);
    }
}

KERNEL void give_position(float *d_in, const float *x, const float *d, const float *scale,
                          uint32_t n, float mean, float inverse, bool add) {
    lanes sum = broadcast(0), product = broadcast(0);
    for (uint32_t k = 0; k < n; k += LANES) { /* missing lanes have e = 0 */
        uint32_t width = width_at(k, n);
        lanes e = load_part(d + k, width) * load_part(scale + k, width);
        sum += e;
        product += e * ((load_part(x + k, width) - mean) * inverse);
    }
    float a = sum_of(sum) / (float)n, b = sum_of(product) / (float)n;
    for (uint32_t k = 0; k < n; k += LANES) {
        uint32_t width = width_at(k, n);
        lanes e = load_part(d + k, width) * load_part(scale + k, width),
              u = (load_part(x + k, width) - mean) * inverse;
        lanes v = (e - a - u * b) * inverse;
        store_part(d_in + k, add ? v + load_part(d_in + k, width) : v, width);
    }
}

/* One sample: its parts of ds and dt (2 n), and d_in. */
static void backward_sample(const sl_layer_call *c, size_t first, size_t positions, uint32_t n,
                            float *sums) {
    memset(sums, 0, 2 * n * sizeof *sums);
    for (size_t p = first; p < first + positions; p++) {
        const float *x = c->in + p * n, *d = c->d_out + p * n;
        add_parameters(sums, sums + n, x, d, n, c->saved[2 * p], c->saved[2 * p + 1]);
        if (c->d_in != NULL)
            give_position(c->d_in + p * n, x, d, c->w, n, c->saved[2 * p], c->saved[2 * p + 1],
                          c->add_in);
    }
}

static void forward(const sl_layer_call *c) {
    forward_all(c, c->rows * positions_of(c->layer), c->layer->in.channels);
}

static void backward(const sl_layer_call *c) {
    uint32_t n = c->layer->in.channels;
    size_t positions = positions_of(c->layer);
    double *totals = (double *)(void *)c->scratch;
    float *sums = c->scratch + 4 * (size_t)n;
    memset(totals, 0, 2 * n * sizeof *totals);
    for (uint32_t row = 0; row < c->rows; row++) {
        backward_sample(c, row * positions, positions, n, sums);
        for (uint32_t k = 0; k < 2 * n; k++)
            totals[k] += sums[k];
    }
    for (uint32_t k = 0; k < 2 * n; k++)
        c->g[k] = (float)totals[k];
}

SL_LAYER(layer_norm) = {.shape = sl_layer_keep_shape,
                        .tensors = sl_layer_affine_tensors,
                        .initial = sl_layer_affine_initial,
                        .ops = {memory, forward, backward}};
