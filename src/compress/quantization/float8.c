/* float8.c - E5M2, the upper byte of IEEE binary16: Micikevicius et al., "FP8 Formats for Deep
 * Learning", 2022. 8 bits an element, rounded to nearest even.
 *
 * The relative error is at most 2^-3, and so delta is 1 - 2^-6. That holds from 2^-14 to 57344;
 * below, the error is at most 2^-17. What would round to infinity is refused as diverged.
 */
#include <math.h>

#include "base/kernels.h"
#include "compress/quantization/dense.h"
#include "element/code.h"

#define LIMIT 0x47700000u /* 61440, halfway between 57344 and the next power */

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    (void)config;
    (void)dimension;
    return (sl_quality){.omega = INFINITY, .is_contractive = true, .delta = 1 - 0x1p-6};
}

static bool fits(bucket_sums *sums, size_t n, float *scale) {
    (void)n;
    (void)scale;
    return sl_sum_take_largest(sums) < LIMIT;
}

static dense_form form(const sl_compressor_config *config, size_t dimension) {
    static const dense_scale no_scale = {.see = sl_sum_largest, .result = fits};
    (void)config;
    (void)dimension;
    return (dense_form){.width = 8,
                        .mask = 0x7F,
                        .max = 0x7B,
                        .bucket = SL_BLOCK,
                        .scale = &no_scale,
                        .code = CODE_FLOAT8,
                        .limit = LIMIT};
}

FOR_EACH_CPU(void, to_bytes, (const float *v, size_t n, uint8_t *out), (v, n, out)) {
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)float8_code(v[i]);
}

static void pack(const sl_compressor_config *config, const float *v, size_t n, uint8_t *out) {
    (void)config;
    to_bytes(v, n, out);
}

FOR_EACH_CPU(void, add_values, (float weight, const uint16_t *codes, size_t n, float *acc),
             (weight, codes, n, acc)) {
    for (size_t i = 0; i < n; i++)
        acc[i] += weight * float8_value(codes[i]);
}

static void add(const sl_compressor_config *config, const float *scale, float weight,
                const uint16_t *codes, size_t n, float *acc) {
    (void)config;
    (void)scale;
    add_values(weight, codes, n, acc);
}

static const dense_coder coder = {.form = form, .pack = pack, .add = add};
const codec_ops sl_float8_codec = {.quality = quality, DENSE_OPERATIONS(coder)};
