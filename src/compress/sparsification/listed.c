/* listed.c - see listed.h. */
#include "compress/sparsification/listed.h"

#include "compress/lossless/indices.h"
#include "compress/sparsification/entries.h"

enum { VALUE_BITS = 32 };

unsigned sl_listed_bits(size_t elements) {
    return VALUE_BITS + sl_index_width(elements);
}

size_t sl_listed_bytes(size_t entries, size_t elements) {
    return entries * sizeof(float) + (entries * sl_index_width(elements) + 7) / 8;
}

size_t sl_listed_put(const uint64_t *indices, size_t entries, size_t elements, uint8_t *out) {
    const size_t values = entries * sizeof(float);
    return values + sl_indices_put(indices, entries, sl_index_width(elements), out + values);
}

static sl_indices indices_of(sl_payload payload, size_t elements) {
    const size_t count = payload.bytes * 8 / sl_listed_bits(elements),
                 values = count * sizeof(float);
    return (sl_indices){(const uint8_t *)payload.data + values, payload.bytes - values, count,
                        sl_index_width(elements), 0};
}

bool sl_listed_allowed(sl_payload payload, size_t elements) {
    const sl_indices indices = indices_of(payload, elements);
    return sl_indices_allowed(indices, 0, elements) &&
           sl_entries_finite(payload.data, indices.count);
}

void sl_listed_add(sl_payload payload, size_t elements, float weight, float *acc) {
    uint64_t indices[SL_BATCH];
    const float *values = payload.data;
    const sl_indices all = indices_of(payload, elements);
    for (size_t at = 0; at < all.count; at += SL_BATCH) {
        const size_t n = all.count - at < SL_BATCH ? all.count - at : SL_BATCH;
        sl_indices_get(all, at, n, indices);
        for (size_t i = 0; i < n; i++)
            acc[indices[i]] += weight * values[at + i];
    }
}
