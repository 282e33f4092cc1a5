/* entries.h - what top-k and random-k share: how many entries a message has, floats looked at as bits,
 * bitmaps, and whose random numbers a memory holds; random dropping takes the latter three. */
#ifndef SL_ENTRIES_H
#define SL_ENTRIES_H

#include <string.h>

#include "compress/codec.h"

enum {
    SL_WORD = 64, /* elements of a word of a bitmap; element i is bit i % 64 of word i / 64 */
    SL_FLOAT_MAGNITUDE = 0x7fffffff,
    SL_FLOAT_INFINITY = 0x7f800000 /* magnitudes from here on are infinity and NaN */
};

/* k, or max(1, round(fraction d)). */
size_t sl_entries_kept(const sl_compressor_config *config, size_t dimension);
/* 1 <= k <= d, or 0 < fraction <= 1. */
int sl_entries_check(const sl_compressor_config *config, size_t dimension, sl_error *error);
/* May the bytes at `values` be sent, or taken from a peer? */
bool sl_entries_finite(const void *values, size_t count);

static inline bool sl_message_same(const sl_message *a, const sl_message *b) {
    return a->seed == b->seed && a->exchange == b->exchange && a->sender == b->sender && a->stage == b->stage;
}

static inline size_t sl_words(size_t elements) {
    return (elements + SL_WORD - 1) / SL_WORD;
}

/* The first `count` <= 64 bits. */
static inline uint64_t sl_low_bits(size_t count) {
    return count < SL_WORD ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

#endif
