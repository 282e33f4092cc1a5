/* sealed_buffers.c - see sealed_buffers.h. */
#include "agent/peers/sealed_buffers.h"

#include <assert.h>
#include <stdlib.h>

#include "base/round_up.h"
#include "config/buffers.h"
#include "starling/vec.h"

int sl_sealed_buffers_open(sl_sealed_buffers *out, sl_fabric *fabric, uint32_t owners, size_t bytes,
                           sl_error *error) {
    const uint32_t count = owners * SL_SEALED_BUFFERS;
    sl_sealed_buffers e = {.stride = sl_round_up(bytes, SL_VEC_ALIGNMENT), .count = count};
    *out = (sl_sealed_buffers){0};
    if (count == 0)
        return 0;
    e.memory = aligned_alloc(SL_VEC_ALIGNMENT, count * e.stride);
    e.free = calloc(count, sizeof *e.free);
    e.owners = calloc(count, sizeof *e.owners);
    if (e.memory == NULL || e.free == NULL || e.owners == NULL) {
        sl_sealed_buffers_close(&e);
        return sl_fail(error, SL_ENOMEM, "out of memory for %u sealed parts", count);
    }
    for (uint32_t i = 0; i < count; i++)
        e.free[e.free_count++] = count - 1 - i;
    *out = e;
    return sl_fabric_register(fabric, e.memory, count * e.stride, -1, error);
}

void sl_sealed_buffers_close(sl_sealed_buffers *e) {
    free(e->memory);
    free(e->free);
    free(e->owners);
    *e = (sl_sealed_buffers){0};
}

uint32_t sl_sealed_buffers_take(sl_sealed_buffers *e, const void *owner) {
    uint32_t has = 0;
    for (uint32_t i = 0; i < e->count; i++)
        has += e->owners[i] == owner;
    if (has >= SL_SEALED_BUFFERS || e->free_count == 0)
        return SL_SEALED_BUFFER_NONE;
    const uint32_t number = e->free[--e->free_count];
    e->owners[number] = owner;
    return number;
}

uint8_t *sl_sealed_buffer_memory(const sl_sealed_buffers *e, uint32_t number) {
    return e->memory + number * e->stride;
}

void sl_sealed_buffers_give(sl_sealed_buffers *e, uint32_t number) {
    assert(number < e->count && e->owners[number] != NULL);
    e->owners[number] = NULL;
    e->free[e->free_count++] = number;
}

void sl_sealed_buffers_give_all(sl_sealed_buffers *e, const void *owner) {
    for (uint32_t i = 0; i < e->count; i++)
        if (e->owners[i] == owner)
            sl_sealed_buffers_give(e, i);
}
