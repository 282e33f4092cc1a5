/* random_dropping.c - random dropping: each element is kept with probability p, as it is, or divided by p.
 *
 * Divided: unbiased with omega = 1/p - 1; as it is: E||C(v) - v||^2 = (1 - p) ||v||^2. The mask follows from the message's random numbers
 * and is not sent: element i takes the 16 bits i mod 8 of block i / 8 of the stream of the message's key, and is kept where they
 * are below 65536 p. p is rounded to a multiple of 1/65536, at least one, and the rounded p is what scaling divides by.
 * A message is the kept values, 32 bits each; a part is a range of elements.
 *
 * A part is longer than its buffer could hold if everything in it were kept: it has room for PART_DEVIATIONS standard deviations more than
 * the expected number. Were more to be chosen, with a probability below 1e-20, the last ones are dropped, by sender and receiver alike.
 */
#include <math.h>

#include "compress/entries.h"
#include "starling/rng.h"

enum { PER_BLOCK = 8, DRAWS = 65536, PART_DEVIATIONS = 10, PART_MORE = 67 };

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
        return (sl_quality){.unbiased = true, .omega = omega, .is_contractive = omega < 1, .delta = omega < 1 ? 1 - omega : 0};
    return (sl_quality){.unbiased = false, .omega = INFINITY, .is_contractive = true, .delta = p};
}

static double bits(const sl_compressor_config *config, size_t dimension) {
    return 32 * probability(config) * (double)dimension;
}

static int check(const sl_compressor_config *config, size_t dimension, sl_error *error) {
    (void)dimension;
    if (!(config->probability > 0 && config->probability <= 1))
        return sl_fail(error, SL_EINVAL, "algorithm.compressor.probability: %g is not allowed; it must be above 0 and at most 1 (that of "
                       "keeping an element)", config->probability);
    return 0;
}

/* Values that a part of so many elements has room for. Bernstein: P(more) <= exp(-t^2 / (2 (variance + t/3))), t = 10 sigma + 67. */
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

static size_t mask_bytes(const sl_codec *c) {
    return sizeof(mask) + sl_words(c->part_elements) * sizeof(uint64_t);
}

/* ---- the mask ---- */

static uint64_t draw_word(const sl_rng_key *key, size_t element, uint32_t threshold) {
    uint64_t word = 0;
    for (size_t i = 0; i < SL_WORD; i += PER_BLOCK) {
        uint32_t block[4];
        sl_rng_block(key, (uint32_t)((element + i) / PER_BLOCK), block);
        for (size_t j = 0; j < PER_BLOCK; j++)
            word |= (uint64_t)((block[j / 2] >> 16 * (j % 2) & 0xffff) < threshold) << (i + j);
    }
    return word;
}

/* Leaves the first `room` bits set. */
static size_t limit(uint64_t *words, size_t count, size_t room_for) {
    size_t kept = 0;
    for (size_t w = 0; w < count; w++) {
        kept += (size_t)__builtin_popcountll(words[w]);
        for (; kept > room_for; kept--)
            words[w] &= ~(UINT64_C(1) << (63 - __builtin_clzll(words[w])));
    }
    return kept;
}

static const mask *prepare(void *memory, const sl_codec *c, const sl_message *message, uint32_t part) {
    mask *m = memory;
    if (m->ready && m->part == part && sl_message_same(&m->message, message))
        return m;
    sl_rng_key key = sl_message_key(message);
    uint32_t threshold = kept_draws(&c->config);
    size_t from, count;
    sl_codec_part_range(c, part, &from, &count);
    for (size_t w = 0; w < sl_words(count); w++)
        m->words[w] = draw_word(&key, from + w * SL_WORD, threshold);
    m->words[sl_words(count) - 1] &= sl_low_bits((count - 1) % SL_WORD + 1);
    m->kept = limit(m->words, sl_words(count), room(&c->config, count));
    m->message = *message;
    m->part = part;
    m->ready = true;
    return m;
}

/* ---- payloads ---- */

static int encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer, sl_payload *out) {
    const mask *m = prepare(e->memory, e->codec, &e->message, part);
    float *value = buffer;
    size_t from, count;
    sl_codec_part_range(e->codec, part, &from, &count);
    for (size_t at = 0; at < count; at += SL_BLOCK) {
        size_t elements = count - at < SL_BLOCK ? count - at : SL_BLOCK;
        const float *block = sl_encoder_read(e, source, from + at, elements);
        for (size_t i = 0; i < elements; i += SL_WORD)
            for (uint64_t word = m->words[(at + i) / SL_WORD]; word != 0; word &= word - 1)
                *value++ = block[i + (size_t)__builtin_ctzll(word)];
    }
    if (!sl_entries_finite(buffer, m->kept))
        return SL_EDIVERGED;
    *out = (sl_payload){buffer, m->kept * sizeof(float)};
    return 0;
}

static int check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    const mask *m = prepare(d->memory, d->codec, &d->message, part);
    return payload.bytes == m->kept * sizeof(float) && sl_entries_finite(payload.data, m->kept) ? 0 : SL_EPROTO;
}

static void add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    const mask *m = prepare(d->memory, d->codec, &d->message, part);
    const float *value = payload.data;
    float scaled = d->codec->config.scaled ? weight * (float)(1 / probability(&d->codec->config)) : weight;
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    for (size_t i = 0; i < count; i += SL_WORD)
        for (uint64_t word = m->words[i / SL_WORD]; word != 0; word &= word - 1)
            acc[from + i + (size_t)__builtin_ctzll(word)] += scaled * *value++;
}

const codec_ops sl_random_dropping_codec = {
    .quality = quality, .bits = bits, .check = check, .lay_out = lay_out, .encoder_bytes = mask_bytes, .decoder_bytes = mask_bytes,
    .encode = encode, .check_part = check_part, .add = add};
