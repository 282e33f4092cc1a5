/* random_k.c - random-k: a uniform subset of k of the d elements, as they are, or times d/k; and
 * shared-mask: one for all nodes in each exchange, as they are (Tang, Shi, Chu, SAPS-PSGD, 2020).
 *
 * Unscaled: E||C(v) - v||^2 = (1 - k/d) ||v||^2; scaled: unbiased with omega = d/k - 1 (Stich,
 * Cordonnier, Jaggi, NeurIPS 2018; Koloskova, Stich, Jaggi, ICML 2019). The subset follows from the
 * message's random numbers and is not sent: a message is k values of 32 bits in the order of their
 * indices, a part a range of them.
 *
 * Numbers below d are drawn, as sl_rng_below draws them, from the stream of the message's key,
 * until k different ones have been drawn: a bitmap of d bits tells which. Where k > d/2 those that
 * are left out are drawn. Sender and receiver build the bitmap once a message, and find where each
 * part begins.
 *
 * shared-mask in cyclic order draws nothing: with B = round(d/k), or round(1/fraction), the subset
 * of exchange t is block b = (t - 1) mod B, elements [floor(db/B), floor(d(b + 1)/B)). All
 * coordinates take their turn in B exchanges; no single message has a bound.
 */
#include <math.h>

#include "compress/own_keys.h"
#include "compress/sparsification/entries.h"
#include "starling/rng.h"

enum { DRAWN_AT_ONCE = 64 }; /* blocks of random numbers */

typedef struct subset {
    sl_message message; /* whose it is, if `ready` */
    bool ready;
    uint64_t words[]; /* the bitmap: sl_words(d), then the element at which each part begins */
} subset;

static bool is_cyclic(const sl_compressor_config *config) {
    return config->order == SL_ORDER_CYCLIC;
}

static size_t blocks(const sl_compressor_config *config, size_t dimension) {
    const double share = config->k > 0 ? (double)config->k / (double)dimension : config->fraction;
    const double count = round(1 / share);
    return count < (double)dimension ? (size_t)count : dimension;
}

/* Of the longest message. */
static size_t entries_kept(const sl_compressor_config *config, size_t dimension) {
    return is_cyclic(config) ? (dimension - 1) / blocks(config, dimension) + 1
                             : sl_entries_kept(config, dimension);
}

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    size_t k = entries_kept(config, dimension);
    double kept = (double)k / (double)dimension, omega = 1 / kept - 1;
    if (k == dimension)
        return (sl_quality){.unbiased = true, .omega = 0, .is_contractive = true, .delta = 1};
    if (is_cyclic(config))
        return (sl_quality){.omega = INFINITY};
    if (config->scaled)
        return (sl_quality){.unbiased = true,
                            .omega = omega,
                            .is_contractive = omega < 1,
                            .delta = omega < 1 ? 1 - omega : 0};
    return (sl_quality){
        .unbiased = false, .omega = INFINITY, .is_contractive = true, .delta = kept};
}

static double bits(const codec_ops *self, const sl_compressor_config *config, size_t dimension) {
    (void)self;
    return 32.0 * (double)entries_kept(config, dimension);
}

static void lay_out(sl_codec *c, size_t part_bytes) {
    c->sparse = true;
    c->k = entries_kept(&c->config, c->dimension);
    c->part_elements = part_bytes / sizeof(float) < c->k ? part_bytes / sizeof(float) : c->k;
    c->part_bytes_max = c->part_elements * sizeof(float);
    c->parts = (uint32_t)((c->k - 1) / c->part_elements + 1);
}

static float value_factor(const sl_codec *c) {
    return c->config.scaled ? (float)((double)c->dimension / (double)c->k) : 1;
}

/* Cyclic order has no kernel. */
static void describe(const sl_codec *c, sl_coding *out) {
    out->form = is_cyclic(&c->config) ? CODING_DENSE : CODING_RANDOM_K;
    out->code = CODE_NONE;
    out->value_factor = value_factor(c);
}

static size_t subset_bytes(const sl_codec *c) {
    return sizeof(subset) + (sl_words(c->dimension) + c->parts) * sizeof(uint64_t);
}

/* ---- the subset ---- */

FOR_EACH_CPU(void, draw,
             (uint64_t * words, size_t count, uint32_t dimension, const sl_message *message),
             (words, count, dimension, message)) {
    const sl_rng_key key = sl_message_key(message);
    const uint32_t rejected = -dimension % dimension; /* see sl_rng_below */
    uint32_t numbers[4 * DRAWN_AT_ONCE], block = 0;
    for (size_t drawn = 0; drawn < count; block += DRAWN_AT_ONCE) {
        sl_rng_blocks(&key, block, DRAWN_AT_ONCE, numbers);
        for (size_t i = 0; i < 4 * DRAWN_AT_ONCE && drawn < count; i++) {
            uint64_t product = (uint64_t)numbers[i] * dimension;
            if ((uint32_t)product < rejected)
                continue;
            size_t index = product >> 32;
            uint64_t word = words[index / SL_WORD];
            drawn += ~word >> index % SL_WORD & 1;
            words[index / SL_WORD] = word | UINT64_C(1) << index % SL_WORD;
        }
    }
}

static void invert(uint64_t *words, size_t dimension) {
    for (size_t w = 0; w < sl_words(dimension); w++)
        words[w] = ~words[w];
    words[sl_words(dimension) - 1] &= sl_low_bits((dimension - 1) % SL_WORD + 1);
}

static void draw_subset(uint64_t *words, const sl_codec *c, const sl_message *message) {
    const bool others = c->k > c->dimension / 2;
    draw(words, others ? c->dimension - c->k : c->k, (uint32_t)c->dimension, message);
    if (others)
        invert(words, c->dimension);
}

/* Place of the n-th bit set, from 0. */
static inline size_t nth_bit(uint64_t word, size_t n) {
    for (; n > 0; n--)
        word &= word - 1;
    return (size_t)__builtin_ctzll(word);
}

FOR_EACH_CPU(void, find_parts, (const sl_codec *c, const uint64_t *words, uint64_t *starts),
             (c, words, starts)) {
    size_t entries = 0;
    uint32_t part = 0;
    for (size_t w = 0; w < sl_words(c->dimension); w++) {
        size_t set = (size_t)__builtin_popcountll(words[w]);
        for (; part < c->parts && part * c->part_elements < entries + set; part++)
            starts[part] = w * SL_WORD + nth_bit(words[w], part * c->part_elements - entries);
        entries += set;
    }
}

typedef struct block {
    size_t from, end;
} block;

/* Of an exchange, in cyclic order. */
static block block_of(const sl_codec *c, const sl_message *message) {
    const uint64_t d = c->dimension, count = blocks(&c->config, c->dimension),
                   b = (message->exchange - 1) % count;
    return (block){(size_t)(d * b / count), (size_t)(d * (b + 1) / count)};
}

static void mark(uint64_t *words, block b) {
    for (size_t w = b.from / SL_WORD; w * SL_WORD < b.end; w++) {
        const size_t first = w * SL_WORD;
        words[w] = b.end - first < SL_WORD ? sl_low_bits(b.end - first) : UINT64_MAX;
        words[w] &= first < b.from ? ~sl_low_bits(b.from - first) : UINT64_MAX;
    }
}

/* In cyclic order messages differ by one: the last part may be empty. */
static size_t part_entries(const sl_codec *c, const sl_message *message, uint32_t part) {
    const block b = is_cyclic(&c->config) ? block_of(c, message) : (block){0, c->k};
    const size_t before = part * c->part_elements,
                 left = b.end - b.from > before ? b.end - b.from - before : 0;
    return left < c->part_elements ? left : c->part_elements;
}

static void prepare(subset *s, const sl_codec *c, const sl_message *message) {
    if (s->ready && sl_message_same(&s->message, message))
        return;
    memset(s->words, 0, sl_words(c->dimension) * sizeof(uint64_t));
    if (is_cyclic(&c->config))
        mark(s->words, block_of(c, message));
    else
        draw_subset(s->words, c, message);
    find_parts(c, s->words, s->words + sl_words(c->dimension));
    s->message = *message;
    s->ready = true;
}

/* A part's elements, in order. */
static sl_walk walk_part(const subset *s, const sl_codec *c, uint32_t part) {
    return sl_walk_open(s->words, c->dimension, s->words[sl_words(c->dimension) + part],
                        part_entries(c, &s->message, part));
}

/* ---- payloads ---- */

static int begin(sl_encoder *e, const sl_source *source) {
    (void)source;
    prepare(e->memory, e->codec, &e->message);
    return 0;
}

static int encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                  sl_payload *out) {
    sl_walk walk = walk_part(e->memory, e->codec, part);
    sl_walk_gather(walk, e, source, 0, buffer);
    if (!sl_entries_finite(buffer, walk.left))
        return SL_EDIVERGED;
    *out = (sl_payload){buffer, walk.left * sizeof(float)};
    return 0;
}

static int check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    const size_t count = part_entries(d->codec, &d->message, part);
    return payload.bytes == count * sizeof(float) && sl_entries_finite(payload.data, count)
               ? 0
               : SL_EPROTO;
}

static void add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    const sl_codec *c = d->codec;
    prepare(d->memory, c, &d->message);
    sl_walk_scatter(walk_part(d->memory, c, part), weight * value_factor(c), payload.data, acc);
}

#define SUBSET_CODEC                                                                               \
    .quality = quality, .bits = bits, .check = sl_entries_check, .lay_out = lay_out,               \
    .describe = describe, .encoder_bytes = subset_bytes, .decoder_bytes = subset_bytes,            \
    .begin = begin, .encode = encode, .check_part = check_part, .add = add, .reads_drawn = true

static const char *const orders[] = {"random", "cyclic", NULL};
static const sl_key random_k_keys[] = {
    SL_ROWS_ENTRIES(""),
    {SL_ROW_SCALED},
    {SL_ROW_CONTRACTIVE},
    SL_KEYS_END,
};
static const sl_key shared_mask_keys[] = {
    SL_ROWS_ENTRIES(""),
    {SL_OWN_CHOICE(order, orders), .fallback = "\"random\"",
     .help = "coordinates at random, or block after block of 1/fraction blocks"},
    SL_KEYS_END,
};

const codec_ops sl_random_k_codec = {.keys = random_k_keys, SUBSET_CODEC};
const codec_ops sl_shared_mask_codec = {
    .keys = shared_mask_keys, .draws_for_all = true, SUBSET_CODEC};
