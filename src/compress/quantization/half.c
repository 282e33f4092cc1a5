/* half.c - float16 (IEEE 754 binary16) and bfloat16 (a float32's upper half): 16 bits an element,
 * rounded to nearest even.
 *
 * The relative error is at most 2^-11 and 2^-8, and so delta is 1 - 2^-22 and 1 - 2^-16. float16
 * has 5 bits of exponent: that holds from 2^-14 to 65504. Below, the error is at most 2^-25; what
 * would round to infinity is refused as diverged.
 */
#include <math.h>
#include <string.h>

#include "base/kernels.h"
#include "compress/quantization/dense.h"
#include "element/code.h"

#ifdef SL_AVX2
#include <immintrin.h>
#endif

enum { WIDTH = 16 };

static sl_quality quality_of_error(double relative) {
    return (sl_quality){
        .omega = INFINITY, .is_contractive = true, .delta = 1 - relative * relative};
}

static sl_quality quality16(const sl_compressor_config *config, size_t dimension) {
    (void)config;
    (void)dimension;
    return quality_of_error(0x1p-11);
}

static sl_quality quality_b16(const sl_compressor_config *config, size_t dimension) {
    (void)config;
    (void)dimension;
    return quality_of_error(0x1p-8);
}

#define LIMIT_16 0x477FF000u
#define LIMIT_B16 0x7F7F8000u

/* 65520, halfway between the largest float16 and the next power, is the first to round to infinity.
 */
static bool fits16(bucket_sums *sums, size_t n, float *scale) {
    (void)n;
    (void)scale;
    return sl_sum_take_largest(sums) < LIMIT_16;
}

static bool fits_b16(bucket_sums *sums, size_t n, float *scale) {
    (void)n;
    (void)scale;
    return sl_sum_take_largest(sums) < LIMIT_B16;
}

static dense_form form16(const sl_compressor_config *config, size_t dimension) {
    static const dense_scale no_scale = {.see = sl_sum_largest, .result = fits16};
    (void)config;
    (void)dimension;
    return (dense_form){.width = WIDTH,
                        .mask = 0x7FFF,
                        .max = 0x7BFF,
                        .bucket = SL_BLOCK,
                        .scale = &no_scale,
                        .code = CODE_FLOAT16,
                        .limit = LIMIT_16};
}

static dense_form form_b16(const sl_compressor_config *config, size_t dimension) {
    static const dense_scale no_scale = {.see = sl_sum_largest, .result = fits_b16};
    (void)config;
    (void)dimension;
    return (dense_form){.width = WIDTH,
                        .mask = 0x7FFF,
                        .max = 0x7F7F,
                        .bucket = SL_BLOCK,
                        .scale = &no_scale,
                        .code = CODE_BFLOAT16,
                        .limit = LIMIT_B16};
}

/* ---- float16 ---- */

FOR_EACH_CPU(void, to16, (const float *v, size_t n, uint8_t *out), (v, n, out)) {
    for (size_t i = 0; i < n; i++) {
        uint16_t code = (uint16_t)float16_code(v[i]);
        memcpy(out + 2 * i, &code, sizeof code);
    }
}

FOR_EACH_CPU(void, add16, (float weight, const uint16_t *codes, size_t n, float *acc),
             (weight, codes, n, acc)) {
    for (size_t i = 0; i < n; i++)
        acc[i] += weight * float16_value(codes[i]);
}

#ifdef SL_AVX2
/* The same by F16C; returns how many elements it did. */
SL_AVX2 static size_t to16_f16c(const float *v, size_t n, uint8_t *out) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128(
            (__m128i *)(out + 2 * i),
            _mm256_cvtps_ph(_mm256_loadu_ps(v + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    return i;
}

SL_AVX2 static size_t add16_f16c(float weight, const uint16_t *codes, size_t n, float *acc) {
    const __m256 w = _mm256_set1_ps(weight);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 value = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(codes + i)));
        _mm256_storeu_ps(acc + i, _mm256_add_ps(_mm256_loadu_ps(acc + i), _mm256_mul_ps(w, value)));
    }
    return i;
}
#endif

static void pack16(const sl_compressor_config *config, const float *v, size_t n, uint8_t *out) {
    size_t done = 0;
    (void)config;
#ifdef SL_AVX2
    done = sl_has_avx2() ? to16_f16c(v, n, out) : 0;
#endif
    to16(v + done, n - done, out + 2 * done);
}

static void add_float16(const sl_compressor_config *config, const float *scale, float weight,
                        const uint16_t *codes, size_t n, float *acc) {
    size_t done = 0;
    (void)config;
    (void)scale;
#ifdef SL_AVX2
    done = sl_has_avx2() ? add16_f16c(weight, codes, n, acc) : 0;
#endif
    add16(weight, codes + done, n - done, acc + done);
}

/* ---- bfloat16 ---- */

FOR_EACH_CPU(void, to_b16, (const float *v, size_t n, uint8_t *out), (v, n, out)) {
    for (size_t i = 0; i < n; i++) {
        uint16_t code = (uint16_t)bfloat16_code(v[i]);
        memcpy(out + 2 * i, &code, sizeof code);
    }
}

FOR_EACH_CPU(void, add_b16, (float weight, const uint16_t *codes, size_t n, float *acc),
             (weight, codes, n, acc)) {
    for (size_t i = 0; i < n; i++)
        acc[i] += weight * bfloat16_value(codes[i]);
}

static void pack_b16(const sl_compressor_config *config, const float *v, size_t n, uint8_t *out) {
    (void)config;
    to_b16(v, n, out);
}

static void add_bfloat16(const sl_compressor_config *config, const float *scale, float weight,
                         const uint16_t *codes, size_t n, float *acc) {
    (void)config;
    (void)scale;
    add_b16(weight, codes, n, acc);
}

static const dense_coder float16_coder = {.form = form16, .pack = pack16, .add = add_float16};
static const dense_coder bfloat16_coder = {.form = form_b16, .pack = pack_b16, .add = add_bfloat16};
const codec_ops sl_float16_codec = {.quality = quality16, DENSE_OPERATIONS(float16_coder)};
const codec_ops sl_bfloat16_codec = {.quality = quality_b16, DENSE_OPERATIONS(bfloat16_coder)};
