/* threshold.c - T of CD-SGD: T(r)_j = tau where r_j >= tau, -tau where r_j <= -tau, else 0.
 *
 * After Strom, "Scalable Distributed DNN Training Using Commodity GPU Cloud Computing", Interspeech
 * 2015; the sender keeps r - T(r). Two bits an element (0: 0, 1: tau, 2: -tau; 3 does not occur), 2
 * d in all; both sides know tau. Deterministic; neither unbiased, nor contractive: what lies below
 * tau is lost whole, and what lies far above it nearly so.
 */
#include <float.h>
#include <math.h>

#include "base/kernels.h"
#include "compress/lossless/pack.h"
#include "compress/own_keys.h"
#include "compress/quantization/dense.h"
#include "compress/quantization/threshold.h"
#include "element/code.h"

sl_quality sl_threshold_quality(const sl_compressor_config *config, size_t dimension) {
    (void)config;
    (void)dimension;
    return (sl_quality){.omega = INFINITY};
}

int sl_threshold_check(const sl_compressor_config *config, size_t dimension, sl_error *error) {
    (void)dimension;
    if (config->threshold >= FLT_MIN && config->threshold <= FLT_MAX)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "algorithm.compressor.threshold: %g: must be above 0 and a float32; about the "
                   "size of a large gradient element",
                   config->threshold);
}

static bool is_finite(bucket_sums *sums, size_t n, float *scale) {
    (void)n;
    (void)scale;
    return sl_sum_take_largest(sums) < FLOAT_INFINITY;
}

static const dense_scale no_scale = {.see = sl_sum_largest, .result = is_finite};

static dense_form form(const sl_compressor_config *config, size_t dimension) {
    (void)config;
    (void)dimension;
    return (dense_form){.width = 2,
                        .mask = 3,
                        .max = 2,
                        .bucket = SL_BLOCK,
                        .scale = &no_scale,
                        .code = CODE_THRESHOLD,
                        .limit = FLOAT_INFINITY};
}

FOR_EACH_CPU(void, compare, (float tau, const float *v, size_t n, uint16_t *codes),
             (tau, v, n, codes)) {
    for (size_t i = 0; i < n; i++)
        codes[i] = (uint16_t)threshold_code(tau, v[i]);
}

static void pack(const sl_compressor_config *config, const float *v, size_t n, uint8_t *out) {
    uint16_t codes[SL_BLOCK];
    compare((float)config->threshold, v, n, codes);
    sl_pack(codes, n, 2, out);
}

static void table(const sl_compressor_config *config, const float *scale, float weight,
                  float out[TABLE_CODES]) {
    (void)scale;
    sl_dense_ternary_table(weight * (float)config->threshold, out);
}

static const dense_coder coder = {.form = form, .pack = pack, .table = table};
static const sl_key keys[] = {
    {SL_ROW_THRESHOLD},
    SL_KEYS_END,
};

const codec_ops sl_threshold_codec = {.keys = keys,
                                      .quality = sl_threshold_quality,
                                      .check = sl_threshold_check,
                                      DENSE_OPERATIONS(coder)};
