/* marks.c - parts and bits of the compressors that mark elements; see marks.h. */
#include "compress/hybrid/marks.h"

#include <string.h>

#include "base/kernels.h"
#include "compress/lossless/entropy.h"
#include "compress/lossless/indices.h"
#include "compress/sparsification/entries.h"
#include "compress/sparsification/largest.h"
#include "element/sum.h"

static const marks_coder *coder_of(const sl_codec *c) {
    return c->ops->marks;
}

static unsigned number_width(const marks_coder *coder, size_t elements) {
    return sl_index_width(elements) + coder->two;
}

/* Where the number of entries is not known, that of all elements. */
double sl_marks_bits(const codec_ops *self, const sl_compressor_config *config, size_t dimension) {
    const marks_coder *coder = self->marks;
    const unsigned width = number_width(coder, dimension);
    if (coder->entries == NULL)
        return 32.0 * coder->floats + (double)dimension * width;
    return 32.0 * coder->floats + sl_entropy_bits(config->coding, coder->entries(config, dimension),
                                                  dimension, width, coder->two);
}

/* ---- parts ---- */

static size_t packed_bytes(size_t count, unsigned width) {
    return (count * width + 7) / 8;
}

/* Entries of a part: a multiple of 8, so that parts but the last have no bits left over. */
static void lay_out_entries(sl_codec *c, size_t part_bytes) {
    const unsigned width = number_width(coder_of(c), c->dimension);
    c->sparse = true;
    c->k = coder_of(c)->entries(&c->config, c->dimension);
    const size_t bits = (part_bytes - coder_of(c)->floats * sizeof(float)) * 8;
    c->part_elements = bits < c->k * width ? bits / width / 8 * 8 : c->k;
    c->parts = (uint32_t)((c->k - 1) / c->part_elements + 1);
    c->part_bytes_max = coder_of(c)->floats * sizeof(float) + packed_bytes(c->part_elements, width);
}

/* Elements of a part: as many as may all be marked. A coding says how many there are. */
static void lay_out_ranges(sl_codec *c, size_t part_bytes) {
    const size_t counted = c->config.coding != SL_ENTROPY_NONE ? sizeof(uint32_t) : 0;
    size_t n = SL_BLOCK, room = part_bytes - coder_of(c)->floats * sizeof(float) - counted;
    while (n < c->dimension &&
           packed_bytes(n + SL_BLOCK, number_width(coder_of(c), n + SL_BLOCK)) <= room)
        n += SL_BLOCK;
    c->part_elements = n < c->dimension ? n : c->dimension;
    c->parts = (uint32_t)((c->dimension - 1) / c->part_elements + 1);
    c->part_bytes_max = part_bytes - room +
                        packed_bytes(c->part_elements, number_width(coder_of(c), c->part_elements));
}

void sl_marks_lay_out(sl_codec *c, size_t part_bytes) {
    if (coder_of(c)->entries != NULL)
        lay_out_entries(c, part_bytes);
    else
        lay_out_ranges(c, part_bytes);
}

/* Of a part: the elements that its numbers count from, and how many; and for entries of a message,
 * how many there are, and how many elements are left for those before and behind. */
typedef struct part_place {
    size_t from, elements, first, count, behind;
} part_place;

static part_place place_of(const sl_codec *c, uint32_t part) {
    part_place p = {.elements = c->dimension};
    if (!c->sparse) {
        sl_codec_part_range(c, part, &p.from, &p.elements);
        return p;
    }
    p.first = part * c->part_elements;
    p.count = c->k - p.first < c->part_elements ? c->k - p.first : c->part_elements;
    p.behind = c->k - p.first - p.count;
    return p;
}

static unsigned width_of(const sl_codec *c) {
    return number_width(coder_of(c), c->sparse ? c->dimension : c->part_elements);
}

void sl_marks_describe(const sl_codec *c, sl_coding *out) {
    if (coder_of(c)->form == CODING_PLAIN) {
        sl_codec_no_kernel(c, out);
        return;
    }
    out->form = coder_of(c)->form;
    out->room = out->room_last = c->part_elements;
    out->tau = (float)c->config.threshold;
    out->index_width = out->width_last = width_of(c);
}

/* ---- encoding ---- */

size_t sl_marks_encoder_bytes(const sl_codec *c) {
    const size_t elements = c->sparse ? c->dimension : c->part_elements;
    return sizeof(marks) + coder_of(c)->room(c, elements) * sizeof(uint64_t);
}

int sl_marks_begin(sl_encoder *e, const sl_source *source) {
    const sl_codec *c = e->codec;
    return c->sparse ? coder_of(c)->mark(e, source, 0, c->dimension, e->memory) : 0;
}

int sl_marks_encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                    sl_payload *out) {
    const sl_codec *c = e->codec;
    const size_t ahead = coder_of(c)->floats * sizeof(float);
    part_place p = place_of(c, part);
    marks *m = e->memory;
    if (!c->sparse) {
        const int result = coder_of(c)->mark(e, source, p.from, p.elements, m);
        if (result != 0)
            return result;
        p.count = m->count;
    }
    memcpy(buffer, m->values, ahead);
    const size_t bytes =
        sl_indices_put(m->numbers + p.first, p.count, width_of(c), (uint8_t *)buffer + ahead);
    *out = (sl_payload){buffer, ahead + bytes};
    return 0;
}

/* ---- decoding ---- */

/* A number that is 0 behind another is none, but bits left over: fewer than a number's, or of a
 * byte. */
static size_t count_in(sl_indices s) {
    uint64_t last;
    for (s.count = s.bytes * 8 / s.width; s.count > 1; s.count--) {
        sl_indices_get(s, s.count - 1, 1, &last);
        if (last != 0)
            break;
    }
    return s.count;
}

/* The numbers of a payload that has the values. */
static sl_indices numbers_of(const sl_codec *c, const part_place *p, sl_payload payload) {
    const size_t ahead = coder_of(c)->floats * sizeof(float);
    sl_indices s = {(const uint8_t *)payload.data + ahead, payload.bytes - ahead, p->count,
                    width_of(c), coder_of(c)->two};
    if (!c->sparse)
        s.count = count_in(s);
    return s;
}

void sl_marks_numbers(const sl_codec *c, uint32_t part, const sl_payload *plain,
                      part_numbers *out) {
    const part_place p = place_of(c, part);
    *out = (part_numbers){.ahead = coder_of(c)->floats * sizeof(float),
                          .counted = !c->sparse,
                          .width = width_of(c),
                          .beside = coder_of(c)->two,
                          .elements = p.elements,
                          .share = (double)c->k / (double)c->dimension};
    if (c->sparse)
        out->count = p.count;
    else
        out->count = plain != NULL ? numbers_of(c, &p, *plain).count : p.elements;
}

int sl_marks_check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    const sl_codec *c = d->codec;
    const part_place p = place_of(c, part);
    if (payload.bytes < coder_of(c)->floats * sizeof(float))
        return SL_EPROTO;
    return sl_indices_allowed(numbers_of(c, &p, payload), p.first, p.elements - p.behind) &&
                   sl_entries_finite(payload.data, coder_of(c)->floats)
               ? 0
               : SL_EPROTO;
}

FOR_EACH_CPU(void, add_marks, (sl_indices all, const float values[2], float *acc),
             (all, values, acc)) {
    for (size_t at = 0; at < all.count; at += SL_BATCH) {
        const size_t n = all.count - at < SL_BATCH ? all.count - at : SL_BATCH;
        uint64_t numbers[SL_BATCH];
        sl_indices_get(all, at, n, numbers);
        for (size_t i = 0; i < n; i++)
            __builtin_prefetch(acc + (numbers[i] >> all.beside), 1);
        for (size_t i = 0; i < n; i++)
            acc[numbers[i] >> all.beside] += values[numbers[i] & all.beside];
    }
}

void sl_marks_add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    const sl_codec *c = d->codec;
    const part_place p = place_of(c, part);
    const float *sent = payload.data;
    const unsigned floats = coder_of(c)->floats;
    float values[2];
    values[0] = weight * (floats > 0 ? sent[0] : (float)c->config.threshold);
    values[1] = floats > 1 ? weight * sent[1] : -values[0];
    add_marks(numbers_of(c, &p, payload), values, acc + p.from);
}

/* ---- bricks ---- */

FOR_EACH_CPU(void, to_signs, (uint64_t * entries, size_t count, size_t from),
             (entries, count, from)) {
    for (size_t i = 0; i < count; i++)
        entries[i] = (sl_entry_index(entries[i]) - from) << 1 | entries[i] >> 63;
}

void sl_marks_of_signs(uint64_t *entries, size_t count, size_t from) {
    to_signs(entries, count, from);
}

FOR_EACH_CPU(double, sum, (const uint64_t *entries, size_t count, uint32_t mask),
             (entries, count, mask)) {
    double lanes[SUM_LANES] = {0};
    size_t i = 0;
    for (; i + SUM_LANES <= count; i += SUM_LANES)
        for (size_t l = 0; l < SUM_LANES; l++)
            lanes[l] += (double)float_of(sl_entry_value(entries[i + l]) & mask);
    for (size_t l = 0; i + l < count; l++)
        lanes[l] += (double)float_of(sl_entry_value(entries[i + l]) & mask);
    return sum_lanes(lanes);
}

double sl_marks_sum(const uint64_t *entries, size_t count, bool magnitudes) {
    const uint32_t mask = magnitudes ? FLOAT_MAGNITUDE : UINT32_MAX;
    const size_t tiles = sum_tiles(count);
    double folds[SUM_FOLDS];
    for (size_t t = 0; t < tiles; t++) {
        const size_t left = count - t * SUM_TILE;
        sum_fold(folds, t, sum(entries + t * SUM_TILE, left < SUM_TILE ? left : SUM_TILE, mask));
    }
    return sum_in_order(folds, sum_folds(tiles));
}

int sl_marks_check_half(const sl_compressor_config *config, size_t dimension, sl_error *error) {
    const int result = sl_entries_check(config, dimension, error);
    const size_t k = result == 0 ? sl_entries_kept(config, dimension) : 0;
    if (result == 0 && k > (dimension + 1) / 2)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.%s: makes %zu entries, which are looked for at both "
                       "ends of the %zu values; at most half can be kept",
                       config->k > 0 ? "k" : "fraction", k, dimension);
    return result;
}
