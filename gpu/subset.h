/* subset.h - sets of a vector's elements on a device: bitmaps, and random-k's subset. */
#ifndef SL_GPU_SUBSET_H
#define SL_GPU_SUBSET_H

#include "compress/coding.h"
#include "gpu/kernels.h"
#include "gpu/memory.h"

typedef struct bitmap {
    size_t elements, words;
    uint64_t *bits;  /* (words) */
    uint64_t *ranks; /* (words) number of bits before each word, after bitmap_scan */
    uint64_t *sums;  /* of the scan's groups */
} bitmap;

/* `list` owns the memory. */
bitmap bitmap_take(memory_list *memory, size_t elements);
/* Replaces each word's count in `ranks` by the sum of the counts before it, in each of k maps of as
 * many words. */
void bitmap_scan(const bitmap *const *maps, size_t k);

/* The elements that random-k chooses for one message. */
typedef struct subset {
    bitmap map;
    draw_state *state;
    uint32_t *indices; /* (k) ascending */
    sl_rng_key key;    /* key of that message, if `ready` */
    bool ready;
} subset;

subset subset_take(memory_list *memory, const sl_coding *c);
/* Does nothing if `key` is that of the last call. */
void subset_draw(subset *s, const sl_coding *c, const sl_rng_key *key);

#endif
