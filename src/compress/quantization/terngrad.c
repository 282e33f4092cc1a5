/* terngrad.c - Wen, Xu, Yan, Wu, Wang, Chen, Li: "TernGrad: Ternary Gradients to Reduce
 * Communication in Distributed Deep Learning", NeurIPS 2017.
 *
 * Per bucket of B elements, s the largest magnitude: C(v)_j = s sign(v_j) Bernoulli(|v_j| / s): E
 * C(v) = v. Two bits an element (0: 0, 1: s, 2: -s; 3 does not occur), 2 d + 32 ceil(d / B) in all.
 * E||C(v) - v||^2 = s ||v||_1 - ||v||^2 <= (sqrt(B) - 1) / 2 ||v||^2.
 *
 * Clipping, section 3.3: elements beyond c sigma are cut off there first, sigma^2 = ||v||^2 / B, so
 * that s is at most c sigma. With u the clipped vector and r = ||u|| / ||v|| <= 1, u'v >= r^2
 * ||v||^2 and s ||u||_1 <= c r ||v||^2, so that E||C(v) - v||^2 <= (c r - 2 r^2 + 1) ||v||^2: at
 * most 1 + c^2 / 8 where c <= 4, else c - 1, whatever B is. What is cut off is lost; as the paper
 * does, it counts as unbiased all the same.
 *
 * Scaler sharing, section 3.3: all nodes take the largest of their scales, so that sums are
 * multiples of it; it comes with the vector (sl_source.scale). What is clipped is cut off there.
 */
#include <math.h>

#include "base/kernels.h"
#include "compress/own_keys.h"
#include "compress/quantization/dense.h"
#include "compress/quantization/rotated.h"
#include "compress/quantization/rounding.h"
#include "compress/quantization/scale.h"

static double omega_of(const sl_compressor_config *config, size_t dimension) {
    const double c = config->clip_sigma;
    if (c > 0)
        return c > 4 ? c - 1 : 1 + c * c / 8;
    return (sqrt((double)sl_dense_bucket(config, dimension)) - 1) / 2;
}

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    const double omega = omega_of(config, dimension);
    return (sl_quality){.unbiased = true,
                        .omega = omega,
                        .is_contractive = omega < 1,
                        .delta = omega < 1 ? 1 - omega : 0};
}

static int check(const sl_compressor_config *config, size_t dimension, sl_error *error) {
    if (config->clip_sigma != 0 && !(config->clip_sigma >= 1))
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.clip_sigma: %g is not allowed; it must be at least 1, "
                       "such as 2.5, or 0, which clips nothing",
                       config->clip_sigma);
    if (config->share_scale && config->bucket != 0)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.share_scale: nodes share one scale, and "
                       "algorithm.compressor.bucket is %u; set it to 0, the whole vector (or with "
                       "\"per\": \"tensor\", each tensor)",
                       config->bucket);
    return sl_dense_check_bucket(config, dimension, error);
}

/* ---- the scale: the largest magnitude, or that of a clipped bucket ---- */

static void see_both(bucket_sums *sums, const float *v, size_t at, size_t n) {
    sl_sum_squares(sums, v, at, n);
    sl_sum_largest(sums, v, at, n);
}

static bool clipped(bucket_sums *sums, size_t n, float *scale) {
    const uint32_t bits = sl_sum_take_largest(sums);
    double squares;
    sl_sum_take(sums, &squares, 1);
    *scale = clipped_scale(float_of(bits), sums->clip, squares, n);
    return bits < FLOAT_INFINITY;
}

static const dense_scale clipped_norm = {
    .kind = SCALE_CLIPPED, .floats = 1, .see = see_both, .result = clipped};

static dense_form form(const sl_compressor_config *config, size_t dimension) {
    return (dense_form){.width = 2,
                        .mask = 3,
                        .max = 2,
                        .bucket = sl_dense_bucket(config, dimension),
                        .scale = config->clip_sigma > 0 ? &clipped_norm : &sl_dense_max_norm,
                        .code = CODE_TERNARY};
}

/* Level and sign, as of one level of QSGD, to 0, 1 and 2. */
FOR_EACH_CPU(void, to_ternary, (uint16_t * codes, size_t n), (codes, n)) {
    for (size_t i = 0; i < n; i++)
        codes[i] = (uint16_t)ternary_code(codes[i]);
}

float sl_terngrad_scale(const sl_compressor_config *config, const float *v, size_t n) {
    const dense_scale *scale = form(config, n).scale;
    bucket_sums sums;
    float found;
    sl_sum_begin(&sums, 0);
    sums.clip = config->clip_sigma;
    for (size_t at = 0, count; at < n; at += count) {
        count = n - at < SL_BLOCK ? n - at : SL_BLOCK;
        scale->see(&sums, v + at, at, count);
    }
    return scale->result(&sums, n, &found) ? found : INFINITY;
}

static void encode(const sl_compressor_config *config, const float *scale, const float *v,
                   windows random, size_t n, uint16_t *codes) {
    const rounding r = sl_rounding(1, *scale);
    (void)config;
    sl_round(&r, 1, v, random, n, codes);
    to_ternary(codes, n);
}

static void table(const sl_compressor_config *config, const float *scale, float weight,
                  float out[TABLE_CODES]) {
    (void)config;
    sl_dense_ternary_table(weight * *scale, out);
}

static const dense_coder coder = {.form = form, .encode = encode, .table = table};
static const sl_key terngrad_keys[] = {
    {SL_ROW_BUCKET},
    {SL_ROW_CLIP_SIGMA},
    {SL_OWN(share_scale), .type = SL_KEY_BOOL, .fallback = "false", .readers = "terngrad, C-SGD",
     .help = "nodes first agree on the largest of their scales"},
    {SL_ROW_CONTRACTIVE},
    {SL_ROW_CODING_OF_LEVELS},
    SL_KEYS_END,
};
static const sl_key rotated_keys[] = {
    {SL_ROW_BUCKET},           {SL_ROW_CLIP_SIGMA}, {SL_ROW_CONTRACTIVE},
    {SL_ROW_CODING_OF_LEVELS}, SL_KEYS_END,
};

const codec_ops sl_terngrad_codec = {.keys = terngrad_keys,
                                     .codings = "elias huffman",
                                     .quality = quality,
                                     .check = check,
                                     .numbers = sl_dense_numbers,
                                     DENSE_OPERATIONS(coder)};
const codec_ops sl_rotated_terngrad_codec = {.keys = rotated_keys,
                                             .codings = "elias huffman",
                                             .quality = quality,
                                             .check = check,
                                             .numbers = sl_dense_numbers,
                                             ROTATED_OPERATIONS(coder)};
