/* subset.h - sets of a vector's elements on a device: bitmaps, and random-k's subset. */
#ifndef SL_GPU_SUBSET_H
#define SL_GPU_SUBSET_H

#include "compress/coding.h"
#include "gpu/kernels.h"
#include "gpu/memory.h"

static inline size_t ceiling(size_t n, size_t by) {
    return (n + by - 1) / by;
}

typedef struct bitmap {
    size_t elements, words;
    uint64_t *bits;  /* (words) */
    uint64_t *ranks; /* (words) bits before each word, after bitmap_scan */
    uint64_t *sums;  /* of the scan's upper levels */
} bitmap;

/* The memory belongs to the list. */
bitmap bitmap_take(memory_list *memory, size_t elements);
/* Turns each word's count in `ranks` into the sum of the counts before it. */
void bitmap_scan(const bitmap *b);

/* Random-k's choice for one message. */
typedef struct subset {
    bitmap map;
    draw_state *state;
    uint32_t *indices; /* (k) rising */
    sl_rng_key key;    /* of the message, if `ready` */
    bool ready;
} subset;

subset subset_take(memory_list *memory, const sl_coding *c);
/* Does nothing for the key of the last call. */
void subset_draw(subset *s, const sl_coding *c, const sl_rng_key *key);

#endif
