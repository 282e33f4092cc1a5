/* table.c - see table.h. */
#include "compress/quantization/table.h"

#include <string.h>

#include "base/kernels.h"

#ifdef SL_AVX2
#include <immintrin.h>
#endif

enum { WORD_BITS = 32, STREAMS = 4, STREAM_MIN = 4096, STEP = 64 };

static void add_plain(const float *table, unsigned width, const uint8_t *packed, size_t first,
                      size_t n, float *acc) {
    const unsigned mask = (1u << width) - 1;
    for (size_t i = 0; i < n; i++) {
        const size_t bit = (first + i) * width;
        acc[i] += table[packed[bit / 8] >> bit % 8 & mask];
    }
}

#ifdef SL_AVX2
/* What a table's codes look like in a word of 32 bits: each lane shifts its own code down by so
 * much, and looks it up by the lowest two bits. Of one bit's codes the second is the next one: the
 * table is there twice. */
typedef struct lookup {
    __m256i shifts;
    __m256 values;
} lookup;

SL_AVX2 static lookup lookup_of(const float *table, unsigned width) {
    const int to = (int)width;
    const float *high = width == 1 ? table : table + 2;
    return (lookup){
        _mm256_setr_epi32(0, to, 2 * to, 3 * to, 4 * to, 5 * to, 6 * to, 7 * to),
        _mm256_setr_ps(table[0], table[1], high[0], high[1], table[0], table[1], high[0], high[1])};
}

/* Whole words of up to n codes, from a byte's beginning on; returns how many codes it did. */
SL_AVX2 static inline __attribute__((always_inline)) size_t
add_words(lookup look, unsigned width, const uint8_t *packed, size_t n, float *acc) {
    size_t i = 0;
    for (; i + WORD_BITS / width <= n; packed += sizeof(int32_t)) {
        int32_t word;
        memcpy(&word, packed, sizeof word);
#pragma GCC unroll 4
        for (unsigned bit = 0; bit < WORD_BITS; bit += 8 * width, i += 8) {
            const __m256i codes =
                _mm256_srlv_epi32(_mm256_set1_epi32(word),
                                  _mm256_add_epi32(look.shifts, _mm256_set1_epi32((int)bit)));
            _mm256_storeu_ps(acc + i, _mm256_add_ps(_mm256_loadu_ps(acc + i),
                                                    _mm256_permutevar_ps(look.values, codes)));
        }
    }
    return i;
}

/* Many codes at STREAMS distant places by turns: a core fetches more of the memory at a time than
 * from one. */
SL_AVX2 static inline __attribute__((always_inline)) size_t
add_streams(const float *table, const unsigned width, const uint8_t *packed, size_t n, float *acc) {
    const size_t each = n >= STREAMS * STREAM_MIN ? n / (STREAMS * STEP) * STEP : 0,
                 all = STREAMS * each;
    const lookup look = lookup_of(table, width);
    for (size_t i = 0; i < each; i += STEP)
        for (size_t at = i; at < all; at += each)
            add_words(look, width, packed + at * width / 8, STEP, acc + at);
    return all + add_words(look, width, packed + all * width / 8, n - all, acc + all);
}

SL_AVX2 static size_t add_avx2(const float *table, unsigned width, const uint8_t *packed, size_t n,
                               float *acc) {
    return width == 1 ? add_streams(table, 1, packed, n, acc)
                      : add_streams(table, 2, packed, n, acc);
}
#endif

void sl_table_add(const float table[TABLE_CODES], unsigned width, const uint8_t *packed,
                  size_t first, size_t n, float *acc) {
    size_t done = 0;
#ifdef SL_AVX2
    if (sl_has_avx2()) {
        const size_t to_byte = -first % (8 / width);
        done = to_byte < n ? to_byte : n;
        add_plain(table, width, packed, first, done, acc);
        done += add_avx2(table, width, packed + (first + done) * width / 8, n - done, acc + done);
    }
#endif
    add_plain(table, width, packed, first + done, n - done, acc + done);
}
