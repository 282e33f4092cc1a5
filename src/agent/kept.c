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
        k.parts[i].payload = k.memory + i * stride;
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

uint32_t sl_kept_put(sl_kept *k, const sl_frame *frame, const void *payload) {
    assert(k->free_count > 0);
    const uint32_t place = k->free[--k->free_count];
    sl_kept_part *part = &k->parts[place];
    part->frame = *frame;
    part->users = 0;
    memcpy(part->payload, payload, frame->payload_bytes);
    return place;
}

void sl_kept_drop(sl_kept *k, uint32_t place) {
    assert(k->parts[place].users > 0);
    if (--k->parts[place].users == 0)
        k->free[k->free_count++] = place;
}
