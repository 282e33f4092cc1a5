/* sealed_buffers.h - memory that sealed payloads leave from.
 *
 * What a frame sends stays readable where it is, so its sealed form needs a place of its own until
 * it has left. There are a few for each neighbour, taken last in first out, so that they stay in
 * cache.
 */
#ifndef SL_SEALED_BUFFERS_H
#define SL_SEALED_BUFFERS_H

#include <stdint.h>

#include "world/fabric.h"

#define SL_SEALED_BUFFER_NONE UINT32_MAX

typedef struct sl_sealed_buffers {
    uint8_t *memory; /* (count, stride) registered */
    size_t stride;
    uint32_t count, free_count;
    uint32_t *free;      /* (free_count) */
    const void **owners; /* (count) NULL: free */
} sl_sealed_buffers;

/* owners: who has envelopes at a time; count 0 with no owners. */
int sl_sealed_buffers_open(sl_sealed_buffers *out, sl_fabric *fabric, uint32_t owners, size_t bytes,
                           sl_error *error);
void sl_sealed_buffers_close(sl_sealed_buffers *envelopes);
/* SL_SEALED_BUFFER_NONE: there is none now, or this owner has SL_SEALED_BUFFERS. */
uint32_t sl_sealed_buffers_take(sl_sealed_buffers *envelopes, const void *owner);
uint8_t *sl_sealed_buffer_memory(const sl_sealed_buffers *envelopes, uint32_t number);
void sl_sealed_buffers_give(sl_sealed_buffers *envelopes, uint32_t number);
/* All that this owner has: nothing leaves from them any more. */
void sl_sealed_buffers_give_all(sl_sealed_buffers *envelopes, const void *owner);

#endif
