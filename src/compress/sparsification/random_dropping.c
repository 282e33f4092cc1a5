/* random_dropping.c - random dropping: each element is kept with probability p, as it is, or
 * divided by p.
 *
 * Divided: unbiased with omega = 1/p - 1; as it is: E||C(v) - v||^2 = (1 - p) ||v||^2. The mask
 * follows from the message's random numbers and is not sent: element i takes half-word i & 7 of the
 * message's quick block i >> 3 (starling/rng.h; the low half of a word first), and is kept where
 * that is below 65536 p. p is rounded to a multiple of 1/65536, at least one, and the rounded p is
 * what scaling divides by. A message is the kept values, 32 bits each; a part is a range of
 * elements.
 *
 * A part is longer than its buffer could hold if everything in it were kept: it has room for
 * PART_DEVIATIONS standard deviations more than the expected number. Were more to be chosen, with a
 * probability below 1e-20, the last ones are dropped, by sender and receiver alike.
 */
#include <math.h>

#include "compress/own_keys.h"
#include "compress/sparsification/entries.h"
#include "starling/rng.h"

#ifdef SL_AVX2
#include <immintrin.h>
#define WITH_BMI2 __attribute__((target("avx2,bmi2")))
#endif

enum {
    PER_BLOCK = 8, /* elements that a block of random numbers serves */
    BLOCKS_PER_WORD = SL_WORD / PER_BLOCK,
    WORDS_AT_ONCE = 16,
    CACHE_LINE = 64,
    DRAWS = 65536,
    DENSE_DRAWS =
        DRAWS / 8, /* kept from so many draws on, elements are moved by eights, kept or not */
    PART_DEVIATIONS = 10,
    PART_MORE = 67
};

typedef struct mask {
    sl_message message; /* whose it is, if `ready` */
    uint32_t part;
    bool ready;
    size_t kept;
    uint64_t words[]; /* one bit for each element of the part */
} mask;

/* 65536 p, rounded. */
static uint32_t kept_draws(const sl_compressor_config *config) {
    double rounded = round(config->probability * DRAWS);
    return rounded > 1 ? (uint32_t)rounded : 1;
}

static double probability(const sl_compressor_config *config) {
    return (double)kept_draws(config) / DRAWS;
}

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    (void)dimension;
    double p = probability(config), omega = 1 / p - 1;
    if (kept_draws(config) == DRAWS)
        return (sl_quality){.unbiased = true, .omega = 0, .is_contractive = true, .delta = 1};
    if (config->scaled)
        return (sl_quality){.unbiased = true,
                            .omega = omega,
                            .is_contractive = omega < 1,
                            .delta = omega < 1 ? 1 - omega : 0};
    return (sl_quality){.unbiased = false, .omega = INFINITY, .is_contractive = true, .delta = p};
}

static double bits(const codec_ops *self, const sl_compressor_config *config, size_t dimension) {
    (void)self;
    return 32 * probability(config) * (double)dimension;
}

static int check(const sl_compressor_config *config, size_t dimension, sl_error *error) {
    (void)dimension;
    if (!(config->probability > 0 && config->probability <= 1))
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.probability: %g is not allowed; it must be above 0 "
                       "and at most 1 (that of "
                       "keeping an element)",
                       config->probability);
    return 0;
}

/* Values that a part of so many elements has room for. Bernstein: P(more) <= exp(-t^2 / (2
 * (variance + t/3))), t = 10 sigma + 67. */
static size_t room(const sl_compressor_config *config, size_t elements) {
    double p = probability(config), expected = p * (double)elements;
    double values = ceil(expected + PART_DEVIATIONS * sqrt(expected * (1 - p)) + PART_MORE);
    return values < (double)elements ? (size_t)values : elements;
}

/* The most blocks whose room is within part_bytes. */
static void lay_out(sl_codec *c, size_t part_bytes) {
    size_t low = 1, high = (c->dimension - 1) / SL_BLOCK + 1;
    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;
        if (room(&c->config, middle * SL_BLOCK) * sizeof(float) <= part_bytes)
            low = middle;
        else
            high = middle - 1;
    }
    c->part_elements = low * SL_BLOCK < c->dimension ? low * SL_BLOCK : c->dimension;
    c->part_bytes_max = room(&c->config, c->part_elements) * sizeof(float);
    c->parts = (uint32_t)((c->dimension - 1) / c->part_elements + 1);
}

static float value_factor(const sl_codec *c) {
    return c->config.scaled ? (float)(1 / probability(&c->config)) : 1;
}

static void describe(const sl_codec *c, sl_coding *out) {
    out->form = CODING_DROPPING;
    out->draws = kept_draws(&c->config);
    out->room = room(&c->config, c->part_elements);
    out->room_last = room(&c->config, c->dimension - (c->parts - 1) * c->part_elements);
    out->value_factor = value_factor(c);
}

/* A walk may look at one word more. */
static size_t mask_bytes(const sl_codec *c) {
    return sizeof(mask) + (sl_words(c->part_elements) + 1) * sizeof(uint64_t);
}

/* ---- the mask ---- */

/* Which of the 64 half words are below `draws`, 1 to 65536. */
static uint64_t below_plain(const uint32_t *numbers, uint32_t draws) {
    uint64_t word = 0;
    for (size_t i = 0; i < SL_WORD; i++)
        word |= (uint64_t)((numbers[i / 2] >> 16 * (i % 2) & 0xffff) < draws) << i;
    return word;
}

#ifdef SL_AVX2
SL_AVX2 static inline __m256i below_16(const uint32_t *numbers, __m256i largest) {
    __m256i n = _mm256_loadu_si256((const __m256i *)numbers);
    return _mm256_cmpeq_epi16(_mm256_min_epu16(n, largest), n);
}

SL_AVX2 static inline uint32_t below_32(const uint32_t *numbers, __m256i largest) {
    __m256i bytes = _mm256_packs_epi16(below_16(numbers, largest), below_16(numbers + 8, largest));
    return (uint32_t)_mm256_movemask_epi8(_mm256_permute4x64_epi64(bytes, 0xD8));
}

SL_AVX2 static uint64_t below_avx2(const uint32_t *numbers, uint32_t draws) {
    __m256i largest = _mm256_set1_epi16((short)(draws - 1));
    return below_32(numbers, largest) | (uint64_t)below_32(numbers + 16, largest) << 32;
}
#endif

static uint64_t (*fastest_below(void))(const uint32_t *, uint32_t) {
#ifdef SL_AVX2
    if (sl_has_avx2())
        return below_avx2;
#endif
    return below_plain;
}

/* Asks for WORDS_AT_ONCE of `count` equal shares of some memory, from the w-th on. */
static void ask_for(sl_payload memory, size_t w, size_t count) {
    const uint8_t *bytes = memory.data;
    for (size_t at = memory.bytes / count * w;
         at < memory.bytes / count * (w + WORDS_AT_ONCE) && at < memory.bytes; at += CACHE_LINE)
        __builtin_prefetch(bytes + at, 0, 2);
}

/* The words for elements from `from` on. soon: what is read next; it comes while numbers are drawn.
 */
static void draw(uint64_t *words, size_t count, size_t from, const sl_message *message,
                 uint32_t draws, sl_payload soon) {
    const sl_rng_key key = sl_message_key(message);
    uint64_t (*below)(const uint32_t *, uint32_t) = fastest_below();
    uint32_t numbers[WORDS_AT_ONCE][BLOCKS_PER_WORD * 4];
    for (size_t w = 0; w < count; w += WORDS_AT_ONCE) {
        size_t n = count - w < WORDS_AT_ONCE ? count - w : WORDS_AT_ONCE;
        ask_for(soon, w, count);
        sl_rng_quick_blocks(&key, (uint32_t)(from / PER_BLOCK + w * BLOCKS_PER_WORD),
                            n * BLOCKS_PER_WORD, numbers[0]);
        for (size_t i = 0; i < n; i++)
            words[w + i] = below(numbers[i], draws);
    }
}

/* Leaves the first `room` bits set. */
FOR_EACH_CPU(size_t, limit, (uint64_t * words, size_t count, size_t room_for),
             (words, count, room_for)) {
    size_t kept = 0;
    for (size_t w = 0; w < count; w++) {
        kept += (size_t)__builtin_popcountll(words[w]);
        for (; kept > room_for; kept--)
            words[w] &= ~(UINT64_C(1) << (63 - __builtin_clzll(words[w])));
    }
    return kept;
}

static const mask *prepare(void *memory, const sl_codec *c, const sl_message *message,
                           uint32_t part, sl_payload soon) {
    mask *m = memory;
    if (m->ready && m->part == part && sl_message_same(&m->message, message))
        return m;
    size_t from, count;
    sl_codec_part_range(c, part, &from, &count);
    draw(m->words, sl_words(count), from, message, kept_draws(&c->config), soon);
    m->words[sl_words(count) - 1] &= sl_low_bits((count - 1) % SL_WORD + 1);
    m->kept = limit(m->words, sl_words(count), room(&c->config, count));
    m->message = *message;
    m->part = part;
    m->ready = true;
    return m;
}

/* ---- values out and in ---- */

/* Kept elements of a block to the end of the values; `end`: where the values of the whole part end.
 * Returns the new end. */
static float *pack_plain(const uint64_t *words, size_t from, size_t count, const float *block,
                         float *out) {
    for (size_t i = from; i < count; i++) {
        if (words[i / SL_WORD] >> i % SL_WORD & 1)
            *out++ = block[i];
    }
    return out;
}

static void unpack_plain(const uint64_t *words, size_t from, size_t count, const float *values,
                         float weight, float *acc) {
    for (size_t i = from; i < count; i++) {
        if (words[i / SL_WORD] >> i % SL_WORD & 1)
            acc[i] += weight * *values++;
    }
}

#ifdef SL_AVX2
/* A byte of ones for each bit. */
WITH_BMI2 static inline uint64_t bytes_of(uint64_t bits) {
    return _pdep_u64(bits, UINT64_C(0x0101010101010101)) * 0xff;
}

static const uint64_t lane_numbers = UINT64_C(0x0706050403020100);

/* Eight elements at once, the kept ones to the front; so far as eight more fit before `end`. */
WITH_BMI2 static float *pack_bmi2(const uint64_t *words, size_t count, const float *block,
                                  float *out, const float *end) {
    size_t i = 0;
    for (; i + 8 <= count && end - out >= 8; i += 8) {
        uint64_t kept = words[i / SL_WORD] >> i % SL_WORD & 0xff;
        __m256i lanes = _mm256_cvtepu8_epi32(
            _mm_cvtsi64_si128((long long)_pext_u64(lane_numbers, bytes_of(kept))));
        _mm256_storeu_ps(out, _mm256_permutevar8x32_ps(_mm256_loadu_ps(block + i), lanes));
        out += __builtin_popcountll(kept);
    }
    return pack_plain(words, i, count, block, out);
}

/* For each byte of a mask: which of the next values each element gets, or NOT_KEPT. */
#define NOT_KEPT 0x80u
#define SOURCE(kept, i)                                                                            \
    (uint64_t)((kept) >> (i)&1 ? (unsigned)__builtin_popcount((kept) & ((1u << (i)) - 1))          \
                               : NOT_KEPT)                                                         \
        << 8 * (i)
#define SOURCES(kept)                                                                              \
    SOURCE(kept, 0) | SOURCE(kept, 1) | SOURCE(kept, 2) | SOURCE(kept, 3) | SOURCE(kept, 4) |      \
        SOURCE(kept, 5) | SOURCE(kept, 6) | SOURCE(kept, 7)
#define SOURCES_4(kept) SOURCES(kept), SOURCES(kept + 1u), SOURCES(kept + 2u), SOURCES(kept + 3u)
#define SOURCES_16(kept)                                                                           \
    SOURCES_4(kept), SOURCES_4(kept + 4u), SOURCES_4(kept + 8u), SOURCES_4(kept + 12u)
#define SOURCES_64(kept)                                                                           \
    SOURCES_16(kept), SOURCES_16(kept + 16u), SOURCES_16(kept + 32u), SOURCES_16(kept + 48u)
static const uint64_t sources[256] = {SOURCES_64(0u), SOURCES_64(64u), SOURCES_64(128u),
                                      SOURCES_64(192u)};

/* A lane's sign says that its element is not kept; the lowest bits are its value's place. */
WITH_BMI2 static void unpack_bmi2(const uint64_t *words, size_t count, const float *values,
                                  const float *end, float weight, float *acc) {
    const __m256 weights = _mm256_set1_ps(weight);
    size_t i = 0;
    for (; i + 8 <= count && end - values >= 8; i += 8) {
        const uint64_t kept = words[i / SL_WORD] >> i % SL_WORD & 0xff;
        const __m256i lanes =
            _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(sources + kept)));
        const __m256 before = _mm256_loadu_ps(acc + i),
                     value = _mm256_permutevar8x32_ps(_mm256_loadu_ps(values), lanes);
        const __m256 after = _mm256_add_ps(before, _mm256_mul_ps(weights, value));
        _mm256_storeu_ps(acc + i, _mm256_blendv_ps(after, before, _mm256_castsi256_ps(lanes)));
        values += __builtin_popcountll(kept);
    }
    unpack_plain(words, i, count, values, weight, acc);
}
#endif

static float *pack(const uint64_t *words, size_t count, const float *block, float *out,
                   const float *end) {
#ifdef SL_AVX2
    if (sl_has_avx2())
        return pack_bmi2(words, count, block, out, end);
#endif
    (void)end;
    return pack_plain(words, 0, count, block, out);
}

static void unpack(const uint64_t *words, size_t count, const float *values, const float *end,
                   float weight, float *acc) {
#ifdef SL_AVX2
    if (sl_has_avx2()) {
        unpack_bmi2(words, count, values, end, weight, acc);
        return;
    }
#endif
    (void)end;
    unpack_plain(words, 0, count, values, weight, acc);
}

static bool is_dense(const sl_codec *c) {
    return kept_draws(&c->config) >= DENSE_DRAWS;
}

/* ---- payloads ---- */

static void gather(sl_encoder *e, const sl_source *source, uint32_t part, const mask *m,
                   float *out) {
    const float *end = out + m->kept;
    size_t from, count;
    sl_codec_part_range(e->codec, part, &from, &count);
    if (!is_dense(e->codec))
        sl_walk_gather(sl_walk_open(m->words, count, 0, m->kept), e, source, from, out);
    for (size_t at = 0; is_dense(e->codec) && at < count; at += SL_BLOCK) {
        size_t elements = count - at < SL_BLOCK ? count - at : SL_BLOCK;
        out = pack(m->words + at / SL_WORD, elements,
                   sl_encoder_read(e, source, from + at, elements), out, end);
    }
}

/* The part's elements, where they are in memory and all of them are read. */
static sl_payload in_memory(const sl_codec *c, const sl_source *source, uint32_t part) {
    size_t from, count;
    sl_codec_part_range(c, part, &from, &count);
    return source->vector != NULL && is_dense(c)
               ? (sl_payload){source->vector + from, count * sizeof(float)}
               : (sl_payload){0};
}

static int encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                  sl_payload *out) {
    const mask *m =
        prepare(e->memory, e->codec, &e->message, part, in_memory(e->codec, source, part));
    gather(e, source, part, m, buffer);
    if (!sl_entries_finite(buffer, m->kept))
        return SL_EDIVERGED;
    *out = (sl_payload){buffer, m->kept * sizeof(float)};
    return 0;
}

static int check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    const mask *m = prepare(d->memory, d->codec, &d->message, part, payload);
    return payload.bytes == m->kept * sizeof(float) && sl_entries_finite(payload.data, m->kept)
               ? 0
               : SL_EPROTO;
}

static void add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    const sl_codec *c = d->codec;
    const mask *m = prepare(d->memory, c, &d->message, part, payload);
    const float *values = payload.data;
    float scaled = weight * value_factor(c);
    size_t from, count;
    sl_codec_part_range(c, part, &from, &count);
    if (is_dense(c))
        unpack(m->words, count, values, values + m->kept, scaled, acc + from);
    else
        sl_walk_scatter(sl_walk_open(m->words, count, 0, m->kept), scaled, values, acc + from);
}

static const sl_key keys[] = {
    {SL_OWN_REAL(probability, 1e-4, 1), .fallback = "0.1",
     .help = "probability of sending an element"},
    {SL_ROW_SCALED},
    {SL_ROW_CONTRACTIVE},
    SL_KEYS_END,
};

const codec_ops sl_random_dropping_codec = {.keys = keys,
                                            .quality = quality,
                                            .bits = bits,
                                            .check = check,
                                            .lay_out = lay_out,
                                            .describe = describe,
                                            .encoder_bytes = mask_bytes,
                                            .decoder_bytes = mask_bytes,
                                            .encode = encode,
                                            .check_part = check_part,
                                            .add = add,
                                            .reads_drawn = true};
