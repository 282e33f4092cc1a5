/* kernels_codes.h - dense codes: scales of buckets, encoding and decoding of eight elements a
 * thread; see kernels.h. */
#ifndef SL_GPU_KERNELS_CODES_H
#define SL_GPU_KERNELS_CODES_H

#include <math.h>

#include "base/philox.h"
#include "compress/coding.h"
#include "element/code.h"
#include "gpu/block.h"
#include "gpu/kernels_vector.h"

/* ---- scales of buckets ---- */

/* Thread i reads every `splits`-th element of bucket i / splits. */
typedef struct find_largest_args {
    const float *v;
    uint32_t *largest; /* (buckets) zero */
    size_t dimension, bucket, splits;
} find_largest_args;

SL_SHARED void find_largest(const find_largest_args *a, size_t i) {
    const size_t b = i / a->splits, end = smaller((b + 1) * a->bucket, a->dimension);
    uint32_t largest = 0;
    SL_UNROLL(8)
    for (size_t e = b * a->bucket + i % a->splits; e < end; e += a->splits) {
        const uint32_t magnitude = float_bits(a->v[e]) & FLOAT_MAGNITUDE;
        largest = magnitude > largest ? magnitude : largest;
    }
    ATOMIC_MAX(&a->largest[b], largest);
}

/* A block has BLOCK_TILES tiles, as in tile_sums. All buckets have equally many; the last ones of
 * the last bucket may be empty. */
typedef struct bucket_tiles_args {
    const float *v;
    coding_scale scale;
    size_t dimension, bucket, buckets, tiles; /* tiles: in one bucket */
    double *sums; /* (buckets, tiles); for SCALE_SIDES followed by as many sums of the elements < 0
                   */
    uint32_t *negatives; /* (buckets) zero; SCALE_SIDES */
} bucket_tiles_args;

typedef struct bucket_tiles_memory {
    double up[BLOCK_THREADS], down[BLOCK_THREADS];
} bucket_tiles_memory;

SL_SHARED float magnitude_within(const float *v, size_t e, size_t start, size_t end) {
    return e >= start && e < end ? float_of(float_bits(v[e]) & FLOAT_MAGNITUDE) : 0;
}

/* Sums one lane of elements [start, end). */
SL_SHARED double lane_magnitudes(const float *v, size_t start, size_t end, size_t lane) {
    double sum = 0;
    SL_UNROLL(4)
    for (size_t e = start / SUM_GROUP * SUM_GROUP + lane; e < end; e += SUM_GROUP)
        sum += sum_of_four(magnitude_within(v, e, start, end),
                           magnitude_within(v, e + SUM_LANES, start, end),
                           magnitude_within(v, e + 2 * SUM_LANES, start, end),
                           magnitude_within(v, e + 3 * SUM_LANES, start, end));
    return sum;
}

SL_SHARED void sum_lane_of_bucket(const bucket_tiles_args *a, bucket_tiles_memory *m, size_t tile,
                                  uint32_t thread) {
    const size_t b = tile / a->tiles, lane = thread % SUM_LANES;
    const size_t start = b * a->bucket + tile % a->tiles * SUM_TILE,
                 rest = smaller((b + 1) * a->bucket, a->dimension);
    const size_t end = smaller(start + SUM_TILE, rest),
                 first = start + (lane + SUM_LANES - start % SUM_LANES) % SUM_LANES;
    double up = 0, down = 0;
    uint32_t negatives = 0;
    if (a->scale == SCALE_MEAN) {
        m->up[thread] = lane_magnitudes(a->v, start, end, lane);
        return;
    }
    SL_UNROLL(16)
    for (size_t e = first; e < end; e += SUM_LANES) {
        const float v = a->v[e];
        if (a->scale != SCALE_SIDES) {
            up += (double)v * v;
        } else {
            up += v < 0 ? 0.0 : (double)v;
            down += v < 0 ? (double)v : 0.0;
            negatives += v < 0;
        }
    }
    m->up[thread] = up;
    m->down[thread] = down;
    if (a->scale == SCALE_SIDES)
        ATOMIC_ADD(&a->negatives[b], negatives);
}

enum { bucket_tiles_PHASES = 2 };
SL_SHARED void bucket_tiles(const bucket_tiles_args *a, bucket_tiles_memory *m, block_place at,
                            uint32_t phase) {
    const size_t all = a->buckets * a->tiles, first = (size_t)at.block * BLOCK_TILES,
                 tile = first + at.thread / SUM_LANES, mine = first + at.thread % BLOCK_TILES;
    const double *lanes = at.thread < BLOCK_TILES ? m->up : m->down;
    if (phase == 0 && tile < all)
        sum_lane_of_bucket(a, m, tile, at.thread);
    else if (phase == 1 && mine < all &&
             at.thread < (a->scale == SCALE_SIDES ? 2 * BLOCK_TILES : BLOCK_TILES))
        a->sums[(at.thread < BLOCK_TILES ? 0 : all) + mine] =
            sum_lanes(lanes + at.thread % BLOCK_TILES * SUM_LANES);
}

/* Thread i computes the scales of bucket i from these sums. *refused counts the buckets that
 * cannot be encoded. */
typedef struct bucket_scale_args {
    coding_scale scale;
    coding_code code;
    uint32_t levels;
    double clip;
    const uint32_t *largest, *negatives;
    const double *folds; /* (1 or 2, buckets, fold_count) */
    size_t dimension, bucket, buckets, fold_count;
    float *scales;       /* (buckets, scale_floats) */
    rounding *roundings; /* (buckets), for codes that are levels */
    uint32_t *refused;
} bucket_scale_args;

#define FLOAT_LARGEST 3.40282346638528859811704183484516925e+38

SL_SHARED float scale_of_largest(uint32_t magnitude, uint32_t *refused) {
    if (magnitude >= FLOAT_INFINITY)
        ATOMIC_ADD(refused, 1);
    return float_of(magnitude);
}

SL_SHARED float scale_of_sum(double scale, uint32_t *refused) {
    if (!(scale <= FLOAT_LARGEST))
        ATOMIC_ADD(refused, 1);
    return (float)scale;
}

SL_SHARED void bucket_scale(const bucket_scale_args *a, size_t i) {
    const size_t n = smaller(a->bucket, a->dimension - i * a->bucket);
    if (a->scale == SCALE_MAX) {
        a->scales[i] = scale_of_largest(a->largest[i], a->refused);
    } else if (a->scale == SCALE_CLIPPED) {
        const double squares = sum_in_order(a->folds + a->fold_count * i, a->fold_count);
        a->scales[i] =
            clipped_scale(scale_of_largest(a->largest[i], a->refused), a->clip, squares, n);
    } else if (a->scale == SCALE_SIDES) {
        const uint32_t negatives = a->negatives[i];
        const double up = sum_in_order(a->folds + a->fold_count * i, a->fold_count);
        const double down =
            sum_in_order(a->folds + a->fold_count * (a->buckets + i), a->fold_count);
        const float high = negatives < n ? (float)(up / (double)(n - negatives)) : 0;
        const float low = negatives > 0 ? (float)(down / (double)negatives) : 0;
        a->scales[2 * i] = high;
        a->scales[2 * i + 1] = low;
        if ((float_bits(high) & FLOAT_MAGNITUDE) >= FLOAT_INFINITY ||
            (float_bits(low) & FLOAT_MAGNITUDE) >= FLOAT_INFINITY)
            ATOMIC_ADD(a->refused, 1);
    } else {
        const double sum = sum_in_order(a->folds + a->fold_count * i, a->fold_count);
        a->scales[i] = scale_of_sum(a->scale == SCALE_L2 ? sqrt(sum) : sum / (double)n, a->refused);
    }
    if (a->code == CODE_LEVELS || a->code == CODE_TERNARY)
        a->roundings[i] = rounding_of(a->levels, a->scales[i]);
}

/* ---- dense codes ---- */

/* The layout of a message's parts. */
typedef struct part_layout {
    uint8_t *parts;
    size_t stride, dimension, part_elements;
} part_layout;

/* Where scales stand: before the codes of each part, one or two for each bucket that it touches. */
typedef struct bucket_layout {
    size_t bucket, buckets; /* buckets 0: there are no scales */
    size_t of_part;         /* buckets of a part; 0: a bucket may cross parts */
    uint32_t floats;        /* of one bucket */
} bucket_layout;

/* The scales of the buckets that contain elements [from, from + count). */
SL_SHARED size_t buckets_touched(size_t bucket, size_t from, size_t count) {
    return (from + count - 1) / bucket - from / bucket + 1;
}

/* Thread i copies scale i % most into part i / most. */
typedef struct place_scales_args {
    part_layout layout;
    const float *scales;
    size_t bucket, most;
    uint32_t scale_floats;
} place_scales_args;

SL_SHARED void place_scales(const place_scales_args *a, size_t i) {
    const size_t p = i / a->most, j = i % a->most, from = p * a->layout.part_elements;
    const size_t count = smaller(a->layout.dimension - from, a->layout.part_elements);
    if (j < a->scale_floats * buckets_touched(a->bucket, from, count))
        ((float *)(a->layout.parts + p * a->layout.stride))[j] =
            a->scales[a->scale_floats * (from / a->bucket) + j];
}

/* Reads eight elements, with 16-byte loads if v is `aligned`. Missing elements are 0. */
SL_SHARED void read_eight(const float *v, size_t n, int aligned, float out[EIGHT]) {
    if (aligned && n == EIGHT) {
        const four low = ((const four *)v)[0], high = ((const four *)v)[1];
        for (int e = 0; e < FOUR; e++) {
            out[e] = low.v[e];
            out[FOUR + e] = high.v[e];
        }
        return;
    }
    SL_UNROLL(8)
    for (size_t e = 0; e < EIGHT; e++)
        out[e] = e < n ? v[e] : 0;
}

/* Packs four codes of at most 16 bits, the first one lowest. */
SL_SHARED uint64_t pack_four(const uint32_t c[FOUR], uint32_t width) {
    return (c[0] | c[1] << width) | (uint64_t)(c[2] | c[3] << width) << 2 * width;
}

/* Packs eight codes into low | high << 64. */
SL_SHARED void pack_eight(const uint32_t c[EIGHT], uint32_t width, uint64_t *low, uint64_t *high) {
    const uint64_t first = pack_four(c, width), second = pack_four(c + FOUR, width);
    *low = width < 16 ? first | second << 4 * width : first;
    *high = second >> (WORD_BITS - 4 * width);
}

/* The second four of eight codes, as low has the first. */
SL_SHARED uint64_t second_four(uint64_t low, uint64_t high, uint32_t width) {
    return width < 16 ? low >> 4 * width | high << (WORD_BITS - 4 * width) : high;
}

/* Code e of eight. */
SL_SHARED uint32_t code_at(uint64_t first, uint64_t second, uint32_t width, uint32_t e) {
    return (uint32_t)((e < FOUR ? first : second) >> e % FOUR * width) & ((1u << width) - 1);
}

/* Writes the lowest `bytes` bytes of low | high << 64. */
SL_SHARED void put_bytes(uint8_t *out, uint64_t low, uint64_t high, size_t bytes) {
    for (size_t b = 0; b < bytes; b++)
        out[b] = (uint8_t)(b < 8 ? low >> 8 * b : high >> 8 * (b - 8));
}

/* The same in words of 32 or 16 bits, if `bytes` is a multiple of them and `out` is aligned to
 * them. */
SL_SHARED void put_words(uint8_t *out, uint64_t low, uint64_t high, size_t bytes) {
    if (bytes % 4 == 0)
        for (size_t b = 0; b < bytes; b += 4)
            *(uint32_t *)(void *)(out + b) = (uint32_t)(b < 8 ? low >> 8 * b : high >> 8 * (b - 8));
    else if (bytes % 2 == 0)
        for (size_t b = 0; b < bytes; b += 2)
            *(uint16_t *)(void *)(out + b) = (uint16_t)(b < 8 ? low >> 8 * b : high >> 8 * (b - 8));
    else
        put_bytes(out, low, high, bytes);
}

SL_SHARED void get_bytes(const uint8_t *in, size_t bytes, uint64_t *low, uint64_t *high) {
    *low = *high = 0;
    for (size_t b = 0; b < bytes; b++) {
        if (b < 8)
            *low |= (uint64_t)in[b] << 8 * b;
        else
            *high |= (uint64_t)in[b] << 8 * (b - 8);
    }
}

SL_SHARED void get_words(const uint8_t *in, size_t bytes, uint64_t *low, uint64_t *high) {
    if (bytes % 4 != 0) {
        get_bytes(in, bytes, low, high);
        return;
    }
    *low = *high = 0;
    for (size_t b = 0; b < bytes; b += 4) {
        const uint64_t word = *(const uint32_t *)(const void *)(in + b);
        if (b < 8)
            *low |= word << 8 * b;
        else
            *high |= word << 8 * (b - 8);
    }
}

/* A block encodes 8 elements a thread of one part, at most, into `width` bytes each, and writes
 * them together: threads store neighbouring words. Blocks begin at the end of the vector: the end
 * is what the pass before left in the cache. */
typedef struct encode_eight_args {
    part_layout layout;
    const float *v;
    coding_code code;
    uint32_t width, magnitude_limit;
    float tau;
    bucket_layout scales;
    const rounding *roundings;
    sl_rng_key key;
    uint32_t *refused;
    uint32_t part_blocks; /* blocks of a part */
    int aligned;          /* v */
} encode_eight_args;

typedef struct encode_eight_memory {
    uint32_t words[BLOCK_THREADS * 16 / 4];                         /* a code has at most 16 bits */
    uint32_t random[BLOCK_THREADS * EIGHT / PHILOX_WINDOWS + 1][4]; /* blocks of the stream */
} encode_eight_memory;

/* The scales that stand before the codes of a part. The part begins at element `start`. */
SL_SHARED size_t scales_of_part(const bucket_layout *b, const part_layout *l, size_t part,
                                size_t start) {
    if (b->buckets <= 1)
        return b->buckets * b->floats;
    if (b->of_part > 0)
        return b->floats * smaller(b->buckets - part * b->of_part, b->of_part);
    return b->floats *
           buckets_touched(b->bucket, start, smaller(l->dimension - start, l->part_elements));
}

/* The bucket of an element. */
SL_SHARED size_t bucket_at(const bucket_layout *b, size_t element) {
    return b->buckets > 1 ? quotient(element, b->bucket) : 0;
}

SL_SHARED void refuse_large(const encode_eight_args *a, const float v[EIGHT]) {
    uint32_t largest = 0;
    SL_UNROLL(8)
    for (int e = 0; e < EIGHT; e++) {
        const uint32_t magnitude = float_bits(v[e]) & FLOAT_MAGNITUDE;
        largest = magnitude > largest ? magnitude : largest;
    }
    if (largest >= a->magnitude_limit)
        ATOMIC_ADD(a->refused, 1);
}

/* What a block encodes: elements [from, end) of a part that begins at `start`. */
typedef struct block_codes {
    size_t part, start, from, end;
} block_codes;

SL_SHARED block_codes codes_of_block(const encode_eight_args *a, block_place at) {
    const uint32_t block = at.blocks - 1 - at.block, part = block / a->part_blocks,
                   nth = block - part * a->part_blocks;
    const size_t start = part * a->layout.part_elements,
                 from = start + (size_t)nth * BLOCK_THREADS * EIGHT,
                 end = smaller(start + a->layout.part_elements, a->layout.dimension);
    return (block_codes){part, start, from, smaller(from + BLOCK_THREADS * EIGHT, end)};
}

/* A block of the stream has windows for sixteen elements, of two threads. */
SL_SHARED void draw_windows(const encode_eight_args *a, encode_eight_memory *m, block_codes b,
                            uint32_t thread) {
    const size_t first = b.from / PHILOX_WINDOWS, end = (b.end - 1) / PHILOX_WINDOWS + 1;
    if (is_random(a->code))
        for (size_t at = first + thread; at < end; at += BLOCK_THREADS)
            philox_block(&a->key, (uint32_t)at, PHILOX_ROUNDS_QUICK, m->random[at - first]);
}

/* What a thread encodes eight elements of. */
typedef struct code_source {
    const float *v;
    int aligned;
    const rounding *roundings; /* from the first one's bucket on */
    const uint32_t *drawn;     /* of elements from a multiple of PHILOX_WINDOWS on */
} code_source;

/* Each code has a kernel body of its own, so that no element branches on the kind of code. */
SL_SHARED void encode_eight_as(const encode_eight_args *a, code_source s, size_t from, size_t n,
                               uint8_t *out, coding_code code) {
    /* The first element of the next bucket; most threads do not reach it. */
    uint32_t next =
        is_scaled_rounding(code)
            ? (uint32_t)smaller((bucket_at(&a->scales, from) + 1) * a->scales.bucket - from, EIGHT)
            : (uint32_t)EIGHT;
    float v[EIGHT];
    uint32_t random[4] = {0, 0, 0, 0}, codes[EIGHT];
    uint64_t low, high;
    rounding r = {1, 0, 1, 16};
    read_eight(s.v, n, s.aligned, v);
    if (is_scaled_rounding(code))
        r = *s.roundings;
    if (is_random(code)) {
        SL_UNROLL(4)
        for (uint32_t w = 0; w < 4; w++)
            random[w] = s.drawn[w];
        if (from % PHILOX_WINDOWS != 0)
            philox_half_turn(random);
    }
    if (!is_scaled_rounding(code) && a->scales.floats == 0)
        refuse_large(a, v);
    if (n == EIGHT && next == EIGHT) {
        SL_UNROLL(8)
        for (uint32_t e = 0; e < EIGHT; e++)
            codes[e] = code_of(code, a->tau, a->width, r, v[e], philox_window(random, e));
    } else {
        SL_UNROLL(8)
        for (uint32_t e = 0; e < EIGHT; e++) {
            if (e == next && e < n) {
                next = (uint32_t)smaller(next + a->scales.bucket, EIGHT);
                r = *++s.roundings;
            }
            codes[e] =
                e < n ? code_of(code, a->tau, a->width, r, v[e], philox_window(random, e)) : 0;
        }
    }
    pack_eight(codes, a->width, &low, &high);
    put_words(out, low, high, a->width);
}

/* What fills the last word is of no part's bytes. */
SL_SHARED void write_codes(const encode_eight_args *a, const encode_eight_memory *m, block_codes b,
                           uint32_t thread) {
    const size_t words = ((b.end - b.from) * a->width + 31) / 32;
    uint32_t *out = (uint32_t *)(void *)(a->layout.parts + b.part * a->layout.stride +
                                         sizeof(float) * scales_of_part(&a->scales, &a->layout,
                                                                        b.part, b.start) +
                                         (b.from - b.start) / EIGHT * a->width);
    for (size_t w = thread; w < words; w += BLOCK_THREADS)
        out[w] = m->words[w];
}

/* source: where v and roundings are. */
SL_SHARED void encode_own(const encode_eight_args *a, encode_eight_memory *m, block_codes b,
                          uint32_t thread, code_source source) {
    const size_t from = b.from + (size_t)EIGHT * thread, n = smaller(b.end - from, EIGHT);
    source.drawn = m->random[from / PHILOX_WINDOWS - b.from / PHILOX_WINDOWS];
    uint8_t *out = (uint8_t *)m->words + thread * a->width;
    switch (a->code) {
    case CODE_NONE:
        break;
#define ENCODE_AS(code)                                                                            \
    case code:                                                                                     \
        encode_eight_as(a, source, from, n, out, code);                                            \
        break;
        SL_CODES(ENCODE_AS)
    }
}

enum { encode_eight_PHASES = 3 };
SL_SHARED void encode_eight(const encode_eight_args *a, encode_eight_memory *m, block_place at,
                            uint32_t phase) {
    const block_codes b = codes_of_block(a, at);
    const size_t from = b.from + (size_t)EIGHT * at.thread;
    if (b.from >= b.end)
        return;
    switch (phase) {
    case 0:
        draw_windows(a, m, b, at.thread);
        break;
    case 1:
        if (from < b.end) {
            const code_source source = {a->v + from, a->aligned,
                                        a->roundings + bucket_at(&a->scales, from), NULL};
            encode_own(a, m, b, at.thread, source);
        }
        break;
    case 2:
        write_codes(a, m, b, at.thread);
        break;
    }
}

/* Thread i decodes elements [from + 8 i, from + 8 i + 8) of some messages, and adds them to acc in
 * the messages' order. What it reads are parts from `first` on, of which each sender's lie in a
 * row. */
typedef struct add_eight_args {
    const uint8_t *parts[INPUTS]; /* each sender's part `first` */
    float weights[INPUTS];
    uint32_t k; /* senders */
    float *acc; /* at the messages' first element */
    coding_code code;
    uint32_t width, levels;
    float tau;
    bucket_layout scales;
    part_layout layout; /* parts: unused */
    size_t first, from, end;
    int aligned; /* acc + from */
} add_eight_args;

/* Eight codes of one sender, of which the first `n` are there. */
SL_SHARED void add_codes(const add_eight_args *a, coding_code code, float weight,
                         const float *scale, const uint8_t *packed, uint32_t n, uint32_t next,
                         float sums[EIGHT]) {
    uint64_t low, high;
    if (n == EIGHT)
        get_words(packed, a->width, &low, &high);
    else
        get_bytes(packed, (n * a->width + 7) / 8, &low, &high);
    code_units u = units_of(code, weight, a->levels, a->tau, a->scales.floats, scale);
    const uint64_t second = second_four(low, high, a->width);
    if (n == EIGHT && next == EIGHT) {
        SL_UNROLL(8)
        for (uint32_t e = 0; e < EIGHT; e++)
            sums[e] += increment_of(code, a->width, u, code_at(low, second, a->width, e));
        return;
    }
    SL_UNROLL(8)
    for (uint32_t e = 0; e < EIGHT; e++) {
        if (e == next && e < n) {
            next += (uint32_t)smaller(a->scales.bucket, EIGHT);
            scale += a->scales.floats;
            u = units_of(code, weight, a->levels, a->tau, a->scales.floats, scale);
        }
        sums[e] += increment_of(code, a->width, u, code_at(low, second, a->width, e));
    }
}

SL_SHARED void add_eight_as(const add_eight_args *a, size_t i, coding_code code) {
    const size_t at = a->from + EIGHT * i, part = quotient(at, a->layout.part_elements),
                 start = part * a->layout.part_elements, b = bucket_at(&a->scales, at),
                 place = (part - a->first) * a->layout.stride;
    const uint32_t n = (uint32_t)smaller(a->end - at, EIGHT);
    /* The first element of the next bucket. */
    const uint32_t next = a->scales.buckets > 1
                              ? (uint32_t)smaller((b + 1) * a->scales.bucket - at, EIGHT)
                              : (uint32_t)EIGHT;
    /* From the part's beginning. */
    const uint32_t scale = a->scales.floats * (uint32_t)(b - bucket_at(&a->scales, start)),
                   packed = (uint32_t)(sizeof(float) *
                                       scales_of_part(&a->scales, &a->layout, part, start)) +
                            (uint32_t)(at - start) / EIGHT * a->width;
    float sums[EIGHT], *acc = a->acc + at;
    read_eight(acc, n, a->aligned, sums);
    SL_UNROLL(1)
    for (uint32_t j = 0; j < a->k; j++) {
        const uint8_t *from = a->parts[j] + place;
        add_codes(a, code, a->weights[j], (const float *)(const void *)from + scale, from + packed,
                  n, next, sums);
    }
    if (a->aligned && n == EIGHT) {
        four *to = (four *)acc;
        const four low = {{sums[0], sums[1], sums[2], sums[3]}},
                   high = {{sums[4], sums[5], sums[6], sums[7]}};
        to[0] = low;
        to[1] = high;
        return;
    }
    for (uint32_t e = 0; e < n; e++)
        acc[e] = sums[e];
}

SL_SHARED void add_eight(const add_eight_args *a, size_t i) {
    switch (a->code) {
    case CODE_NONE:
        break;
#define ADD_AS(code)                                                                               \
    case code:                                                                                     \
        add_eight_as(a, i, code);                                                                  \
        break;
        SL_CODES(ADD_AS)
    }
}

#endif
