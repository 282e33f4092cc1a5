/* natural.c - Horvath, Ho, Horvath, Sahu, Canini, Richtarik: "Natural Compression for Distributed
 * Deep Learning", MSML 2022.
 *
 * C(v)_j is one of the two powers of two next to v_j, chosen so that E C(v) = v; nine bits an
 * element: a float's exponent and its sign, 9 d in all. omega = 1/8 (Theorem 1), reached halfway
 * between 2^e and 2^(e + 1).
 *
 * A float is 2^e (1 + m / 2^23), and goes up with probability m / 2^23. With the bits as an
 * integer, e | m, a random number added to the mantissa carries into the exponent just that often.
 * Below 2^-126 (exponent field 0) the same sum is right: 0 and 2^-126 are the two powers next to m
 * 2^-149, and the error below 2^-126 is beyond what omega speaks of. Above 2^127 there is no power
 * to go up to: such a vector has diverged.
 */
#include <math.h>

#include "base/kernels.h"
#include "compress/own_keys.h"
#include "compress/quantization/dense.h"
#include "element/code.h"

#define LIMIT (0x7F000000u + 1) /* above 2^127 */

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    (void)config;
    (void)dimension;
    return (sl_quality){.unbiased = true, .omega = 0.125, .is_contractive = true, .delta = 0.875};
}

static bool has_powers(bucket_sums *sums, size_t n, float *scale) {
    (void)n;
    (void)scale;
    return sl_sum_take_largest(sums) < LIMIT;
}

static const dense_scale no_scale = {.see = sl_sum_largest, .result = has_powers};

static dense_form form(const sl_compressor_config *config, size_t dimension) {
    (void)config;
    (void)dimension;
    return (dense_form){.width = 9,
                        .mask = 0xFF,
                        .max = 0xFE,
                        .bucket = SL_BLOCK,
                        .scale = &no_scale,
                        .code = CODE_NATURAL,
                        .limit = LIMIT};
}

static void round_plain(const float *v, windows random, size_t n, uint16_t *codes) {
    for (size_t i = 0; i < n; i++)
        codes[i] = (uint16_t)natural_code(v[i], window_of(random, i));
}

#ifdef SL_AVX2
SL_AVX2 static inline __m256i codes_of(__m256i v, __m256i random) {
    const __m256i half = _mm256_set1_epi32(64);
    return _mm256_srli_epi32(
        _mm256_add_epi32(_mm256_add_epi32(v, half), _mm256_slli_epi32(random, 7)), 23);
}

/* A block's sixteen at a time; returns how many it did. */
SL_AVX2 static size_t round_avx2(const float *v, const uint32_t *blocks, size_t n,
                                 uint16_t *codes) {
    size_t i = 0;
    for (; i + PHILOX_WINDOWS <= n; i += PHILOX_WINDOWS, blocks += 4) {
        __m256i low, high;
        windows_of_block(blocks, &low, &high);
        low = codes_of(_mm256_loadu_si256((const __m256i *)(v + i)), low);
        high = codes_of(_mm256_loadu_si256((const __m256i *)(v + i + 8)), high);
        _mm256_storeu_si256((__m256i *)(codes + i), in_order(_mm256_packus_epi32(low, high)));
    }
    return i;
}
#endif

static void encode(const sl_compressor_config *config, const float *scale, const float *v,
                   windows random, size_t n, uint16_t *codes) {
    size_t done = 0;
    (void)config;
    (void)scale;
#ifdef SL_AVX2
    if (sl_has_avx2()) {
        done = windows_to_block(random, n);
        round_plain(v, random, done, codes);
        done += round_avx2(v + done, block_of(random, done), n - done, codes + done);
    }
#endif
    round_plain(v + done, windows_from(random, done), n - done, codes + done);
}

FOR_EACH_CPU(void, add_powers, (float weight, const uint16_t *codes, size_t n, float *acc),
             (weight, codes, n, acc)) {
    for (size_t i = 0; i < n; i++)
        acc[i] += weight * natural_value(codes[i]);
}

#ifdef SL_AVX2
/* Sixteen at a time; returns how many it did. A code is the upper nine bits of a float. */
SL_AVX2 static size_t add_powers_avx2(float weight, const uint16_t *codes, size_t n, float *acc) {
    const __m256 weights = _mm256_set1_ps(weight);
    const __m256i zero = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        /* Quarters 0, 2, 1, 3: interleaving with zeros, half by half, then leaves the elements in
         * order. */
        const __m256i c = _mm256_slli_epi16(
            _mm256_permute4x64_epi64(_mm256_loadu_si256((const __m256i *)(codes + i)), 0xD8), 7);
        const __m256 low = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, c)),
                     high = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, c));
        _mm256_storeu_ps(acc + i,
                         _mm256_add_ps(_mm256_loadu_ps(acc + i), _mm256_mul_ps(weights, low)));
        _mm256_storeu_ps(acc + i + 8,
                         _mm256_add_ps(_mm256_loadu_ps(acc + i + 8), _mm256_mul_ps(weights, high)));
    }
    return i;
}
#endif

static void add(const sl_compressor_config *config, const float *scale, float weight,
                const uint16_t *codes, size_t n, float *acc) {
    size_t done = 0;
    (void)config;
    (void)scale;
#ifdef SL_AVX2
    done = sl_has_avx2() ? add_powers_avx2(weight, codes, n, acc) : 0;
#endif
    add_powers(weight, codes + done, n - done, acc + done);
}

static const dense_coder coder = {.form = form, .encode = encode, .add = add};
static const sl_key keys[] = {
    {SL_ROW_CONTRACTIVE},
    {SL_ROW_CODING("of levels: huffman")},
    SL_KEYS_END,
};

const codec_ops sl_natural_codec = {.keys = keys,
                                    .codings = "huffman",
                                    .quality = quality,
                                    .numbers = sl_dense_numbers,
                                    DENSE_OPERATIONS(coder)};
