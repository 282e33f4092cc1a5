/* top_k.c - top-k: the k entries of largest magnitude of the whole vector, as they are; of equal
 * magnitudes the lower index.
 *
 * Contraction: E||C(v) - v||^2 <= (1 - k/d) ||v||^2 (Stich, Cordonnier, Jaggi: "Sparsified SGD with
 * Memory", NeurIPS 2018). A message has one of two forms, the one with fewer bits; k and d are
 * known to both sides, so that no count is sent:
 *   indices  k values of 32 bits, then k indices of ceil(log2 d) bits, increasing, packed from the
 *            low bit on. A part is a range of
 *            entries.
 *   bitmap   the values of a range of elements, then one bit for each element of the range. A part
 *            is a range of elements; how many
 *            values it has is told by its length, and by its bits.
 * Where indices have a coding (entropy.h), a message has the first form.
 */
#include <math.h>

#include "compress/lossless/entropy.h"
#include "compress/lossless/indices.h"
#include "compress/own_keys.h"
#include "compress/sparsification/entries.h"
#include "compress/sparsification/largest.h"

/* ---- what is promised ---- */

static uint64_t bits_as_indices(size_t k, size_t dimension) {
    return (uint64_t)k * (32 + sl_index_width(dimension));
}

static uint64_t bits_as_bitmap(size_t k, size_t dimension) {
    return dimension + UINT64_C(32) * k;
}

static double bits(const codec_ops *self, const sl_compressor_config *config, size_t dimension) {
    (void)self;
    size_t k = sl_entries_kept(config, dimension);
    if (config->coding != SL_ENTROPY_NONE)
        return 32.0 * (double)k +
               sl_entropy_bits(config->coding, k, dimension, sl_index_width(dimension), 0);
    return fmin((double)bits_as_indices(k, dimension), (double)bits_as_bitmap(k, dimension));
}

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    size_t k = sl_entries_kept(config, dimension);
    return (sl_quality){.unbiased = k == dimension,
                        .omega = k == dimension ? 0 : INFINITY,
                        .is_contractive = true,
                        .delta = (double)k / (double)dimension,
                        .takes_largest = true};
}

/* ---- layout ---- */

/* Entries of a part: a multiple of 8, so that indices end on a byte in all parts but the last. */
static void lay_out_indices(sl_codec *c, size_t part_bytes) {
    unsigned width = sl_index_width(c->dimension);
    c->sparse = true;
    c->part_elements = part_bytes * 8 / (32 + width) / 8 * 8;
    if (c->part_elements > c->k)
        c->part_elements = c->k;
    c->part_bytes_max = c->part_elements * sizeof(float) + (c->part_elements * width + 7) / 8;
    c->parts = (uint32_t)((c->k - 1) / c->part_elements + 1);
}

/* Elements of a part: any number of them may be among the k. */
static void lay_out_bitmap(sl_codec *c, size_t part_bytes) {
    size_t all_chosen = part_bytes * 8 / 33,
           bits_only =
               part_bytes > c->k * sizeof(float) ? (part_bytes - c->k * sizeof(float)) * 8 : 0;
    size_t elements = all_chosen > bits_only ? all_chosen : bits_only;
    size_t unit = elements >= SL_BLOCK ? SL_BLOCK
                                       : SL_WORD; /* 4096 bytes do not hold a block with its bits */
    c->part_elements = elements < c->dimension ? elements / unit * unit : c->dimension;
    c->part_bytes_max = (c->part_elements < c->k ? c->part_elements : c->k) * sizeof(float) +
                        (c->part_elements + 7) / 8;
    c->parts = (uint32_t)((c->dimension - 1) / c->part_elements + 1);
}

static void lay_out(sl_codec *c, size_t part_bytes) {
    c->k = sl_entries_kept(&c->config, c->dimension);
    if (c->config.coding != SL_ENTROPY_NONE ||
        bits_as_indices(c->k, c->dimension) <= bits_as_bitmap(c->k, c->dimension))
        lay_out_indices(c, part_bytes);
    else
        lay_out_bitmap(c, part_bytes);
}

static void describe(const sl_codec *c, sl_coding *out) {
    out->form = CODING_TOP_K;
    out->index_width = sl_index_width(c->dimension);
    out->room = out->room_last = c->k;
}

static size_t encoder_bytes(const sl_codec *c) {
    return sl_largest_room(c->k, c->dimension) * sizeof(uint64_t);
}

static int begin(sl_encoder *e, const sl_source *source) {
    return sl_largest_magnitudes(e, source, e->codec->k, e->memory);
}

/* ---- payloads ---- */

static void put_values(const uint64_t *entries, size_t count, uint8_t *out) {
    for (size_t i = 0; i < count; i++) {
        uint32_t value = sl_entry_value(entries[i]);
        memcpy(out + i * sizeof value, &value, sizeof value);
    }
}

/* The lowest of `count` entries whose index is not below `index`. */
static size_t first_from(const uint64_t *entries, size_t count, size_t index) {
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (sl_entry_index(entries[middle]) < index)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

static size_t encode_bitmap(const sl_encoder *e, uint32_t part, uint8_t *out) {
    const uint64_t *entries = e->memory;
    size_t from, elements;
    sl_codec_part_range(e->codec, part, &from, &elements);
    size_t first = first_from(entries, e->codec->k, from),
           count = first_from(entries, e->codec->k, from + elements) - first;
    uint8_t *bitmap = out + count * sizeof(float);
    put_values(entries + first, count, out);
    memset(bitmap, 0, (elements + 7) / 8);
    for (size_t i = first; i < first + count; i++) {
        size_t place = sl_entry_index(entries[i]) - from;
        bitmap[place / 8] = (uint8_t)(bitmap[place / 8] | 1u << place % 8);
    }
    return count * sizeof(float) + (elements + 7) / 8;
}

/* Entries [*first, *first + returned) are the part's. */
static size_t part_entries(const sl_codec *c, uint32_t part, size_t *first) {
    *first = part * c->part_elements;
    return c->k - *first < c->part_elements ? c->k - *first : c->part_elements;
}

static int encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                  sl_payload *out) {
    (void)source; /* begin has collected everything */
    const uint64_t *entries = e->memory;
    size_t bytes;
    if (e->codec->sparse) {
        size_t first, count = part_entries(e->codec, part, &first);
        put_values(entries + first, count, buffer);
        bytes = count * sizeof(float);
        bytes += sl_indices_put(entries + first, count, sl_index_width(e->codec->dimension),
                                (uint8_t *)buffer + bytes);
    } else {
        bytes = encode_bitmap(e, part, buffer);
    }
    *out = (sl_payload){buffer, bytes};
    return 0;
}

/* Up to 8 bytes from p on, of which `left` may be read. */
static uint64_t load(const uint8_t *p, size_t left) {
    uint64_t word = 0;
    memcpy(&word, p, left < sizeof word ? left : sizeof word);
    return word;
}

/* Of a part of so many entries: behind its values. */
static sl_indices read_indices(const sl_codec *c, sl_payload payload, size_t count) {
    const size_t values = count * sizeof(float);
    return (sl_indices){(const uint8_t *)payload.data + values, payload.bytes - values, count,
                        sl_index_width(c->dimension), 0};
}

static void numbers(const sl_codec *c, uint32_t part, const sl_payload *plain, part_numbers *out) {
    size_t first;
    (void)plain;
    *out = (part_numbers){.count = part_entries(c, part, &first),
                          .width = sl_index_width(c->dimension),
                          .elements = c->dimension,
                          .share = (double)c->k / (double)c->dimension};
    out->ahead = out->count * sizeof(float);
}

/* Indices leave room for the entries of the parts before and behind. */
static int check_indices(const sl_codec *c, uint32_t part, sl_payload payload) {
    size_t first, count = part_entries(c, part, &first), behind = c->k - first - count;
    return payload.bytes >= count * sizeof(float) &&
                   sl_indices_allowed(read_indices(c, payload, count), first,
                                      c->dimension - behind) &&
                   sl_entries_finite(payload.data, count)
               ? 0
               : SL_EPROTO;
}

FOR_EACH_CPU(int, check_bitmap, (const sl_codec *c, uint32_t part, sl_payload payload),
             (c, part, payload)) {
    size_t from, elements;
    sl_codec_part_range(c, part, &from, &elements);
    size_t bitmap_bytes = (elements + 7) / 8;
    if (payload.bytes < bitmap_bytes || (payload.bytes - bitmap_bytes) % sizeof(float) != 0)
        return SL_EPROTO;
    size_t count = (payload.bytes - bitmap_bytes) / sizeof(float), set = 0;
    const uint8_t *bitmap = (const uint8_t *)payload.data + count * sizeof(float);
    for (size_t at = 0; at < bitmap_bytes; at += 8)
        set += (size_t)__builtin_popcountll(load(bitmap + at, bitmap_bytes - at));
    bool unused_set = elements % 8 != 0 && bitmap[bitmap_bytes - 1] >> elements % 8 != 0;
    bool possible = count <= c->k && c->k - count <= c->dimension - elements;
    return set == count && possible && !unused_set && sl_entries_finite(payload.data, count)
               ? 0
               : SL_EPROTO;
}

static int check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    return d->codec->sparse ? check_indices(d->codec, part, payload)
                            : check_bitmap(d->codec, part, payload);
}

FOR_EACH_CPU(void, add_indices,
             (const sl_codec *c, uint32_t part, sl_payload payload, float weight, float *acc),
             (c, part, payload, weight, acc)) {
    size_t first, count = part_entries(c, part, &first);
    const sl_indices all = read_indices(c, payload, count);
    const float *values = payload.data;
    for (size_t at = 0; at < count; at += SL_BATCH) {
        size_t n = count - at < SL_BATCH ? count - at : SL_BATCH;
        uint64_t indices[SL_BATCH];
        sl_indices_get(all, at, n, indices);
        for (size_t i = 0; i < n; i++)
            __builtin_prefetch(acc + indices[i], 1);
        for (size_t i = 0; i < n; i++)
            acc[indices[i]] += weight * values[at + i];
    }
}

FOR_EACH_CPU(void, add_bitmap,
             (const sl_codec *c, uint32_t part, sl_payload payload, float weight, float *acc),
             (c, part, payload, weight, acc)) {
    size_t from, elements;
    sl_codec_part_range(c, part, &from, &elements);
    size_t bitmap_bytes = (elements + 7) / 8;
    const uint8_t *bitmap = (const uint8_t *)payload.data + (payload.bytes - bitmap_bytes);
    const float *value = payload.data;
    for (size_t at = 0; at < bitmap_bytes; at += 8)
        for (uint64_t word = load(bitmap + at, bitmap_bytes - at); word != 0; word &= word - 1)
            acc[from + at * 8 + (size_t)__builtin_ctzll(word)] += weight * *value++;
}

static void add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    if (d->codec->sparse)
        add_indices(d->codec, part, payload, weight, acc);
    else
        add_bitmap(d->codec, part, payload, weight, acc);
}

static const sl_key keys[] = {
    SL_ROWS_ENTRIES(""),
    {SL_ROW_CODING_OF_INDICES},
    SL_KEYS_END,
};

const codec_ops sl_top_k_codec = {.keys = keys,
                                  .codings = "golomb elias",
                                  .quality = quality,
                                  .bits = bits,
                                  .check = sl_entries_check,
                                  .lay_out = lay_out,
                                  .describe = describe,
                                  .encoder_bytes = encoder_bytes,
                                  .begin = begin,
                                  .encode = encode,
                                  .check_part = check_part,
                                  .add = add,
                                  .numbers = numbers};
