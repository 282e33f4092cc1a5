/* kept.c - see kept.h. */
#include "agent/kept.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/round_up.h"
#include "starling/vec.h"

int sl_kept_open(sl_kept *out, sl_fabric *fabric, uint32_t count, size_t part_bytes,
                 sl_error *error) {
    const size_t stride = sl_round_up(part_bytes, SL_VEC_ALIGNMENT);
    sl_kept k = {.count = count, .free_count = count};
    *out = (sl_kept){0};
    if (count == 0)
        return 0;
    k.parts = calloc(count, sizeof *k.parts);
    k.free = calloc(count, sizeof *k.free);
    k.memory = aligned_alloc(SL_VEC_ALIGNMENT, count * stride);
    if (k.parts == NULL || k.free == NULL || k.memory == NULL) {
        sl_kept_close(&k);
        return sl_fail(error, SL_ENOMEM, "out of memory for copies of %u parts", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        k.parts[i].copy = k.memory + i * stride;
        k.free[i] = count - 1 - i;
    }
    *out = k;
    return sl_fabric_register(fabric, k.memory, count * stride, -1, error);
}

void sl_kept_close(sl_kept *k) {
    free(k->parts);
    free(k->free);
    free(k->memory);
    *k = (sl_kept){0};
}

uint32_t sl_kept_put(sl_kept *k, const sl_frame *frame, const void *payload, bool answered) {
    assert(k->free_count > 0);
    const uint32_t place = k->free[--k->free_count];
    sl_kept_part *part = &k->parts[place];
    *part = (sl_kept_part){
        .frame = *frame, .copy = part->copy, .payload = payload, .answered = answered};
    k->stands++;
    return place;
}

static bool stands(const sl_kept_part *part) {
    return part->payload != part->copy;
}

void sl_kept_copy(sl_kept *k, uint32_t place) {
    sl_kept_part *part = &k->parts[place];
    if (!stands(part))
        return;
    memcpy(part->copy, part->payload, part->frame.payload_bytes);
    part->payload = part->copy;
    k->stands--;
}

static bool is_other(const sl_kept_part *part, uint64_t exchange, uint32_t step) {
    return part->users > 0 && stands(part) &&
           (part->frame.exchange != exchange || (part->frame.step != step && !part->answered));
}

bool sl_kept_borrows(const sl_kept *k, uint64_t exchange, uint32_t step) {
    uint32_t i = 0;
    while (k->stands > 0 && i < k->count && !is_other(&k->parts[i], exchange, step))
        i++;
    return k->stands > 0 && i < k->count;
}

void sl_kept_copy_others(sl_kept *k, uint64_t exchange, uint32_t step) {
    for (uint32_t i = 0; i < k->count && k->stands > 0; i++)
        if (is_other(&k->parts[i], exchange, step))
            sl_kept_copy(k, i);
}

void sl_kept_drop(sl_kept *k, uint32_t place) {
    sl_kept_part *part = &k->parts[place];
    assert(part->users > 0);
    if (--part->users > 0)
        return;
    k->stands -= stands(part);
    k->free[k->free_count++] = place;
}
