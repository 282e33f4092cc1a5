/* pack.c - see pack.h. Four codes of 16 bits make a 64-bit word, whose codes are moved together in
 * two steps, many words at a time; then the words are written one behind the other. Unpacking goes
 * the same way back. Bytes are little-endian, as the machine. */
#include "compress/lossless/pack.h"

#include <string.h>

#include "base/kernels.h"

#ifdef SL_AVX2
#include <immintrin.h>
#endif

enum { WORDS = SL_BLOCK / 4, SLACK = 16, BYTES = 2 * SL_BLOCK + SLACK };

static uint64_t low_bits(unsigned count) {
    return ((uint64_t)1 << count) - 1;
}

/* ---- packing ---- */

/* Four codes a word, 16 bits apart -> together in its lowest 4 * width bits. */
FOR_EACH_CPU(void, close_up, (const uint16_t *codes, size_t words, unsigned width, uint64_t *out),
             (codes, words, width, out)) {
    const unsigned gap = 16 - width;
    const uint64_t even = low_bits(width) * 0x100000001u, odd = even << width,
                   pair = low_bits(2 * width), next = pair << 2 * width;
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
enum { JOINING_WIDTH_MAX = 14, JOINING_BYTES = 16 };

/* 64 codes of 2, 4 or 8 bits at a time; returns how many it did. Neighbours are joined by
 * multiplications with 1 and 2^width, which add them; each packing to half the width interleaves
 * the halves of its registers, and the last step puts that right. */
SL_AVX2 static size_t pack_avx2(const uint16_t *codes, size_t n, unsigned width, uint8_t *out) {
    const __m256i join = _mm256_set1_epi16((short)(1 << width << 8 | 1)),
                  join_pairs = _mm256_set1_epi32(16 << 16 | 1);
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
                _mm256_storeu_si256((__m256i *)(out + i + 32 * g),
                                    _mm256_permute4x64_epi64(each[g], 0xD8));
            continue;
        }
        const __m256i pairs[2] = {_mm256_maddubs_epi16(each[0], join),
                                  _mm256_maddubs_epi16(each[1], join)};
        if (width == 4) {
            __m256i bytes =
                _mm256_permutevar8x32_epi32(_mm256_packus_epi16(pairs[0], pairs[1]), order);
            _mm256_storeu_si256((__m256i *)(out + i / 2), bytes);
        } else {
            __m256i fours = _mm256_packs_epi32(_mm256_madd_epi16(pairs[0], join_pairs),
                                               _mm256_madd_epi16(pairs[1], join_pairs));
            __m256i bytes = _mm256_packus_epi16(fours, fours);
            __m128i ordered = _mm_unpacklo_epi16(_mm256_castsi256_si128(bytes),
                                                 _mm256_extracti128_si256(bytes, 1));
            _mm_storeu_si128((__m128i *)(out + i / 4), ordered);
        }
    }
    return i;
}

/* Sixteen codes of at most JOINING_WIDTH_MAX bits at a time, as long as what follows them has room
 * for what is written over their end; returns how many it did. Two codes are joined by a
 * multiplication with 1 and 2^width, which adds them, four by shifts, and eight, as four are not
 * always whole bytes, by another shift and a move of bytes. */
SL_AVX2 static size_t pack_joining(const uint16_t *codes, size_t n, unsigned width, uint8_t *out) {
    const int gap = 32 - 2 * (int)width, shift = 4 * (int)width % 8, behind = 4 * (int)width / 8;
    uint8_t second[JOINING_BYTES];
    for (int b = 0; b < JOINING_BYTES; b++)
        second[b] = (uint8_t)(b >= behind && b < behind + 8 ? 8 + b - behind : 0x80);
    const __m256i bytes = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)second));
    const __m256i join = _mm256_set1_epi32((int)(1u << width << 16 | 1)),
                  even = _mm256_set1_epi64x(gap), odd = _mm256_set_epi64x(shift, 0, shift, 0);
    size_t i = 0;
    for (; (i + 8) * width / 8 + JOINING_BYTES <= n * width / 8; i += 16, out += 2 * width) {
        const __m256i twos =
            _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)(codes + i)), join);
        const __m256i fours =
            _mm256_srl_epi64(_mm256_sllv_epi32(twos, even), _mm_cvtsi32_si128(gap));
        const __m256i placed = _mm256_sllv_epi64(fours, odd);
        const __m256i first = _mm256_blend_epi32(placed, _mm256_setzero_si256(), 0xCC);
        const __m256i eights = _mm256_or_si256(first, _mm256_shuffle_epi8(placed, bytes));
        _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(eights));
        _mm_storeu_si128((__m128i *)(out + width), _mm256_extracti128_si256(eights, 1));
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
#ifdef SL_AVX2
    if (sl_has_avx2() && (width == 2 || width == 4 || width == 8))
        done = pack_avx2(codes, n, width, out);
    else if (sl_has_avx2() && width <= JOINING_WIDTH_MAX)
        done = pack_joining(codes, n, width, out);
#endif
    for (; n % 8 != 0; n++)
        codes[n] = 0;
    close_up(codes + done, (n - done) / 4, width, words);
    put_pairs(words, (n - done) / 8, width, bytes);
    memcpy(out + done * width / 8, bytes, exact - done * width / 8);
}

/* ---- unpacking ---- */

FOR_EACH_CPU(void, spread, (const uint64_t *in, size_t words, unsigned width, uint16_t *codes),
             (in, words, width, codes)) {
    const unsigned gap = 16 - width;
    const uint64_t pair = low_bits(2 * width), next = pair << 32,
                   even = low_bits(width) * 0x100000001u, odd = even << 16;
    for (size_t i = 0; i < words; i++) {
        uint64_t w = in[i];
        w = (w & pair) | (w << 2 * gap & next);
        w = (w & even) | (w << gap & odd);
        memcpy(codes + 4 * i, &w, sizeof w);
    }
}

/* Words of 1, 2 or 4 bytes. */
#define GET_WORDS(type)                                                                            \
    FOR_EACH_CPU(void, get_##type, (const uint8_t *in, size_t n, uint64_t *words),                 \
                 (in, n, words)) {                                                                 \
        for (size_t i = 0; i < n; i++) {                                                           \
            type low;                                                                              \
            memcpy(&low, in + i * sizeof low, sizeof low);                                         \
            words[i] = low;                                                                        \
        }                                                                                          \
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
/* Sixteen codes of at most nine bits at a time, each of which lies in two neighbouring bytes: these
 * go to a half-word, and a multiplication moves the code to its upper end. Reads SPREAD_BYTES +
 * width bytes. */
enum { SPREAD_WIDTH_MAX = 9, SPREAD_BYTES = 16 };

typedef struct spreading {
    __m256i from,
        factor; /* each code's two bytes, and 2 to the power of what it lacks to the upper end */
} spreading;

SL_AVX2 static spreading spreading_of(unsigned width) {
    uint8_t bytes[16];
    uint16_t factors[8];
    for (unsigned k = 0; k < 8; k++) {
        bytes[2 * k] = (uint8_t)(k * width / 8);
        bytes[2 * k + 1] = (uint8_t)(bytes[2 * k] + 1);
        factors[k] = (uint16_t)(1u << (16 - width - k * width % 8));
    }
    return (spreading){_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)bytes)),
                       _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)factors))};
}

SL_AVX2 static inline __m256i spread_16(const spreading *s, const uint8_t *in, unsigned width) {
    const __m256i w =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)in)),
                                _mm_loadu_si128((const __m128i *)(in + width)), 1);
    return _mm256_mullo_epi16(_mm256_shuffle_epi8(w, s->from), s->factor);
}

/* As many of n codes as can be read within `bytes`, a multiple of 16; returns how many. */
SL_AVX2 static size_t unpack_avx2(const uint8_t *in, size_t bytes, size_t n, unsigned width,
                                  uint16_t *codes) {
    const spreading s = spreading_of(width);
    const __m128i down = _mm_cvtsi32_si128((int)(16 - width));
    size_t i = 0;
    for (size_t at = 0; i + 16 <= n && at + SPREAD_BYTES + width <= bytes; i += 16, at += 2 * width)
        _mm256_storeu_si256((__m256i *)(codes + i),
                            _mm256_srl_epi16(spread_16(&s, in + at, width), down));
    return i;
}

/* The largest of so many codes as can be read within `bytes`, a multiple of 16, each & mask; *done:
 * how many. */
SL_AVX2 static uint32_t largest_avx2(const uint8_t *in, size_t bytes, unsigned width, uint32_t mask,
                                     size_t *done) {
    const spreading s = spreading_of(width);
    const __m256i masks = _mm256_set1_epi16((short)(mask << (16 - width)));
    __m256i largest = _mm256_setzero_si256();
    size_t at = 0;
    for (; at + SPREAD_BYTES + width <= bytes; at += 2 * width)
        largest = _mm256_max_epu16(largest, _mm256_and_si256(spread_16(&s, in + at, width), masks));
    *done = at / width * 8;
    uint16_t lanes[16], most = 0;
    _mm256_storeu_si256((__m256i *)lanes, largest);
    for (int l = 0; l < 16; l++)
        most = lanes[l] > most ? lanes[l] : most;
    return (uint32_t)most >> (16 - width);
}
#endif

/* By groups of eight, the last of which has no more bytes than it needs. */
static void unpack_plain(const uint8_t *packed, size_t n, unsigned width, uint16_t *codes) {
    const size_t exact = (n * width + 7) / 8, groups = (n + 7) / 8;
    uint8_t in[BYTES];
    uint64_t words[WORDS];
    memcpy(in, packed, exact);
    memset(in + exact, 0, groups * width + SLACK - exact);
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

const uint16_t *sl_unpack(const void *packed, size_t n, unsigned width, uint16_t *room) {
    size_t done = 0;
    if (width == 16)
        return packed;
#ifdef SL_AVX2
    if (width <= SPREAD_WIDTH_MAX && sl_has_avx2())
        done = unpack_avx2(packed, (n * width + 7) / 8, n, width, room);
#endif
    unpack_plain((const uint8_t *)packed + done * width / 8, n - done, width, room + done);
    return room;
}

FOR_EACH_CPU(uint32_t, largest_code, (const uint16_t *codes, size_t n, uint32_t mask),
             (codes, n, mask)) {
    uint16_t largest = 0, part = (uint16_t)mask;
    for (size_t i = 0; i < n; i++) {
        uint16_t code = codes[i] & part;
        largest = code > largest ? code : largest;
    }
    return largest;
}

uint32_t sl_packed_largest(const void *packed, size_t n, unsigned width, uint32_t mask) {
    uint16_t room[SL_BLOCK];
    uint32_t largest = 0;
    size_t at = 0;
#ifdef SL_AVX2
    if (width <= SPREAD_WIDTH_MAX && sl_has_avx2())
        largest = largest_avx2(packed, (n * width + 7) / 8, width, mask, &at);
#endif
    for (size_t some; at < n; at += some) {
        some = n - at < SL_BLOCK ? n - at : SL_BLOCK;
        const uint16_t *codes =
            sl_unpack((const uint8_t *)packed + at * width / 8, some, width, room);
        const uint32_t code = largest_code(codes, some, mask);
        largest = code > largest ? code : largest;
    }
    return largest;
}
