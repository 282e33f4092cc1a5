/* windows.h - the random bits of stochastic rounding, sixteen for each element of a vector.
 *
 * Element i takes window i & 15 of the message's quick block i >> 4 (base/philox.h): the 16 bits
 * from a byte on. Windows overlap, so that an element costs one random byte and its level is yet
 * drawn with 16 bits, as it should be: neither its mean nor its variance knows of the others.
 * Neighbours are not quite independent: an element's lower byte, which is its neighbour's upper
 * one, has a say only where its own upper byte leaves the level open, once in 256 times. So the
 * covariance of two neighbours' levels is at most 2^-10, and beyond neighbours it is 0.
 */
#ifndef SL_WINDOWS_H
#define SL_WINDOWS_H

#include <stddef.h>

#include "base/kernels.h"
#include "base/philox.h"

/* Of a run of elements: the i-th one's is window first + i, counted from the first block's first
 * one on. */
typedef struct windows {
    const uint32_t *blocks; /* four words each */
    size_t first;
} windows;

static inline windows windows_from(windows w, size_t more) {
    return (windows){w.blocks, w.first + more};
}

static inline const uint32_t *block_of(windows w, size_t i) {
    return w.blocks + 4 * ((w.first + i) / PHILOX_WINDOWS);
}

static inline uint32_t window_of(windows w, size_t i) {
    return philox_window(block_of(w, i), (unsigned)(w.first + i) % PHILOX_WINDOWS);
}

/* How many of n elements come before the next block begins. */
static inline size_t windows_to_block(windows w, size_t n) {
    const size_t some = -w.first % PHILOX_WINDOWS;
    return some < n ? some : n;
}

#ifdef SL_AVX2
#include <immintrin.h>

/* Windows of a block, each in 32 bits: 0 to 7, 8 to 15. */
SL_AVX2 static inline __attribute__((always_inline)) void
windows_of_block(const uint32_t *block, __m256i *low, __m256i *high) {
    const __m256i first = _mm256_setr_epi8(0, 1, -1, -1, 1, 2, -1, -1, 2, 3, -1, -1, 3, 4, -1, -1,
                                           4, 5, -1, -1, 5, 6, -1, -1, 6, 7, -1, -1, 7, 8, -1, -1);
    const __m256i second =
        _mm256_setr_epi8(8, 9, -1, -1, 9, 10, -1, -1, 10, 11, -1, -1, 11, 12, -1, -1, 12, 13, -1,
                         -1, 13, 14, -1, -1, 14, 15, -1, -1, 15, 0, -1, -1);
    const __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)block));
    *low = _mm256_shuffle_epi8(twice, first);
    *high = _mm256_shuffle_epi8(twice, second);
}

/* Sixteen codes below 2^15, of elements 0 to 7 and 8 to 15: packing interleaves the halves of its
 * registers, and this puts that right. */
SL_AVX2 static inline __attribute__((always_inline)) __m256i in_order(__m256i packed) {
    return _mm256_permute4x64_epi64(packed, 0xD8);
}
#endif

#endif
