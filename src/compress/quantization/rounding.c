/* rounding.c - see rounding.h. */
#include "compress/quantization/rounding.h"

unsigned sl_level_bits(uint32_t levels) {
    return level_bits(levels);
}

rounding sl_rounding(uint32_t levels, float scale) {
    return rounding_of(levels, scale);
}

static void round_plain(rounding r, unsigned sign_at, const float *v, windows random, size_t n,
                        uint16_t *codes) {
    for (size_t i = 0; i < n; i++)
        codes[i] = (uint16_t)level_code(r, sign_at, v[i], window_of(random, i));
}

#ifdef SL_AVX2
/* Eight elements: q + u. `common`: power is 1, and bits 16. */
SL_AVX2 static inline __attribute__((always_inline)) __m256i sum_of(const rounding *r, bool common,
                                                                    __m256 v, __m256i random) {
    __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
    if (!common)
        magnitude = _mm256_mul_ps(magnitude, _mm256_set1_ps(r->power));
    __m256 unit =
        _mm256_add_ps(_mm256_mul_ps(magnitude, _mm256_set1_ps(r->factor)), _mm256_set1_ps(0.5f));
    return _mm256_add_epi32(
        _mm256_cvttps_epi32(unit),
        common ? random : _mm256_srl_epi32(random, _mm_cvtsi32_si128(16 - (int)r->bits)));
}

/* A block's sixteen at a time, from a block's first one on; returns how many it did. Packing takes
 * signed 32 bits to 16: a float's bits, as an integer, keep their sign. */
SL_AVX2 static inline __attribute__((always_inline)) size_t
round_blocks(const rounding *r, bool common, unsigned sign_at, const float *v,
             const uint32_t *blocks, size_t n, uint16_t *codes) {
    const __m128i bits = _mm_cvtsi32_si128((int)r->bits), to_sign = _mm_cvtsi32_si128((int)sign_at);
    const __m256i levels = _mm256_set1_epi16((short)r->levels);
    size_t i = 0;
    for (; i + PHILOX_WINDOWS <= n; i += PHILOX_WINDOWS, blocks += 4) {
        const __m256 a = _mm256_loadu_ps(v + i), b = _mm256_loadu_ps(v + i + 8);
        __m256i low, high;
        windows_of_block(blocks, &low, &high);
        low = sum_of(r, common, a, low);
        high = sum_of(r, common, b, high);
        low = common ? _mm256_srli_epi32(low, 16) : _mm256_srl_epi32(low, bits);
        high = common ? _mm256_srli_epi32(high, 16) : _mm256_srl_epi32(high, bits);
        __m256i level = _mm256_min_epu16(_mm256_packus_epi32(low, high), levels);
        __m256i sign = _mm256_srli_epi16(
            _mm256_packs_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)), 15);
        _mm256_storeu_si256((__m256i *)(codes + i),
                            in_order(_mm256_or_si256(level, _mm256_sll_epi16(sign, to_sign))));
    }
    return i;
}

SL_AVX2 static size_t round_avx2(const rounding *r, unsigned sign_at, const float *v,
                                 const uint32_t *blocks, size_t n, uint16_t *codes) {
    return r->power == 1 && r->bits == 16 ? round_blocks(r, true, sign_at, v, blocks, n, codes)
                                          : round_blocks(r, false, sign_at, v, blocks, n, codes);
}
#endif

void sl_round(const rounding *r, unsigned sign_at, const float *v, windows random, size_t n,
              uint16_t *codes) {
    size_t done = 0;
#ifdef SL_AVX2
    if (sl_has_avx2()) {
        done = windows_to_block(random, n);
        round_plain(*r, sign_at, v, random, done, codes);
        done += round_avx2(r, sign_at, v + done, block_of(random, done), n - done, codes + done);
    }
#endif
    round_plain(*r, sign_at, v + done, windows_from(random, done), n - done, codes + done);
}
