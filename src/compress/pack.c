/* pack.c - see pack.h. Four codes of 16 bits make a 64-bit word, whose codes are moved together in two steps, many words at a time; then
 * the words are written one behind the other. Unpacking goes the same way back. Bytes are little-endian, as the machine. */
#include "compress/pack.h"

#include <string.h>

#include "vec/for_each_cpu.h"

#if defined(__SSE2__) && !defined(SL_PLAIN_KERNELS)
#define SIGNS_SSE2
#include <emmintrin.h>
#endif

enum { WORDS = SL_BLOCK / 4, SLACK = 16, BYTES = 2 * SL_BLOCK + SLACK };

static uint64_t low_bits(unsigned count) {
    return count == 64 ? UINT64_MAX : ((uint64_t)1 << count) - 1;
}

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

/* The lowest 1, 2 or 4 bytes of each word, and back. */
#define BYTES_OF_WORDS(type)                                                             \
    FOR_EACH_CPU static void put_##type(const uint64_t *words, size_t n, uint8_t *out) { \
        for (size_t i = 0; i < n; i++) {                                                 \
            type low = (type)words[i];                                                   \
            memcpy(out + i * sizeof low, &low, sizeof low);                              \
        }                                                                                \
    }                                                                                    \
    FOR_EACH_CPU static void get_##type(const uint8_t *in, size_t n, uint64_t *words) {  \
        for (size_t i = 0; i < n; i++) {                                                 \
            type low;                                                                    \
            memcpy(&low, in + i * sizeof low, sizeof low);                               \
            words[i] = low;                                                              \
        }                                                                                \
    }
BYTES_OF_WORDS(uint8_t)
BYTES_OF_WORDS(uint16_t)
BYTES_OF_WORDS(uint32_t)

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

/* One bit a code. */
static void put_bits(const uint16_t *codes, size_t n, uint8_t *out) {
    size_t i = 0;
#ifdef SIGNS_SSE2
    for (; i + 16 <= n; i += 16) {
        __m128i low = _mm_loadu_si128((const __m128i *)(codes + i)), high = _mm_loadu_si128((const __m128i *)(codes + i + 8));
        uint16_t bits = (uint16_t)_mm_movemask_epi8(_mm_slli_epi16(_mm_packs_epi16(low, high), 7));
        memcpy(out + i / 8, &bits, sizeof bits);
    }
#endif
    for (; i < n; i += 8) {
        unsigned byte = 0;
        for (int b = 0; b < 8; b++)
            byte |= (unsigned)codes[i + b] << b;
        out[i / 8] = (uint8_t)byte;
    }
}

void sl_pack(uint16_t *codes, size_t n, unsigned width, uint8_t *out) {
    const size_t exact = (n * width + 7) / 8;
    uint64_t words[WORDS];
    uint8_t bytes[BYTES];
    for (; n % 8 != 0; n++)
        codes[n] = 0;
    if (width == 1)
        put_bits(codes, n, bytes);
    else if (width < 16)
        close_up(codes, n / 4, width, words);
    if (width == 2)
        put_uint8_t(words, n / 4, bytes);
    else if (width == 4)
        put_uint16_t(words, n / 4, bytes);
    else if (width == 8)
        put_uint32_t(words, n / 4, bytes);
    else if (width > 1 && width < 16)
        put_pairs(words, n / 8, width, bytes);
    memcpy(out, width == 16 ? (const void *)codes : bytes, exact);
}

void sl_unpack(const uint8_t *packed, size_t n, unsigned width, uint16_t *codes) {
    const size_t exact = (n * width + 7) / 8, groups = (n + 7) / 8;
    uint64_t words[WORDS];
    uint8_t bytes[BYTES];
    if (width == 16) {
        memcpy(codes, packed, exact);
        return;
    }
    memcpy(bytes, packed, exact);
    memset(bytes + exact, 0, groups * width + SLACK - exact);
    if (width == 2)
        get_uint8_t(bytes, 2 * groups, words);
    else if (width == 4)
        get_uint16_t(bytes, 2 * groups, words);
    else if (width == 8)
        get_uint32_t(bytes, 2 * groups, words);
    else
        get_pairs(bytes, groups, width, words);
    spread(words, 2 * groups, width, codes);
}
