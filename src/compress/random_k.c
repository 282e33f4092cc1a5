/* random_k.c - random-k: a uniform subset of k of the d elements, as they are, or times d/k.
 *
 * Unscaled: E||C(v) - v||^2 = (1 - k/d) ||v||^2; scaled: unbiased with omega = d/k - 1 (Stich, Cordonnier, Jaggi, NeurIPS 2018; Koloskova,
 * Stich, Jaggi, ICML 2019). The subset follows from the message's random numbers and is not sent: a message is k values of 32 bits in
 * the order of their indices, a part a range of them.
 *
 * Numbers below d are drawn, as sl_rng_below draws them, from the stream of the message's key, until k different ones have been drawn:
 * a bitmap of d bits tells which. Where k > d/2 those that are left out are drawn. Sender and receiver build the bitmap once a message,
 * and find where each part begins.
 */
#include <math.h>

#include "compress/entries.h"
#include "starling/rng.h"

typedef struct subset {
    sl_message message; /* whose it is, if `ready` */
    bool ready;
    uint64_t words[]; /* the bitmap: sl_words(d), then the element at which each part begins */
} subset;

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    size_t k = sl_entries_kept(config, dimension);
    double kept = (double)k / (double)dimension, omega = 1 / kept - 1;
    if (k == dimension)
        return (sl_quality){.unbiased = true, .omega = 0, .is_contractive = true, .delta = 1};
    if (config->scaled)
        return (sl_quality){.unbiased = true, .omega = omega, .is_contractive = omega < 1, .delta = omega < 1 ? 1 - omega : 0};
    return (sl_quality){.unbiased = false, .omega = INFINITY, .is_contractive = true, .delta = kept};
}

static double bits(const sl_compressor_config *config, size_t dimension) {
    return 32.0 * (double)sl_entries_kept(config, dimension);
}

static void lay_out(sl_codec *c, size_t part_bytes) {
    c->sparse = true;
    c->k = sl_entries_kept(&c->config, c->dimension);
    c->part_elements = part_bytes / sizeof(float) < c->k ? part_bytes / sizeof(float) : c->k;
    c->part_bytes_max = c->part_elements * sizeof(float);
    c->parts = (uint32_t)((c->k - 1) / c->part_elements + 1);
}

static size_t subset_bytes(const sl_codec *c) {
    return sizeof(subset) + (sl_words(c->dimension) + c->parts) * sizeof(uint64_t);
}

/* ---- the subset ---- */

static void draw(uint64_t *words, size_t count, uint32_t dimension, const sl_message *message) {
    sl_rng rng = {.key = sl_message_key(message)};
    for (size_t drawn = 0; drawn < count;) {
        uint32_t i = sl_rng_below(&rng, dimension);
        uint64_t word = words[i / SL_WORD];
        drawn += ~word >> i % SL_WORD & 1;
        words[i / SL_WORD] = word | UINT64_C(1) << i % SL_WORD;
    }
}

static void invert(uint64_t *words, size_t dimension) {
    for (size_t w = 0; w < sl_words(dimension); w++)
        words[w] = ~words[w];
    words[sl_words(dimension) - 1] &= sl_low_bits((dimension - 1) % SL_WORD + 1);
}

/* Place of the n-th bit set, from 0. */
static size_t nth_bit(uint64_t word, size_t n) {
    for (; n > 0; n--)
        word &= word - 1;
    return (size_t)__builtin_ctzll(word);
}

static void find_parts(const sl_codec *c, const uint64_t *words, uint64_t *starts) {
    size_t entries = 0;
    uint32_t part = 0;
    for (size_t w = 0; w < sl_words(c->dimension); w++) {
        size_t set = (size_t)__builtin_popcountll(words[w]);
        for (; part < c->parts && part * c->part_elements < entries + set; part++)
            starts[part] = w * SL_WORD + nth_bit(words[w], part * c->part_elements - entries);
        entries += set;
    }
}

static void prepare(subset *s, const sl_codec *c, const sl_message *message) {
    if (s->ready && sl_message_same(&s->message, message))
        return;
    bool others = c->k > c->dimension / 2;
    memset(s->words, 0, sl_words(c->dimension) * sizeof(uint64_t));
    draw(s->words, others ? c->dimension - c->k : c->k, (uint32_t)c->dimension, message);
    if (others)
        invert(s->words, c->dimension);
    find_parts(c, s->words, s->words + sl_words(c->dimension));
    s->message = *message;
    s->ready = true;
}

/* The part's elements: returns how many, from the element *start on. */
static size_t part_entries(const subset *s, const sl_codec *c, uint32_t part, size_t *start) {
    size_t left = c->k - part * c->part_elements;
    *start = s->words[sl_words(c->dimension) + part];
    return left < c->part_elements ? left : c->part_elements;
}

/* Word w of the bitmap, without what lies before element `start`. */
static uint64_t word_from(const subset *s, size_t w, size_t start) {
    return w == start / SL_WORD ? s->words[w] & ~sl_low_bits(start % SL_WORD) : s->words[w];
}

/* ---- payloads ---- */

static int begin(sl_encoder *e, const sl_source *source) {
    (void)source;
    prepare(e->memory, e->codec, &e->message);
    return 0;
}

static void gather(sl_encoder *e, const sl_source *source, size_t start, size_t count, float *out) {
    const subset *s = e->memory;
    const float *block = NULL;
    size_t block_from = 0, done = 0;
    for (size_t w = start / SL_WORD; done < count; w++) {
        uint64_t word = word_from(s, w, start);
        size_t from = w * SL_WORD / SL_BLOCK * SL_BLOCK, left = e->codec->dimension - from;
        if (word != 0 && (block == NULL || block_from != from)) {
            block = sl_encoder_read(e, source, from, left < SL_BLOCK ? left : SL_BLOCK);
            block_from = from;
        }
        for (; word != 0 && done < count; word &= word - 1)
            out[done++] = block[w * SL_WORD % SL_BLOCK + (size_t)__builtin_ctzll(word)];
    }
}

static int encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer, sl_payload *out) {
    size_t start, count = part_entries(e->memory, e->codec, part, &start);
    gather(e, source, start, count, buffer);
    if (!sl_entries_finite(buffer, count))
        return SL_EDIVERGED;
    *out = (sl_payload){buffer, count * sizeof(float)};
    return 0;
}

static int check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    size_t left = d->codec->k - part * d->codec->part_elements;
    size_t count = left < d->codec->part_elements ? left : d->codec->part_elements;
    return payload.bytes == count * sizeof(float) && sl_entries_finite(payload.data, count) ? 0 : SL_EPROTO;
}

static void add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    const sl_codec *c = d->codec;
    subset *s = d->memory;
    prepare(s, c, &d->message);
    size_t start, count = part_entries(s, c, part, &start), done = 0;
    const float *values = payload.data;
    float scaled = c->config.scaled ? weight * (float)((double)c->dimension / (double)c->k) : weight;
    for (size_t w = start / SL_WORD; done < count; w++)
        for (uint64_t word = word_from(s, w, start); word != 0 && done < count; word &= word - 1)
            acc[w * SL_WORD + (size_t)__builtin_ctzll(word)] += scaled * values[done++];
}

const codec_ops sl_random_k_codec = {
    .quality = quality, .bits = bits, .check = sl_entries_check, .lay_out = lay_out, .encoder_bytes = subset_bytes,
    .decoder_bytes = subset_bytes, .begin = begin, .encode = encode, .check_part = check_part, .add = add};
