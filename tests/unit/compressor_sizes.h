/* compressor_sizes.h - what docs/compressors.md says of the codes in a message, for the tests. */
#ifndef STARLING_TEST_COMPRESSOR_SIZES_H
#define STARLING_TEST_COMPRESSOR_SIZES_H

#include <math.h>

#include "starling/compressor.h"

static inline size_t bits_for(size_t values) {
    size_t bits = 0;
    while (((size_t)1 << bits) < values)
        bits++;
    return bits;
}

/* docs/compressors.md: of an element, where each has a code of its own; 0: they have none. */
static inline size_t width_of(const sl_compressor_config *c) {
    static const size_t widths[SL_COMPRESSOR_KINDS] = {
        [SL_COMPRESSOR_IDENTITY] = 32,   [SL_COMPRESSOR_FLOAT16] = 16,
        [SL_COMPRESSOR_BFLOAT16] = 16,   [SL_COMPRESSOR_FLOAT8] = 8,
        [SL_COMPRESSOR_NATURAL] = 9,     [SL_COMPRESSOR_TERNGRAD] = 2,
        [SL_COMPRESSOR_THRESHOLD] = 2,   [SL_COMPRESSOR_ROTATED_TERNGRAD] = 2,
        [SL_COMPRESSOR_SCALED_SIGN] = 1, [SL_COMPRESSOR_ONE_BIT] = 1,
        [SL_COMPRESSOR_DRIVE] = 1};
    if (c->kind == SL_COMPRESSOR_QSGD || c->kind == SL_COMPRESSOR_ROTATED_QSGD)
        return 1 + bits_for((size_t)c->levels + 1);
    if (c->kind == SL_COMPRESSOR_EDEN || c->kind == SL_COMPRESSOR_MODULAR ||
        c->kind == SL_COMPRESSOR_GRID)
        return c->bits;
    return widths[c->kind];
}

/* Floats of a message beside the elements' codes. */
static inline size_t scales_of(const sl_compressor_config *c, size_t d) {
    const size_t buckets = c->bucket == 0 ? 1 : (d + c->bucket - 1) / c->bucket;
    enum { PIECE = 1 << 14 };
    switch ((int)c->kind) {
    case SL_COMPRESSOR_QSGD:
    case SL_COMPRESSOR_ROTATED_QSGD:
    case SL_COMPRESSOR_TERNGRAD:
    case SL_COMPRESSOR_ROTATED_TERNGRAD:
    case SL_COMPRESSOR_SCALED_SIGN:
        return buckets;
    case SL_COMPRESSOR_ONE_BIT:
        return 2 * buckets;
    case SL_COMPRESSOR_DRIVE:
    case SL_COMPRESSOR_EDEN:
        return d / PIECE + (size_t)__builtin_popcountll(d % PIECE);
    default:
        return c->kind == SL_COMPRESSOR_GRID;
    }
}

#endif
