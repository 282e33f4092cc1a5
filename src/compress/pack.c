/* pack.c - see pack.h. Four codes of 16 bits make a 64-bit word, whose codes are moved together in two steps, many words at a time; then
 * the words are written one behind the other. Unpacking goes the same way back. Bytes are little-endian, as the machine. */
#include "compress/pack.h"

#include <string.h>

#include "vec/for_each_cpu.h"

#ifdef SL_AVX2
#include <immintrin.h>
#endif

enum { WORDS = SL_BLOCK / 4, SLACK = 16, BYTES = 2 * SL_BLOCK + SLACK };

static uint64_t low_bits(unsigned count) {
    return ((uint64_t)1 << count) - 1;
}

/* ---- packing ---- */

/* Four codes a word, 16 bits apart -> together in its lowest 4 * width bits. */
FOR_EACH_CPU static void close_up(const uint16_t *codes, size_t words, unsigned width, uint64_t *out) {
    const unsigned gap = 16 - width;
    const uint64_t even = low_bits(width) * 0x100000001u, odd = even << width, pair = low_bits(2 * width), next = pair << 2 * width;
    for (size_t i = 0; i < words; i++) {
        uint64_t w;
        memcpy(&w, codes + 4 * i, sizeof w);
        w = (w & even) | (w >> gap & odd);
        out[i] = (w & pair) | (w >> 2 * gap & next);
    }
}

/* Eight codes are two words and `width` bytes. Goes over the end of these by up to SLACK bytes. */
static void put_pairs(const uint64_t *words, size_t pairs, unsigned width, uint8_t *out) {
    const unsigned half = 4 * width;
    for (size_t i = 0; i < pairs; i++, out += width) {
        uint64_t low = words[2 * i] | words[2 * i + 1] << half;
        uint64_t high = words[2 * i + 1] >> (64 - half);
        memcpy(out, &low, sizeof low);
        if (width > 8)
            memcpy(out + sizeof low, &high, sizeof high);
    }
}

#ifdef SL_AVX2
/* 64 codes of 2, 4 or 8 bits at a time; returns how many it did. Neighbours are joined by multiplications with 1 and 2^width, which add them;
 * each packing to half the width interleaves the halves of its registers, and the last step puts that right. */
SL_AVX2 static size_t pack_avx2(const uint16_t *codes, size_t n, unsigned width, uint8_t *out) {
    const __m256i join = _mm256_set1_epi16((short)(1 << width << 8 | 1)), join_pairs = _mm256_set1_epi32(16 << 16 | 1);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        __m256i c[4], each[2];
        for (int g = 0; g < 4; g++)
            c[g] = _mm256_loadu_si256((const __m256i *)(codes + i + 16 * g));
        for (int g = 0; g < 2; g++)
            each[g] = _mm256_packus_epi16(c[2 * g], c[2 * g + 1]);
        if (width == 8) {
            for (int g = 0; g < 2; g++)
                _mm256_storeu_si256((__m256i *)(out + i + 32 * g), _mm256_permute4x64_epi64(each[g], 0xD8));
            continue;
        }
        const __m256i pairs[2] = {_mm256_maddubs_epi16(each[0], join), _mm256_maddubs_epi16(each[1], join)};
        if (width == 4) {
            __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(pairs[0], pairs[1]), order);
            _mm256_storeu_si256((__m256i *)(out + i / 2), bytes);
        } else {
            __m256i fours = _mm256_packs_epi32(_mm256_madd_epi16(pairs[0], join_pairs), _mm256_madd_epi16(pairs[1], join_pairs));
            __m256i bytes = _mm256_packus_epi16(fours, fours);
            __m128i ordered = _mm_unpacklo_epi16(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
            _mm_storeu_si128((__m128i *)(out + i / 4), ordered);
        }
    }
    return i;
}
#endif

void sl_pack(uint16_t *codes, size_t n, unsigned width, uint8_t *out) {
    const size_t exact = (n * width + 7) / 8;
    uint64_t words[WORDS];
    uint8_t bytes[BYTES];
    size_t done = 0;
    if (width == 16) {
        memcpy(out, codes, exact);
        return;
    }
    for (; n % 8 != 0; n++)
        codes[n] = 0;
#ifdef SL_AVX2
    if ((width == 2 || width == 4 || width == 8) && sl_has_avx2())
        done = pack_avx2(codes, n, width, bytes);
#endif
    close_up(codes + done, (n - done) / 4, width, words);
    put_pairs(words, (n - done) / 8, width, bytes + done * width / 8);
    memcpy(out, bytes, exact);
}

/* ---- unpacking ---- */

FOR_EACH_CPU static void spread(const uint64_t *in, size_t words, unsigned width, uint16_t *codes) {
    const unsigned gap = 16 - width;
    const uint64_t pair = low_bits(2 * width), next = pair << 32, even = low_bits(width) * 0x100000001u, odd = even << 16;
    for (size_t i = 0; i < words; i++) {
        uint64_t w = in[i];
        w = (w & pair) | (w << 2 * gap & next);
        w = (w & even) | (w << gap & odd);
        memcpy(codes + 4 * i, &w, sizeof w);
    }
}

/* Words of 1, 2 or 4 bytes. */
#define GET_WORDS(type)                                                                 \
    FOR_EACH_CPU static void get_##type(const uint8_t *in, size_t n, uint64_t *words) { \
        for (size_t i = 0; i < n; i++) {                                                \
            type low;                                                                   \
            memcpy(&low, in + i * sizeof low, sizeof low);                              \
            words[i] = low;                                                             \
        }                                                                               \
    }
GET_WORDS(uint8_t)
GET_WORDS(uint16_t)
GET_WORDS(uint32_t)

static void get_pairs(const uint8_t *in, size_t pairs, unsigned width, uint64_t *words) {
    const unsigned half = 4 * width;
    const uint64_t mask = low_bits(half);
    for (size_t i = 0; i < pairs; i++, in += width) {
        uint64_t low, high = 0;
        memcpy(&low, in, sizeof low);
        if (width > 8)
            memcpy(&high, in + sizeof low, sizeof high);
        words[2 * i] = low & mask;
        words[2 * i + 1] = (low >> half | high << (64 - half)) & mask;
    }
}

#ifdef SL_AVX2
/* Sixteen codes of at most nine bits at a time, each of which lies in two neighbouring bytes: these go to a half-word, a multiplication moves
 * the code to its upper end, a shift back down. Reads up to SLACK bytes over the end. */
SL_AVX2 static void unpack_avx2(const uint8_t *in, size_t n, unsigned width, uint16_t *codes) {
    uint8_t bytes[16];
    uint16_t factors[8];
    for (unsigned k = 0; k < 8; k++) {
        bytes[2 * k] = (uint8_t)(k * width / 8);
        bytes[2 * k + 1] = (uint8_t)(bytes[2 * k] + 1);
        factors[k] = (uint16_t)(1u << (16 - width - k * width % 8));
    }
    const __m256i from = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)bytes));
    const __m256i factor = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)factors));
    const __m128i down = _mm_cvtsi32_si128((int)(16 - width));
    for (size_t i = 0; i < n; i += 16, in += 2 * width) {
        __m256i w = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)in)),
                                            _mm_loadu_si128((const __m128i *)(in + width)), 1);
        w = _mm256_srl_epi16(_mm256_mullo_epi16(_mm256_shuffle_epi8(w, from), factor), down);
        _mm256_storeu_si256((__m256i *)(codes + i), w);
    }
}
#endif

static void unpack_plain(const uint8_t *in, size_t groups, unsigned width, uint16_t *codes) {
    uint64_t words[WORDS];
    if (width == 2)
        get_uint8_t(in, 2 * groups, words);
    else if (width == 4)
        get_uint16_t(in, 2 * groups, words);
    else if (width == 8)
        get_uint32_t(in, 2 * groups, words);
    else
        get_pairs(in, groups, width, words);
    spread(words, 2 * groups, width, codes);
}

void sl_unpack(const uint8_t *packed, size_t n, unsigned width, uint16_t *codes) {
    const size_t exact = (n * width + 7) / 8, groups = (n + 7) / 8;
    uint8_t bytes[BYTES];
    if (width == 16) {
        memcpy(codes, packed, exact);
        return;
    }
    memcpy(bytes, packed, exact);
    memset(bytes + exact, 0, groups * width + SLACK - exact);
#ifdef SL_AVX2
    if (width <= 9 && n % 16 == 0 && sl_has_avx2()) {
        unpack_avx2(bytes, n, width, codes);
        return;
    }
#endif
    unpack_plain(bytes, groups, width, codes);
}
