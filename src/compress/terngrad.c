/* terngrad.c - Wen, Xu, Yan, Wu, Wang, Chen, Li: "TernGrad: Ternary Gradients to Reduce
 * Communication in Distributed Deep Learning", NeurIPS 2017.
 *
 * Per bucket of B elements, s the largest magnitude: C(v)_j = s sign(v_j) Bernoulli(|v_j| / s): E
 * C(v) = v. Two bits an element (0: 0, 1: s, 2: -s; 3 does not occur), 2 d + 32 ceil(d / B) in all.
 * E||C(v) - v||^2 = s ||v||_1 - ||v||^2 <= (sqrt(B) - 1) / 2 ||v||^2.
 */
#include <math.h>

#include "base/kernels.h"
#include "compress/dense.h"
#include "compress/rotated.h"
#include "compress/rounding.h"

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    double omega = (sqrt((double)sl_dense_bucket(config, dimension)) - 1) / 2;
    return (sl_quality){.unbiased = true,
                        .omega = omega,
                        .is_contractive = omega < 1,
                        .delta = omega < 1 ? 1 - omega : 0};
}

static dense_form form(const sl_compressor_config *config, size_t dimension) {
    return (dense_form){.width = 2,
                        .mask = 3,
                        .max = 2,
                        .bucket = sl_dense_bucket(config, dimension),
                        .scale = &sl_dense_max_norm,
                        .code = CODE_TERNARY};
}

/* Level and sign, as of one level of QSGD, to 0, 1 and 2. */
FOR_EACH_CPU(void, to_ternary, (uint16_t * codes, size_t n), (codes, n)) {
    for (size_t i = 0; i < n; i++)
        codes[i] = (uint16_t)ternary_code(codes[i]);
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
const codec_ops sl_terngrad_codec = {.keys = "bucket contractive coding",
                                     .codings = "elias huffman",
                                     .quality = quality,
                                     .check = sl_dense_check_bucket,
                                     .numbers = sl_dense_numbers,
                                     DENSE_OPERATIONS(coder)};
const codec_ops sl_rotated_terngrad_codec = {.keys = "bucket contractive coding",
                                             .codings = "elias huffman",
                                             .quality = quality,
                                             .check = sl_dense_check_bucket,
                                             .numbers = sl_dense_numbers,
                                             ROTATED_OPERATIONS(coder)};
