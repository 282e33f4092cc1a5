/* kept.h - copies of parts that some neighbour may not have.
 *
 * A part must be sent again if the connection breaks before it came. A node overwrites its parts in
 * every round. So whatever has left and is not known to have come is copied to here before the node
 * is told that it has left. Of a neighbour's frames at most a window is under way: with as many
 * places for each neighbour, one is always free.
 */
#ifndef SL_KEPT_H
#define SL_KEPT_H

#include "wire/frame.h"
#include "world/fabric.h"

#define SL_KEPT_NOWHERE UINT32_MAX

typedef struct sl_kept_part {
    sl_frame frame;
    uint8_t *payload; /* (stride) */
    uint32_t users;   /* neighbours that may not have it; 0: the place is free */
} sl_kept_part;

typedef struct sl_kept {
    sl_kept_part *parts; /* (count) */
    uint32_t count, free_count;
    uint32_t *free; /* (free_count) the place freed last is taken first: it is in cache */
    uint8_t *memory;
} sl_kept;

/* count 0: nothing is copied, senders wait until their parts have come. */
int sl_kept_open(sl_kept *out, sl_fabric *fabric, uint32_t count, size_t part_bytes,
                 sl_error *error);
void sl_kept_close(sl_kept *kept);
/* Copies a part, without users yet; returns its place. */
uint32_t sl_kept_put(sl_kept *kept, const sl_frame *frame, const void *payload);
/* One user less. */
void sl_kept_drop(sl_kept *kept, uint32_t place);

#endif
