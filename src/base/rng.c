/* rng.c - Philox4x32 (Salmon et al., SC 2011); see starling/rng.h. */
#include "starling/rng.h"

#include <math.h>

#include "base/kernels.h"
#include "base/philox.h"

#ifdef SL_AVX2
#include <immintrin.h>
#endif

#ifdef SL_AVX2
/* The keys of all rounds, each in all lanes. */
SL_AVX2 static inline __attribute__((always_inline)) void
spread_keys(uint64_t seed, const int rounds, __m256i *key0, __m256i *key1) {
    const uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int i = 0; i < rounds; i++) {
        key0[i] = _mm256_set1_epi64x(k0 + (uint32_t)i * PHILOX_BUMP_0);
        key1[i] = _mm256_set1_epi64x(k1 + (uint32_t)i * PHILOX_BUMP_1);
    }
}

/* Computes sixteen blocks a step. Each word of a block has four registers, and each register has
 * that word of four blocks, in the low halves of 64 bits, as the multiplication wants them.
 * Garbage in the high halves is harmless: the next multiplication ignores it, and the end drops
 * it. Only the index differs between blocks, so of the two multiplications of the first three
 * rounds, one, one and none are the same for all blocks. A register's blocks have the order 0, 2,
 * 1, 3; the last shuffles, which join the words of every other block, restore the order. Returns
 * the number of blocks done. */
SL_AVX2 static inline __attribute__((always_inline)) size_t
sixteens(const sl_rng_key *key, const int rounds, uint32_t first, size_t count, uint32_t *out) {
    const __m256i m0 = _mm256_set1_epi64x(PHILOX_MULTIPLIER_0),
                  m1 = _mm256_set1_epi64x(PHILOX_MULTIPLIER_1);
    __m256i key0[PHILOX_ROUNDS], key1[PHILOX_ROUNDS];
    const uint32_t k0 = (uint32_t)key->seed;
    spread_keys(key->seed, rounds, key0, key1);
    uint32_t c[4];
    philox_counter(key, first, c);
    const uint64_t same1 = (uint64_t)PHILOX_MULTIPLIER_1 * c[2];
    const uint64_t same0 = (uint64_t)PHILOX_MULTIPLIER_0 * ((uint32_t)(same1 >> 32) ^ c[1] ^ k0);
    const __m256i first2 = _mm256_xor_si256(_mm256_set1_epi64x(c[3]), key1[0]);
    const __m256i second0 = _mm256_xor_si256(_mm256_set1_epi64x((uint32_t)same1), key0[1]);
    const __m256i second2 = _mm256_xor_si256(_mm256_set1_epi64x(same0 >> 32), key1[1]);
    const __m256i third2 = _mm256_xor_si256(_mm256_set1_epi64x((uint32_t)same0), key1[2]);
    const __m256i low = _mm256_set1_epi64x(0xFFFFFFFF);
    __m256i index = _mm256_add_epi64(_mm256_set1_epi64x(first), _mm256_set_epi64x(3, 1, 2, 0));
    size_t done = 0;
    for (; done + 16 <= count; done += 16, out += 64) {
        __m256i c0[4], c1[4], c2[4], c3[4];
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) {
            const __m256i p0 = _mm256_mul_epu32(m0, index);
            const __m256i p1 =
                _mm256_mul_epu32(m1, _mm256_xor_si256(_mm256_srli_epi64(p0, 32), first2));
            c3[g] = _mm256_mul_epu32(m0, _mm256_xor_si256(_mm256_srli_epi64(p1, 32), second0));
            c1[g] = _mm256_mul_epu32(m1, _mm256_xor_si256(p0, second2));
            c0[g] = _mm256_xor_si256(_mm256_srli_epi64(c1[g], 32), _mm256_xor_si256(p1, key0[2]));
            c2[g] = _mm256_xor_si256(_mm256_srli_epi64(c3[g], 32), third2);
            index = _mm256_add_epi64(index, _mm256_set1_epi64x(4));
        }
#pragma GCC unroll 10
        for (int i = 3; i < rounds - 1; i++) {
#pragma GCC unroll 4
            for (int g = 0; g < 4; g++) {
                const __m256i p0 = _mm256_mul_epu32(m0, c0[g]), p1 = _mm256_mul_epu32(m1, c2[g]);
                c0[g] =
                    _mm256_xor_si256(_mm256_srli_epi64(p1, 32), _mm256_xor_si256(c1[g], key0[i]));
                c2[g] =
                    _mm256_xor_si256(_mm256_srli_epi64(p0, 32), _mm256_xor_si256(c3[g], key1[i]));
                c1[g] = p1;
                c3[g] = p0;
            }
        }
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) {
            const __m256i p0 = _mm256_mul_epu32(m0, c0[g]), p1 = _mm256_mul_epu32(m1, c2[g]);
            const __m256i with1 = _mm256_and_si256(_mm256_xor_si256(c1[g], key0[rounds - 1]), low);
            const __m256i with0 = _mm256_and_si256(_mm256_xor_si256(c3[g], key1[rounds - 1]), low);
            const __m256i words01 = _mm256_xor_si256(_mm256_shuffle_epi32(p1, 0xB1), with1);
            const __m256i words23 = _mm256_xor_si256(_mm256_shuffle_epi32(p0, 0xB1), with0);
            _mm256_storeu_si256((__m256i *)(out + 16 * g), _mm256_unpacklo_epi64(words01, words23));
            _mm256_storeu_si256((__m256i *)(out + 16 * g + 8),
                                _mm256_unpackhi_epi64(words01, words23));
        }
    }
    return done;
}

SL_AVX2 static size_t blocks_avx2(const sl_rng_key *key, uint32_t first, size_t count,
                                  uint32_t *out) {
    return sixteens(key, PHILOX_ROUNDS, first, count, out);
}

SL_AVX2 static size_t quick_blocks_avx2(const sl_rng_key *key, uint32_t first, size_t count,
                                        uint32_t *out) {
    return sixteens(key, PHILOX_ROUNDS_QUICK, first, count, out);
}
#endif

static void fill(const sl_rng_key *key, int rounds, uint32_t first, size_t count, uint32_t *out) {
    size_t done = 0;
#ifdef SL_AVX2
    if (sl_has_avx2())
        done = rounds == PHILOX_ROUNDS ? blocks_avx2(key, first, count, out)
                                       : quick_blocks_avx2(key, first, count, out);
#endif
    for (; done < count; done++)
        philox_block(key, first + (uint32_t)done, rounds, out + 4 * done);
}

void sl_rng_block(const sl_rng_key *key, uint32_t index, uint32_t out[4]) {
    philox_block(key, index, PHILOX_ROUNDS, out);
}

void sl_rng_blocks(const sl_rng_key *key, uint32_t first, size_t count, uint32_t *out) {
    fill(key, PHILOX_ROUNDS, first, count, out);
}

void sl_rng_quick_block(const sl_rng_key *key, uint32_t index, uint32_t out[4]) {
    philox_block(key, index, PHILOX_ROUNDS_QUICK, out);
}

void sl_rng_quick_blocks(const sl_rng_key *key, uint32_t first, size_t count, uint32_t *out) {
    fill(key, PHILOX_ROUNDS_QUICK, first, count, out);
}

sl_rng sl_rng_open(uint64_t seed, uint32_t rank, uint64_t round, sl_purpose purpose) {
    return (sl_rng){.key = {seed, round, rank, (uint32_t)purpose}};
}

uint32_t sl_rng_u32(sl_rng *rng) {
    uint32_t lane = (uint32_t)(rng->next & 3);
    if (lane == 0)
        sl_rng_block(&rng->key, (uint32_t)(rng->next >> 2), rng->words);
    rng->next++;
    return rng->words[lane];
}

uint64_t sl_rng_u64(sl_rng *rng) {
    uint64_t high = sl_rng_u32(rng);
    return high << 32 | sl_rng_u32(rng);
}

uint32_t sl_rng_below(sl_rng *rng, uint32_t n) {
    /* Lemire 2019: multiply, and reject the few words that would bias the result. */
    uint64_t product = (uint64_t)sl_rng_u32(rng) * n;
    if ((uint32_t)product < n) {
        uint32_t threshold = (uint32_t)(-n) % n;
        while ((uint32_t)product < threshold)
            product = (uint64_t)sl_rng_u32(rng) * n;
    }
    return (uint32_t)(product >> 32);
}

double sl_rng_uniform(sl_rng *rng) {
    return (double)(sl_rng_u64(rng) >> 11) * 0x1p-53;
}

double sl_rng_normal(sl_rng *rng) {
    double radius = sqrt(-2.0 * log(1.0 - sl_rng_uniform(rng)));
    return radius * cos(6.283185307179586 * sl_rng_uniform(rng));
}

/* Indices are drawn some steps ahead, to prefetch the items. */
void sl_rng_shuffle(sl_rng *rng, uint32_t *items, uint32_t count) {
    enum { AHEAD = 32 };
    uint32_t places[AHEAD];
    for (uint32_t last = count; last > 1;) {
        uint32_t steps = last - 1 < AHEAD ? last - 1 : AHEAD;
        for (uint32_t k = 0; k < steps; k++) {
            places[k] = sl_rng_below(rng, last - k);
            __builtin_prefetch(&items[places[k]], 1);
        }
        for (uint32_t k = 0; k < steps; k++) {
            last--;
            uint32_t swap = items[last];
            items[last] = items[places[k]];
            items[places[k]] = swap;
        }
    }
}
