/* nonzeros.c - a vector as it is, of which only what is not 0 is sent: sums of sparse vectors on
 * their way (Renggli and others: "SparCML: High-Performance Sparse Communication for Machine
 * Learning", SC 2019).
 *
 * A part is a range of elements: those that are not 0 (listed.h), or, where that is not shorter,
 * all of them, float32. The length tells which.
 */
#include <string.h>

#include "base/kernels.h"
#include "compress/sparsification/entries.h"
#include "compress/sparsification/listed.h"

/* As many elements as it has room for. */
static void lay_out(sl_codec *c, size_t part_bytes) {
    const size_t n = part_bytes / sizeof(float) / SL_BLOCK * SL_BLOCK;
    c->part_elements = n < c->dimension ? n : c->dimension;
    c->part_bytes_max = c->part_elements * sizeof(float);
    c->parts = (uint32_t)((c->dimension - 1) / c->part_elements + 1);
}

/* ---- encoding ---- */

/* Of a part; keeping writes one behind the last. */
typedef struct room {
    float values[SL_BLOCK + 1];
    uint64_t indices[];
} room;

static size_t encoder_bytes(const sl_codec *c) {
    return sizeof(room) + (c->part_elements + 1) * sizeof(uint64_t);
}

FOR_EACH_CPU(size_t, count_in, (const float *v, size_t n), (v, n)) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += v[i] != 0;
    return count;
}

/* `index` is the first one's; returns how many. */
FOR_EACH_CPU(size_t, keep,
             (const float *v, size_t n, size_t index, float *values, uint64_t *indices),
             (v, n, index, values, indices)) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        values[kept] = v[i];
        indices[kept] = index + i;
        kept += v[i] != 0;
    }
    return kept;
}

static size_t block_at(size_t at, size_t end) {
    return end - at < SL_BLOCK ? end - at : (size_t)SL_BLOCK;
}

static size_t list(sl_encoder *e, const sl_source *source, size_t from, size_t count,
                   uint8_t *out) {
    room *r = e->memory;
    size_t kept = 0;
    for (size_t at = 0, n; at < count; at += n) {
        n = block_at(at, count);
        const float *v = sl_encoder_read(e, source, from + at, n);
        const size_t some = keep(v, n, at, r->values, r->indices + kept);
        memcpy(out + kept * sizeof(float), r->values, some * sizeof(float));
        kept += some;
    }
    return sl_listed_put(r->indices, kept, count, out);
}

static int encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                  sl_payload *out) {
    size_t from, count, entries = 0;
    sl_codec_part_range(e->codec, part, &from, &count);
    for (size_t at = 0; at < count; at += SL_BLOCK) {
        const size_t n = block_at(at, count);
        entries += count_in(sl_encoder_read(e, source, from + at, n), n);
    }
    const size_t whole = count * sizeof(float);
    const bool lists = sl_listed_bytes(entries, count) < whole;
    *out = (sl_payload){buffer, lists ? list(e, source, from, count, buffer) : whole};
    for (size_t at = 0; !lists && at < count; at += SL_BLOCK) {
        const size_t n = block_at(at, count);
        memcpy((float *)buffer + at, sl_encoder_read(e, source, from + at, n), n * sizeof(float));
    }
    return sl_entries_finite(buffer, lists ? entries : count) ? 0 : SL_EDIVERGED;
}

/* ---- decoding ---- */

static int check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    const size_t whole = count * sizeof(float);
    const bool right = payload.bytes == whole
                           ? sl_entries_finite(payload.data, count)
                           : payload.bytes < whole && sl_listed_allowed(payload, count);
    return right ? 0 : SL_EPROTO;
}

static void add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    if (payload.bytes < count * sizeof(float))
        sl_listed_add(payload, count, weight, acc + from);
    else
        sl_vec_cpu()->combine(acc + from, (const float *const[]){acc + from, payload.data},
                              (const float[]){1, weight}, 2, count);
}

const codec_ops sl_nonzeros_codec = {.quality = sl_exact_quality,
                                     .bits = sl_exact_bits,
                                     .lay_out = lay_out,
                                     .describe = sl_codec_no_kernel,
                                     .encoder_bytes = encoder_bytes,
                                     .encode = encode,
                                     .check_part = check_part,
                                     .add = add};
