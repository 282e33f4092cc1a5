/* heap.h - events in the order in which they happen: by time, then by phase, rank, and when they
 * were added. */
#ifndef SL_SIM_HEAP_H
#define SL_SIM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What happens at one instant: first all messages, whatever they set off, then the next gradient
 * that ends, then who has waited for the instant to be over; it is recorded, and members change. */
typedef enum sl_phase {
    SL_PHASE_MESSAGE,
    SL_PHASE_GRADIENT,
    SL_PHASE_TURN,
    SL_PHASE_RECORD,
    SL_PHASE_CHANGE
} sl_phase;

typedef struct sl_heap_entry {
    uint64_t at;    /* nanoseconds */
    uint64_t order; /* phase (3 bits), rank (22), sequence (39) */
    uint32_t body;  /* the caller's */
} sl_heap_entry;

typedef struct sl_heap {
    sl_heap_entry *entries; /* (count) each at most as late as its four children */
    size_t count, room;
    uint64_t sequence;
} sl_heap;

/* false: out of memory. */
bool sl_heap_add(sl_heap *heap, uint64_t at, sl_phase phase, uint32_t rank, uint32_t body);
/* The first event, taken out; false: there is none. */
bool sl_heap_take(sl_heap *heap, sl_heap_entry *out);
void sl_heap_close(sl_heap *heap);

#endif
