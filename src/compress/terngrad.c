/* terngrad.c - Wen, Xu, Yan, Wu, Wang, Chen, Li: "TernGrad: Ternary Gradients to Reduce Communication in Distributed Deep Learning", NeurIPS 2017.
 *
 * Per bucket of B elements, s the largest magnitude: C(v)_j = s sign(v_j) Bernoulli(|v_j| / s): E C(v) = v. Two bits an element (0: 0, 1: s,
 * 2: -s; 3 does not occur), 2 d + 32 ceil(d / B) in all. E||C(v) - v||^2 = s ||v||_1 - ||v||^2 <= (sqrt(B) - 1) / 2 ||v||^2.
 */
#include <math.h>
#include <string.h>

#include "compress/dense.h"
#include "vec/for_each_cpu.h"

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    double omega = (sqrt((double)sl_dense_bucket(config, dimension)) - 1) / 2;
    return (sl_quality){.unbiased = true, .omega = omega, .is_contractive = omega < 1, .delta = omega < 1 ? 1 - omega : 0};
}

static dense_form form(const sl_compressor_config *config, size_t dimension) {
    return (dense_form){.width = 2, .mask = 3, .max = 2, .bucket = sl_dense_bucket(config, dimension), .scale = &sl_dense_max_norm};
}

FOR_EACH_CPU static void choose(dense_rounding r, const float *v, const uint16_t *random, size_t n, uint16_t *codes) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, v + i, sizeof bits);
        codes[i] = (uint16_t)(sl_dense_round(r, bits & 0x7FFFFFFF, random[i]) << (bits >> 31));
    }
}

static void encode(const sl_compressor_config *config, const float *scale, const float *v, const uint16_t *random, size_t n,
                   uint16_t *codes) {
    (void)config;
    choose(sl_dense_rounding(1, 1, *scale), v, random, n, codes);
}

static void add(const sl_compressor_config *config, const float *scale, float weight, const uint16_t *codes, size_t n, float *acc) {
    (void)config;
    sl_dense_add_ternary(weight * *scale, codes, n, acc);
}

const dense_coder sl_terngrad_coder = {.form = form, .random = true, .encode = encode, .add = add};
const codec_ops sl_terngrad_codec = {.quality = quality, .check = sl_dense_check_bucket, DENSE_OPERATIONS};
