/* bitmap.h - sets of elements of a vector: element i is bit i % 64 of word i / 64; and how their
 * values are fetched and added to.
 *
 * Elements of a small set lie far apart: they are looked for in batches, and asked of memory side
 * by side before the first is used.
 */
#ifndef SL_BITMAP_H
#define SL_BITMAP_H

#include <string.h>

#include "base/kernels.h"
#include "compress/codec.h"

enum { SL_WORD = 64, SL_BATCH = 256 };

static inline size_t sl_words(size_t elements) {
    return (elements + SL_WORD - 1) / SL_WORD;
}

/* The first `count` <= 64 bits. */
static inline uint64_t sl_low_bits(size_t count) {
    return count < SL_WORD ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

static inline bool sl_message_same(const sl_message *a, const sl_message *b) {
    return a->seed == b->seed && a->exchange == b->exchange && a->sender == b->sender &&
           a->stage == b->stage;
}

/* A walk over `left` elements of a set, from `start` on, which may look at one word behind the last
 * one. */
typedef struct sl_walk {
    const uint64_t *words;
    size_t count, at; /* words; the current one */
    uint64_t word;    /* what is left of it */
    size_t left;
} sl_walk;

sl_walk sl_walk_open(const uint64_t *words, size_t elements, size_t start, size_t left);
/* out: the values of the walk's elements; the set's element 0 is element `from`, a multiple of
 * SL_BLOCK, of the source. */
void sl_walk_gather(sl_walk walk, sl_encoder *encoder, const sl_source *source, size_t from,
                    float *out);
/* acc[element] += weight * value. */
void sl_walk_scatter(sl_walk walk, float weight, const float *values, float *acc);

#endif
