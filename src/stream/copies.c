/* copies.c - see copies.h. */
#include "stream/copies.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/round_up.h"
#include "starling/vec.h"

static size_t stride_of(size_t part_bytes) {
    return sl_round_up(part_bytes, SL_VEC_ALIGNMENT);
}

size_t sl_copies_bytes(uint32_t count, size_t part_bytes) {
    return count * stride_of(part_bytes);
}

int sl_copies_open(sl_copies *out, uint32_t count, size_t part_bytes, uint8_t *memory,
                   sl_error *error) {
    const size_t stride = stride_of(part_bytes);
    sl_copies k = {.count = count,
                   .free_count = count,
                   .memory_bytes = sl_copies_bytes(count, part_bytes),
                   .is_given = memory != NULL};
    *out = (sl_copies){0};
    if (count == 0)
        return 0;
    k.parts = calloc(count, sizeof *k.parts);
    k.free = calloc(count, sizeof *k.free);
    k.memory = memory != NULL ? memory : aligned_alloc(SL_VEC_ALIGNMENT, k.memory_bytes);
    if (k.parts == NULL || k.free == NULL || k.memory == NULL) {
        sl_copies_close(&k);
        return sl_fail(error, SL_ENOMEM, "out of memory for copies of %u parts", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        k.parts[i].copy = k.memory + i * stride;
        k.free[i] = count - 1 - i;
    }
    *out = k;
    return 0;
}

void sl_copies_close(sl_copies *k) {
    free(k->parts);
    free(k->free);
    if (!k->is_given)
        free(k->memory);
    *k = (sl_copies){0};
}

uint32_t sl_copies_add(sl_copies *k, const sl_frame *frame, const void *payload, bool answered) {
    assert(k->free_count > 0);
    const uint32_t place = k->free[--k->free_count];
    sl_copy *part = &k->parts[place];
    *part =
        (sl_copy){.frame = *frame, .copy = part->copy, .payload = payload, .answered = answered};
    k->stands++;
    return place;
}

static bool stands(const sl_copy *part) {
    return part->payload != part->copy && part->kept == NULL;
}

bool sl_copies_is(const sl_copies *k, uint32_t place, const sl_frame *frame) {
    const sl_copy *part = &k->parts[place];
    return part->users > 0 && part->frame.view == frame->view &&
           part->frame.exchange == frame->exchange && part->frame.step == frame->step &&
           part->frame.part == frame->part && part->frame.payload_bytes == frame->payload_bytes;
}

void sl_copies_make(sl_copies *k, uint32_t place) {
    sl_copy *part = &k->parts[place];
    if (!stands(part))
        return;
    memcpy(part->copy, part->payload, part->frame.payload_bytes);
    k->copied += part->frame.payload_bytes;
    part->payload = part->copy;
    k->stands--;
}

void sl_copies_keep(sl_copies *k, uint32_t place) {
    sl_copy *part = &k->parts[place];
    if (part->kept == NULL)
        k->stands--;
    part->kept = part->payload;
}

void sl_copies_fetch(sl_copies *k, uint32_t place, const sl_vec_ops *device) {
    sl_copy *part = &k->parts[place];
    assert(part->frame.payload_bytes <= k->memory_bytes / k->count);
    if (part->payload == part->kept) {
        device->copy_out(part->copy, part->kept, part->frame.payload_bytes);
        k->copied += part->frame.payload_bytes;
    }
    part->payload = part->copy;
}

bool sl_copies_keep_any(const sl_copies *k, const uint8_t *memory, size_t bytes) {
    for (uint32_t i = 0; i < k->count; i++)
        if (k->parts[i].users > 0 && sl_copies_keeps(k, i, memory, bytes))
            return true;
    return false;
}

static bool is_other(const sl_copy *part, uint64_t exchange, uint32_t step) {
    return part->users > 0 && stands(part) &&
           (part->frame.exchange != exchange || (part->frame.step != step && !part->answered));
}

bool sl_copies_lack_others(const sl_copies *k, uint64_t exchange, uint32_t step) {
    uint32_t i = 0;
    while (k->stands > 0 && i < k->count && !is_other(&k->parts[i], exchange, step))
        i++;
    return k->stands > 0 && i < k->count;
}

void sl_copies_make_others(sl_copies *k, uint64_t exchange, uint32_t step) {
    for (uint32_t i = 0; i < k->count && k->stands > 0; i++)
        if (is_other(&k->parts[i], exchange, step))
            sl_copies_make(k, i);
}

static uint32_t *users_of(sl_copies *k, uint32_t place) {
    return place < k->count ? &k->parts[place].users : &k->rooms[place - k->count];
}

const void *sl_copies_payload(const sl_copies *k, uint32_t place, const void *payload) {
    return place < k->count ? k->parts[place].payload : payload;
}

void sl_copies_use(sl_copies *k, uint32_t place) {
    ++*users_of(k, place);
}

void sl_copies_drop(sl_copies *k, uint32_t place) {
    uint32_t *users = users_of(k, place);
    assert(*users > 0);
    if (--*users > 0 || place >= k->count)
        return;
    const sl_copy *part = &k->parts[place];
    k->stands -= stands(part);
    k->free[k->free_count++] = place;
}
