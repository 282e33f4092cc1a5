/* grid.c - the quantizer of LAQ: Sun, Chen, Giannakis, Yang, "Communication-Efficient Distributed
 * Learning via Lazily Aggregated Quantized Gradients", NeurIPS 2019, section 2.1.
 *
 * R = max|v|; step = 2 R / (2^bits - 1); level = floor((v + R)/step + 1/2), which stands for
 * step level - R. `bits` an element, bits d + 32 in all. 0 is none of the points, and R is one. The
 * error of an element is at most half a step: ||C(v) - v||^2 <= d / (2^bits - 1)^2 ||v||^2.
 */
#include "compress/quantization/grid.h"

#include <math.h>

#include "base/kernels.h"
#include "compress/quantization/dense.h"

enum { BITS_MAX = 16 };

sl_grid sl_grid_of(uint32_t bits, float range) {
    const uint32_t last = (1u << bits) - 1;
    return (sl_grid){.range = (double)range,
                     .step = 2 * (double)range / last,
                     .inverse = last / (2 * (double)range),
                     .last = last};
}

/* The level, in double precision: so loops have no integers that not every processor converts. */
static inline double nearest(const sl_grid *g, float v) {
    const double level = __builtin_floor(((double)v + g->range) * g->inverse + 0.5),
                 last = (double)g->last;
    return level > 0 ? level < last ? level : last : 0;
}

static inline float point_of(const sl_grid *g, double level) {
    return (float)(g->step * level - g->range);
}

FOR_EACH_CPU(void, to_levels, (const sl_grid *g, const float *v, size_t n, uint16_t *levels),
             (g, v, n, levels)) {
    for (size_t i = 0; i < n; i++)
        levels[i] = (uint16_t)(int32_t)nearest(g, v[i]);
}

FOR_EACH_CPU(void, to_points, (const sl_grid *g, const float *v, size_t n, float *out),
             (g, v, n, out)) {
    for (size_t i = 0; i < n; i++)
        out[i] = point_of(g, nearest(g, v[i]));
}

void sl_grid_round(const sl_grid *g, const float *v, size_t n, float *out) {
    to_points(g, v, n, out);
}

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    const double last = ldexp(1, (int)config->bits) - 1,
                 delta = 1 - (double)dimension / (last * last);
    return (sl_quality){
        .omega = INFINITY, .is_contractive = delta > 0, .delta = delta > 0 ? delta : 0};
}

static int check(const sl_compressor_config *config, size_t dimension, sl_error *error) {
    (void)dimension;
    if (config->bits >= 1 && config->bits <= BITS_MAX)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "algorithm.bits: %u is not allowed; for levels it must be 1 to %d", config->bits,
                   BITS_MAX);
}

static dense_form form(const sl_compressor_config *config, size_t dimension) {
    const uint32_t last = (1u << config->bits) - 1;
    return (dense_form){.width = config->bits,
                        .mask = last,
                        .max = last,
                        .bucket = dimension,
                        .scale = &sl_dense_max_norm,
                        .code = CODE_NONE};
}

static void encode(const sl_compressor_config *config, const float *scale, const float *v,
                   windows random, size_t n, uint16_t *codes) {
    const sl_grid g = sl_grid_of(config->bits, *scale);
    (void)random;
    to_levels(&g, v, n, codes);
}

FOR_EACH_CPU(void, add_points,
             (const sl_grid *g, float weight, const uint16_t *levels, size_t n, float *acc),
             (g, weight, levels, n, acc)) {
    for (size_t i = 0; i < n; i++)
        acc[i] += weight * point_of(g, levels[i]);
}

static void add(const sl_compressor_config *config, const float *scale, float weight,
                const uint16_t *codes, size_t n, float *acc) {
    const sl_grid g = sl_grid_of(config->bits, *scale);
    add_points(&g, weight, codes, n, acc);
}

static const dense_coder coder = {.form = form, .encode = encode, .add = add};

const codec_ops sl_grid_codec = {.quality = quality, .check = check, DENSE_OPERATIONS(coder)};
