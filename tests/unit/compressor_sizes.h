/* compressor_sizes.h - how long messages are by docs/compressors.md, for the tests. */
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

static inline size_t floats_of_part(sl_compressor_kind kind) {
    switch ((int)kind) {
    case SL_COMPRESSOR_POS_NEG:
        return 2;
    case SL_COMPRESSOR_STC:
    case SL_COMPRESSOR_SBC:
    case SL_COMPRESSOR_THREE_LC:
        return 1;
    default:
        return 0;
    }
}

typedef enum how { EXACTLY, AT_MOST, UNKNOWN } how;

static inline how documented_bits(const sl_compressor_config *c, size_t d, size_t *bits) {
    const double share = round(c->fraction * (double)d);
    const size_t k = c->k > 0 ? c->k : share < 1 ? 1 : (size_t)share, index = bits_for(d);
    *bits = width_of(c) * d + 32 * scales_of(c, d);
    if (width_of(c) > 0)
        return EXACTLY;
    switch ((int)c->kind) {
    case SL_COMPRESSOR_TOP_K:
        *bits = k * (32 + index) < d + 32 * k ? k * (32 + index) : d + 32 * k;
        return EXACTLY;
    case SL_COMPRESSOR_SHARED_MASK:
        *bits = 32 * k;
        return c->order == SL_ORDER_CYCLIC ? UNKNOWN : EXACTLY;
    case SL_COMPRESSOR_RANDOM_K:
        *bits = 32 * k;
        return EXACTLY;
    case SL_COMPRESSOR_STC:
        *bits = k * (index + 1) + 32;
        return EXACTLY;
    case SL_COMPRESSOR_SBC:
        *bits = k * index + 32;
        return EXACTLY;
    case SL_COMPRESSOR_POS_NEG:
        *bits = (2 * k < d ? 2 * k : d) * (index + 1) + 64;
        return EXACTLY;
    case SL_COMPRESSOR_THREE_LC:
        *bits = 8 * ((d + 4) / 5) + 32;
        return AT_MOST;
    case SL_COMPRESSOR_ADACOMP:
        *bits = 32 + (d + c->bin - 1) / c->bin * bits_for((size_t)c->bin + 1) +
                d * (bits_for(c->bin) + 1);
        return AT_MOST;
    default:
        return UNKNOWN;
    }
}

/* Of a message that brings so many elements, where its length depends on that alone; else 0. */
static inline size_t bits_of_sent(const sl_compressor_config *c, size_t d, size_t sent) {
    const size_t index = bits_for(d);
    switch ((int)c->kind) {
    case SL_COMPRESSOR_RANDOM_DROPPING:
        return 32 * sent;
    case SL_COMPRESSOR_MAGNITUDE_DROPPING:
        return sent * (32 + index);
    case SL_COMPRESSOR_NONZEROS:
        return sent * (32 + index) < 32 * d ? sent * (32 + index) : 32 * d;
    case SL_COMPRESSOR_STROM:
        return sent * (index + 1);
    case SL_COMPRESSOR_ADACOMP:
        return 32 + (d + c->bin - 1) / c->bin * bits_for((size_t)c->bin + 1) +
               sent * (bits_for(c->bin) + 1);
    default:
        return 0;
    }
}

#endif
