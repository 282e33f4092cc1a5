/* kernels.h - what runs on the device, each kernel as the work of one thread: a function of its arguments and the thread's index.
 *
 * The list below is compiled twice: by nvcc into kernels (cuda.cu), and by the C compiler into loops over the index (emulated.c), so that
 * all of it is tested where there is no GPU. Threads of one launch meet in atomic operations on integers only, whose results do not depend on
 * the order; sums of floating-point numbers are taken by one thread each, in the CPU's order. So both give the CPU's bits.
 *
 * A kernel NAME has arguments of type NAME_args and a body NAME(const NAME_args *, size_t i) for i in [0, threads).
 */
#ifndef SL_KERNELS_H
#define SL_KERNELS_H

#include <math.h>

#include "compress/coding.h"
#include "element/code.h"
#include "element/philox.h"
#include "element/sum.h"
#include "starling/vec.h"

enum {
    INPUTS = 8,     /* of one combine; more are added in further launches */
    TOGETHER = 4,   /* inputs that a thread asks for before it adds the first */
    FOUR = 4,       /* elements of a thread in element-wise operations */
    EIGHT = 8,      /* elements, codes or indices of a thread that packs: `width` whole bytes */
    WORD_BITS = 64, /* of a bitmap */
    FAN = 32,       /* counts that one thread of a scan adds up */
    DIGIT_CLASSES = 2048
};

#define SL_KERNELS(X)                                                                                                                  \
    X(combine_four) X(step_four) X(fill_four) X(lanes_of) X(fold_tiles) X(sum_of_folds) X(find_largest) X(bucket_lanes) X(bucket_scale) X(place_scales) \
    X(encode_eight) X(add_eight) X(begin_selection) X(mark_top) X(keep_digit) X(settle_ties) X(scan_up) X(scan_down) X(list_word) X(gather_entry) \
    X(gather_word) X(place_indices) X(place_bitmap) X(count_parts) X(begin_draw) X(draw_word) X(advance_draw) X(finish_draw) X(settle_subset) X(mark_kept)            \
    X(add_entry) X(add_indexed) X(load_bitmap) X(add_word)

/* A device may have ways of its own to count. */
#define SL_ALL_KERNELS(X) SL_KERNELS(X) X(count_digits) X(pick_digit)

#ifdef __CUDA_ARCH__
/* Lanes of a warp that mean the same number agree on one atomic operation: thousands of them on one address would wait for each other. */
SL_SHARED uint32_t lanes_at(const void *at) {
    return __match_any_sync(__activemask(), (unsigned long long)(uintptr_t)at);
}
SL_SHARED int is_first_of(uint32_t lanes) {
    return threadIdx.x % 32 == (uint32_t)__ffs((int)lanes) - 1; /* blocks have one dimension */
}
SL_SHARED void add_together(uint32_t *at, uint32_t value) {
    const uint32_t lanes = lanes_at(at), sum = __reduce_add_sync(lanes, value);
    if (is_first_of(lanes))
        atomicAdd(at, sum);
}
SL_SHARED void raise_together(uint32_t *at, uint32_t value) {
    const uint32_t lanes = lanes_at(at), largest = __reduce_max_sync(lanes, value);
    if (is_first_of(lanes))
        atomicMax(at, largest);
}
#define ATOMIC_ADD(at, value) add_together(at, value)
#define ATOMIC_MAX(at, value) raise_together(at, value)
#define ATOMIC_OR(at, value) atomicOr((unsigned long long *)(at), (unsigned long long)(value))
#define BITS_SET(word) ((uint32_t)__popcll((long long)(word)))
#define LOWEST_BIT(word) ((uint32_t)(__ffsll((long long)(word)) - 1))
#else
SL_SHARED uint64_t plain_or(uint64_t *at, uint64_t value) {
    const uint64_t before = *at;
    *at |= value;
    return before;
}
#define ATOMIC_ADD(at, value) (*(at) += (value))
#define ATOMIC_MAX(at, value) (*(at) = *(at) > (value) ? *(at) : (value))
#define ATOMIC_OR(at, value) plain_or(at, value)
#define BITS_SET(word) ((uint32_t)__builtin_popcountll(word))
#define LOWEST_BIT(word) ((uint32_t)__builtin_ctzll(word))
#endif

/* Four floats, moved at once where `aligned` says that they lie on 16 bytes. */
typedef struct four {
    float v[FOUR];
} __attribute__((aligned(16))) four;

/* Of memory that no thread of the launch writes, so that a GPU may read it before what is written. */
SL_SHARED float read_one(const float *at) {
#ifdef __CUDA_ARCH__
    return __ldg(at);
#else
    return *at;
#endif
}

/* The same of `span` floats: four, which lie on 16 bytes, or one. */
SL_SHARED four read_span(const float *at, uint32_t span) {
    four out = {{0, 0, 0, 0}};
#ifdef __CUDA_ARCH__
    if (span == FOUR) {
        const float4 v = __ldg((const float4 *)at);
        out.v[0] = v.x;
        out.v[1] = v.y;
        out.v[2] = v.z;
        out.v[3] = v.w;
    }
#else
    if (span == FOUR)
        out = *(const four *)at;
#endif
    else
        out.v[0] = read_one(at);
    return out;
}

SL_SHARED void write_span(float *at, four v, uint32_t span) {
    if (span == FOUR)
        *(four *)at = v;
    else
        *at = v.v[0];
}

SL_SHARED size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* a / b: a GPU divides 64 bits several times slower than 32. */
SL_SHARED size_t quotient(size_t a, size_t b) {
    return (a | b) >> 32 == 0 ? (uint32_t)a / (uint32_t)b : a / b;
}

/* ---- vectors ---- */

/* out = [out +] weights[0] in[0] + weights[1] in[1] + ..., in that order. */
typedef struct combine_four_args {
    float *out;
    const float *in[INPUTS];
    float weights[INPUTS];
    uint32_t k;
    int adds, aligned;
    size_t count;
} combine_four_args;

SL_SHARED void combine_four(const combine_four_args *a, size_t i) {
    const size_t from = FOUR * i, n = smaller(a->count - from, FOUR);
    if (a->aligned && n == FOUR) {
        four sum = {{0, 0, 0, 0}};
        if (a->adds)
            sum = *(const four *)(a->out + from);
        for (uint32_t j = 0; j < a->k; j += TOGETHER) {
            four next[TOGETHER] = {{{0, 0, 0, 0}}};
            SL_UNROLL(4)
            for (uint32_t t = 0; t < TOGETHER; t++)
                if (j + t < a->k)
                    next[t] = *(const four *)(a->in[j + t] + from);
            SL_UNROLL(4)
            for (uint32_t t = 0; t < TOGETHER; t++)
                for (int e = 0; e < FOUR && j + t < a->k; e++) {
                    const float product = a->weights[j + t] * next[t].v[e];
                    sum.v[e] = a->adds || j + t > 0 ? sum.v[e] + product : product;
                }
        }
        *(four *)(a->out + from) = sum;
        return;
    }
    for (size_t e = from; e < from + n; e++) {
        float total = a->adds ? a->out[e] : a->weights[0] * a->in[0][e];
        for (uint32_t j = a->adds ? 0 : 1; j < a->k; j++)
            total = total + a->weights[j] * a->in[j][e];
        a->out[e] = total;
    }
}

typedef struct step_four_args {
    float *x;
    const float *x_decay, *g;
    float *m;
    sl_sgd sgd;
    size_t count;
    int aligned;
} step_four_args;

/* x and m of one element; m counts with momentum only. */
SL_SHARED void step_one(const sl_sgd *s, int has_momentum, float *x, float x_decay, float g, float *m) {
    float direction = g + s->weight_decay * x_decay;
    if (has_momentum) {
        *m = s->momentum * *m + direction;
        direction = s->nesterov ? direction + s->momentum * *m : *m;
    }
    *x -= s->learning_rate * direction;
}

SL_SHARED void step_four(const step_four_args *a, size_t i) {
    const size_t from = FOUR * i, end = from + smaller(a->count - from, FOUR);
    const int has_momentum = a->m != NULL;
    if (a->aligned && end - from == FOUR) {
        const four decay = *(const four *)(a->x_decay + from), g = *(const four *)(a->g + from);
        four x = *(const four *)(a->x + from), m = has_momentum ? *(const four *)(a->m + from) : x;
        for (int e = 0; e < FOUR; e++)
            step_one(&a->sgd, has_momentum, &x.v[e], decay.v[e], g.v[e], &m.v[e]);
        *(four *)(a->x + from) = x;
        if (has_momentum)
            *(four *)(a->m + from) = m;
        return;
    }
    for (size_t e = from; e < end; e++) {
        float m = has_momentum ? a->m[e] : 0;
        step_one(&a->sgd, has_momentum, &a->x[e], a->x_decay[e], a->g[e], &m);
        if (has_momentum)
            a->m[e] = m;
    }
}

typedef struct fill_four_args {
    float *v;
    float value;
    size_t count;
    int aligned;
} fill_four_args;

SL_SHARED void fill_four(const fill_four_args *a, size_t i) {
    const size_t from = FOUR * i, end = from + smaller(a->count - from, FOUR);
    if (a->aligned && end - from == FOUR) {
        const four all = {{a->value, a->value, a->value, a->value}};
        *(four *)(a->v + from) = all;
        return;
    }
    for (size_t e = from; e < end; e++)
        a->v[e] = a->value;
}

/* ---- sums, in the order of element/sum.h ---- */

/* Thread i sums (x - y)^2 over lane i % SUM_LANES of tile i / SUM_LANES; y may be NULL. */
typedef struct lanes_of_args {
    const float *x, *y;
    double *lanes; /* (tiles, SUM_LANES) */
    size_t count;
} lanes_of_args;

SL_SHARED void lanes_of(const lanes_of_args *a, size_t i) {
    const size_t start = i / SUM_LANES * SUM_TILE, end = smaller(start + SUM_TILE, a->count);
    double sum = 0;
    SL_UNROLL(16)
    for (size_t e = start + i % SUM_LANES; e < end; e += SUM_LANES) {
        const double difference = a->y != NULL ? (double)a->x[e] - a->y[e] : (double)a->x[e];
        sum += difference * difference;
    }
    a->lanes[i] = sum;
}

/* Thread i makes fold i % folds of sum i / folds. */
typedef struct fold_tiles_args {
    const double *lanes; /* (sums, tiles, SUM_LANES) */
    double *out;         /* (sums, folds) */
    size_t tiles, folds;
} fold_tiles_args;

SL_SHARED void fold_tiles(const fold_tiles_args *a, size_t i) {
    const double *lanes = a->lanes + i / a->folds * a->tiles * SUM_LANES;
    double sum = 0;
    SL_UNROLL(4)
    for (size_t t = i % a->folds; t < a->tiles; t += SUM_FOLDS)
        sum += sum_in_order(lanes + t * SUM_LANES, SUM_LANES);
    a->out[i] = sum;
}

typedef struct sum_of_folds_args {
    const double *folds;
    double *out;
    size_t count;
} sum_of_folds_args;

SL_SHARED void sum_of_folds(const sum_of_folds_args *a, size_t i) {
    a->out[i] = sum_in_order(a->folds, a->count);
}

/* ---- scales of buckets ---- */

/* Thread i looks at every `splits`-th element of bucket i / splits. */
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

/* Thread i sums lane i % SUM_LANES of tile i / SUM_LANES, of which each bucket has as many; the last bucket's last ones may be empty. */
typedef struct bucket_lanes_args {
    const float *v;
    coding_scale scale;
    size_t dimension, bucket, buckets, tiles; /* tiles: of a bucket */
    double *lanes;       /* (buckets, tiles, SUM_LANES) and, SCALE_SIDES, as many for the elements < 0 behind them */
    uint32_t *negatives; /* (buckets) zero; SCALE_SIDES */
} bucket_lanes_args;

SL_SHARED void bucket_lanes(const bucket_lanes_args *a, size_t i) {
    const size_t tile = i / SUM_LANES, b = tile / a->tiles, lane = i % SUM_LANES;
    const size_t start = b * a->bucket + tile % a->tiles * SUM_TILE, rest = smaller((b + 1) * a->bucket, a->dimension);
    const size_t end = smaller(start + SUM_TILE, rest), first = start + (lane + SUM_LANES - start % SUM_LANES) % SUM_LANES;
    double up = 0, down = 0;
    uint32_t negatives = 0;
    SL_UNROLL(16)
    for (size_t e = first; e < end; e += SUM_LANES) {
        const float v = a->v[e];
        if (a->scale == SCALE_L2) {
            up += (double)v * v;
        } else if (a->scale == SCALE_MEAN) {
            up += (double)float_of(float_bits(v) & FLOAT_MAGNITUDE);
        } else {
            up += v < 0 ? 0.0 : (double)v;
            down += v < 0 ? (double)v : 0.0;
            negatives += v < 0;
        }
    }
    a->lanes[i] = up;
    if (a->scale == SCALE_SIDES) {
        a->lanes[a->buckets * a->tiles * SUM_LANES + i] = down;
        ATOMIC_ADD(&a->negatives[b], negatives);
    }
}

/* The scales of bucket i from what was gathered; *refused counts buckets that cannot be sent. */
typedef struct bucket_scale_args {
    coding_scale scale;
    coding_code code;
    uint32_t levels;
    const uint32_t *largest, *negatives;
    const double *folds; /* (1 or 2, buckets, fold_count) */
    size_t dimension, bucket, buckets, fold_count;
    float *scales;       /* (buckets, scale_floats) */
    rounding *roundings; /* (buckets) where codes are levels */
    uint32_t *refused;
} bucket_scale_args;

#define FLOAT_LARGEST 3.40282346638528859811704183484516925e+38

SL_SHARED void bucket_scale(const bucket_scale_args *a, size_t i) {
    const size_t n = smaller(a->bucket, a->dimension - i * a->bucket);
    double scale = 0;
    if (a->scale == SCALE_MAX) {
        a->scales[i] = float_of(a->largest[i]);
        if (a->largest[i] >= FLOAT_INFINITY)
            ATOMIC_ADD(a->refused, 1);
    } else if (a->scale == SCALE_SIDES) {
        const uint32_t negatives = a->negatives[i];
        const double up = sum_in_order(a->folds + a->fold_count * i, a->fold_count);
        const double down = sum_in_order(a->folds + a->fold_count * (a->buckets + i), a->fold_count);
        const float high = negatives < n ? (float)(up / (double)(n - negatives)) : 0;
        const float low = negatives > 0 ? (float)(down / (double)negatives) : 0;
        a->scales[2 * i] = high;
        a->scales[2 * i + 1] = low;
        if ((float_bits(high) & FLOAT_MAGNITUDE) >= FLOAT_INFINITY || (float_bits(low) & FLOAT_MAGNITUDE) >= FLOAT_INFINITY)
            ATOMIC_ADD(a->refused, 1);
    } else {
        const double sum = sum_in_order(a->folds + a->fold_count * i, a->fold_count);
        scale = a->scale == SCALE_L2 ? sqrt(sum) : sum / (double)n;
        a->scales[i] = (float)scale;
        if (!(scale <= FLOAT_LARGEST))
            ATOMIC_ADD(a->refused, 1);
    }
    if (a->code == CODE_LEVELS || a->code == CODE_TERNARY)
        a->roundings[i] = rounding_of(a->levels, a->scales[i]);
}

/* ---- dense codes ---- */

/* Where a message's parts stand. */
typedef struct part_layout {
    uint8_t *parts;
    size_t stride, dimension, part_elements;
} part_layout;

/* Scales of the buckets that elements [from, from + count) touch. */
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
        ((float *)(a->layout.parts + p * a->layout.stride))[j] = a->scales[a->scale_floats * (from / a->bucket) + j];
}

/* Eight elements, read at once where `aligned` says that v lies on 16 bytes; of fewer the rest is 0. */
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

/* Four codes of at most 16 bits, the first one lowest. */
SL_SHARED uint64_t pack_four(const uint32_t c[FOUR], uint32_t width) {
    return (c[0] | c[1] << width) | (uint64_t)(c[2] | c[3] << width) << 2 * width;
}

/* Eight codes as low | high << 64. */
SL_SHARED void pack_eight(const uint32_t c[EIGHT], uint32_t width, uint64_t *low, uint64_t *high) {
    const uint64_t first = pack_four(c, width), second = pack_four(c + FOUR, width);
    *low = width < 16 ? first | second << 4 * width : first;
    *high = second >> (WORD_BITS - 4 * width);
}

SL_SHARED void unpack_eight(uint64_t low, uint64_t high, uint32_t width, uint32_t c[EIGHT]) {
    const uint64_t second = width < 16 ? low >> 4 * width | high << (WORD_BITS - 4 * width) : high;
    const uint32_t mask = (1u << width) - 1;
    for (uint32_t e = 0; e < FOUR; e++) {
        c[e] = (uint32_t)(low >> e * width) & mask;
        c[FOUR + e] = (uint32_t)(second >> e * width) & mask;
    }
}

/* The lowest `bytes` of low | high << 64. */
SL_SHARED void put_bytes(uint8_t *out, uint64_t low, uint64_t high, size_t bytes) {
    for (size_t b = 0; b < bytes; b++)
        out[b] = (uint8_t)(b < 8 ? low >> 8 * b : high >> 8 * (b - 8));
}

/* The same in words of 32 or 16 bits, on which `out` then lies, where whole ones of them make up the bytes. */
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

/* A thread codes elements [8 i, 8 i + 8), into `width` bytes. From the end: of a pass before, that is what a cache still holds. */
typedef struct encode_eight_args {
    part_layout layout;
    const float *v;
    coding_code code;
    uint32_t width, scale_floats, magnitude_limit;
    float tau;
    size_t bucket, buckets;
    size_t buckets_of_part; /* 0: a part may hold pieces of some */
    const rounding *roundings;
    sl_rng_key key;
    uint32_t *refused;
    int aligned; /* v */
} encode_eight_args;

SL_SHARED uint32_t code_of(coding_code code, float tau, uint32_t width, rounding r, float v, uint32_t random) {
    switch (code) {
    case CODE_FLOAT16:
        return float16_code(v);
    case CODE_BFLOAT16:
        return bfloat16_code(v);
    case CODE_LEVELS:
        return level_code(r, width - 1, v, random);
    case CODE_SIGN:
        return v < 0;
    case CODE_TERNARY:
        return ternary_code(level_code(r, 1, v, random));
    case CODE_NATURAL:
        return natural_code(v, random);
    case CODE_THRESHOLD:
        return threshold_code(tau, v);
    }
    return 0;
}

SL_SHARED int is_random(coding_code code) {
    return code == CODE_LEVELS || code == CODE_TERNARY || code == CODE_NATURAL;
}

SL_SHARED int is_scaled_rounding(coding_code code) {
    return code == CODE_LEVELS || code == CODE_TERNARY;
}

/* Scales before the codes of a part that begins at element `start`. */
SL_SHARED size_t scales_of_part(const encode_eight_args *a, size_t part, size_t start) {
    if (a->scale_floats == 0 || a->buckets == 1)
        return a->scale_floats;
    if (a->buckets_of_part > 0)
        return a->scale_floats * smaller(a->buckets - part * a->buckets_of_part, a->buckets_of_part);
    return a->scale_floats * buckets_touched(a->bucket, start, smaller(a->layout.dimension - start, a->layout.part_elements));
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

/* Each code is compiled on its own, and has nothing to choose between from element to element. */
#define SL_CODES(X) X(CODE_FLOAT16) X(CODE_BFLOAT16) X(CODE_LEVELS) X(CODE_SIGN) X(CODE_TERNARY) X(CODE_NATURAL) X(CODE_THRESHOLD)

SL_SHARED void encode_eight_as(const encode_eight_args *a, size_t thread, coding_code code) {
    const size_t i = (a->layout.dimension - 1) / EIGHT - thread;
    const size_t from = EIGHT * i, n = smaller(a->layout.dimension - from, EIGHT);
    const size_t part = quotient(from, a->layout.part_elements), start = part * a->layout.part_elements;
    size_t b = a->buckets > 1 ? quotient(from, a->bucket) : 0;
    /* Where another bucket begins: most often not among these. */
    uint32_t next = is_scaled_rounding(code) ? (uint32_t)smaller((b + 1) * a->bucket - from, EIGHT) : (uint32_t)EIGHT;
    float v[EIGHT];
    uint32_t random[4] = {0, 0, 0, 0}, codes[EIGHT];
    uint64_t low, high;
    rounding r = {1, 0, 1, 16};
    read_eight(a->v + from, n, a->aligned, v);
    if (is_scaled_rounding(code))
        r = a->roundings[b];
    if (is_random(code)) {
        philox_block(&a->key, (uint32_t)(from / PHILOX_WINDOWS), PHILOX_ROUNDS_QUICK, random);
        if (from % PHILOX_WINDOWS != 0)
            philox_half_turn(random);
    }
    if (!is_scaled_rounding(code) && a->scale_floats == 0)
        refuse_large(a, v);
    if (n == EIGHT && next == EIGHT) {
        SL_UNROLL(8)
        for (uint32_t e = 0; e < EIGHT; e++)
            codes[e] = code_of(code, a->tau, a->width, r, v[e], philox_window(random, e));
    } else {
        SL_UNROLL(8)
        for (uint32_t e = 0; e < EIGHT; e++) {
            if (e == next && e < n) {
                next = (uint32_t)smaller(next + a->bucket, EIGHT);
                r = a->roundings[++b];
            }
            codes[e] = e < n ? code_of(code, a->tau, a->width, r, v[e], philox_window(random, e)) : 0;
        }
    }
    pack_eight(codes, a->width, &low, &high);
    uint8_t *out = a->layout.parts + part * a->layout.stride + sizeof(float) * scales_of_part(a, part, start) + (from - start) / EIGHT * a->width;
    if (n == EIGHT)
        put_words(out, low, high, a->width);
    else
        put_bytes(out, low, high, (n * a->width + 7) / 8);
}

SL_SHARED void encode_eight(const encode_eight_args *a, size_t i) {
    switch (a->code) {
#define ENCODE_AS(code)                                                                                                                \
    case code:                                                                                                                         \
        encode_eight_as(a, i, code);                                                                                                   \
        break;
        SL_CODES(ENCODE_AS)
    }
}

/* Thread i adds codes [8 i, 8 i + 8) of one part, whose elements are [from, from + count), to acc. */
typedef struct add_eight_args {
    const float *scales;    /* of the buckets that the part touches */
    const uint8_t *packed;  /* codes */
    float *acc;             /* of the part's first element */
    coding_code code;
    uint32_t width, scale_floats, levels;
    float weight, tau;
    size_t bucket, first;   /* where in its bucket the part's first element is */
    size_t count;
    int aligned;            /* acc */
} add_eight_args;

typedef struct code_units {
    float plus, minus; /* of codes 0 and 1 of signs; the first of others */
} code_units;

SL_SHARED code_units units_of(const add_eight_args *a, coding_code code, const float *scale) {
    code_units u = {a->weight, 0};
    if (code == CODE_LEVELS)
        u.plus = a->weight * (scale[0] / (float)a->levels);
    else if (code == CODE_TERNARY)
        u.plus = a->weight * scale[0];
    else if (code == CODE_THRESHOLD)
        u.plus = a->weight * a->tau;
    else if (code == CODE_SIGN) {
        u.plus = a->weight * scale[0];
        u.minus = a->scale_floats == 2 ? a->weight * scale[1] : -u.plus;
    }
    return u;
}

SL_SHARED float increment_of(coding_code code, uint32_t width, code_units u, uint32_t c) {
    switch (code) {
    case CODE_FLOAT16:
        return u.plus * float16_value(c);
    case CODE_BFLOAT16:
        return u.plus * bfloat16_value(c);
    case CODE_LEVELS:
        return u.plus * level_value(c, width - 1);
    case CODE_SIGN:
        return c ? u.minus : u.plus;
    case CODE_TERNARY:
    case CODE_THRESHOLD:
        return u.plus * ternary_value(c);
    case CODE_NATURAL:
        return u.plus * natural_value(c);
    }
    return 0;
}

SL_SHARED void add_eight_as(const add_eight_args *a, size_t i, coding_code code) {
    const size_t at = EIGHT * i, n = smaller(a->count - at, EIGHT), b = a->first + a->count > a->bucket ? quotient(a->first + at, a->bucket) : 0;
    uint32_t next = (uint32_t)smaller((b + 1) * a->bucket - (a->first + at), EIGHT); /* where another bucket begins */
    const float *scale = a->scales + a->scale_floats * b;
    const uint8_t *packed = a->packed + i * a->width;
    float sums[EIGHT];
    uint32_t codes[EIGHT];
    uint64_t low, high;
    read_eight(a->acc + at, n, a->aligned, sums);
    if (n == EIGHT)
        get_words(packed, a->width, &low, &high);
    else
        get_bytes(packed, (n * a->width + 7) / 8, &low, &high);
    code_units u = units_of(a, code, scale);
    unpack_eight(low, high, a->width, codes);
    if (n == EIGHT && next == EIGHT) {
        SL_UNROLL(8)
        for (uint32_t e = 0; e < EIGHT; e++)
            sums[e] += increment_of(code, a->width, u, codes[e]);
    } else {
        SL_UNROLL(8)
        for (uint32_t e = 0; e < EIGHT; e++) {
            if (e == next && e < n) {
                next = (uint32_t)smaller(next + a->bucket, EIGHT);
                scale += a->scale_floats;
                u = units_of(a, code, scale);
            }
            sums[e] += increment_of(code, a->width, u, codes[e]);
        }
    }
    if (a->aligned && n == EIGHT) {
        four *to = (four *)(a->acc + at);
        const four first = {{sums[0], sums[1], sums[2], sums[3]}}, second = {{sums[4], sums[5], sums[6], sums[7]}};
        to[0] = first;
        to[1] = second;
        return;
    }
    for (size_t e = 0; e < n; e++)
        a->acc[at + e] = sums[e];
}

SL_SHARED void add_eight(const add_eight_args *a, size_t i) {
    switch (a->code) {
#define ADD_AS(code)                                                                                                                   \
    case code:                                                                                                                         \
        add_eight_as(a, i, code);                                                                                                      \
        break;
        SL_CODES(ADD_AS)
    }
}

/* ---- the k-th largest magnitude, digit by digit from the top ---- */

typedef struct selection {
    uint32_t prefix; /* the digits so far; at the end the least magnitude that is kept */
    uint32_t left;   /* of the class `prefix`, so many are kept */
} selection;

/* One thread. */
typedef struct begin_selection_args {
    selection *chosen;
    uint32_t k;
} begin_selection_args;

SL_SHARED void begin_selection(const begin_selection_args *a, size_t i) {
    a->chosen[i].prefix = 0;
    a->chosen[i].left = a->k;
}

/* Thread i counts the classes of elements [64 i, 64 i + 64): of all of them, or of those in `equal`, which have the prefix. */
typedef struct count_digits_args {
    const float *v;
    size_t count;
    const uint64_t *equal; /* (words); NULL: all */
    uint32_t shift, width;
    uint32_t *classes; /* (DIGIT_CLASSES) zero */
    int aligned;       /* v */
} count_digits_args;

SL_SHARED uint32_t magnitude_of(float v) {
    return float_bits(v) & FLOAT_MAGNITUDE;
}

SL_SHARED uint32_t class_of(const count_digits_args *a, float v) {
    return magnitude_of(v) >> a->shift & ((1u << a->width) - 1);
}

SL_SHARED void count_digits(const count_digits_args *a, size_t i) {
    const size_t n = smaller(a->count - WORD_BITS * i, WORD_BITS);
    for (uint64_t word = a->equal != NULL ? a->equal[i] : ~(uint64_t)0 >> (WORD_BITS - n); word != 0; word &= word - 1)
        ATOMIC_ADD(&a->classes[class_of(a, a->v[WORD_BITS * i + LOWEST_BIT(word)])], 1);
}

/* One thread. Leaves the classes zero. */
typedef struct pick_digit_args {
    uint32_t *classes;
    selection *chosen;
    uint32_t width;
} pick_digit_args;

SL_SHARED void pick_digit(const pick_digit_args *a, size_t i) {
    uint32_t digit = (1u << a->width) - 1, left = a->chosen[i].left;
    for (; a->classes[digit] < left; digit--)
        left -= a->classes[digit];
    a->chosen[i].prefix = a->chosen[i].prefix << a->width | digit;
    a->chosen[i].left = left;
    for (uint32_t c = 0; c < 1u << a->width; c++)
        a->classes[c] = 0;
}

/* ---- bitmaps: thread i has elements [64 i, 64 i + 64) ---- */

/* By the first digit: above the prefix, and equal to it. */
typedef struct mark_top_args {
    const float *v;
    size_t dimension;
    const selection *chosen;
    uint32_t shift;
    uint64_t *above, *equal; /* (words) */
    int aligned;             /* v */
} mark_top_args;

SL_SHARED void mark_top(const mark_top_args *a, size_t i) {
    const size_t from = WORD_BITS * i, n = smaller(a->dimension - from, WORD_BITS);
    const uint32_t prefix = a->chosen->prefix;
    uint64_t above = 0, equal = 0;
    SL_UNROLL(4)
    for (size_t e = 0; e < n; e += EIGHT) {
        float v[EIGHT];
        uint32_t higher = 0, same = 0;
        read_eight(a->v + from + e, smaller(n - e, EIGHT), a->aligned, v);
        SL_UNROLL(8)
        for (uint32_t b = 0; b < EIGHT; b++) {
            const uint32_t digit = magnitude_of(v[b]) >> a->shift;
            higher |= (uint32_t)(digit > prefix) << b;
            same |= (uint32_t)(digit == prefix) << b;
        }
        above |= (uint64_t)higher << e;
        equal |= (uint64_t)same << e;
    }
    const uint64_t there = ~(uint64_t)0 >> (WORD_BITS - n);
    a->above[i] = above & there;
    a->equal[i] = equal & there;
}

/* By a digit that follows: of those that are still equal, what is above the prefix, and what is equal to it. */
typedef struct keep_digit_args {
    const float *v;
    const selection *chosen;
    uint32_t shift;
    uint64_t *above, *equal; /* (words) */
    uint64_t *counts;        /* (words) how many are above | equal << 32 */
} keep_digit_args;

SL_SHARED void keep_digit(const keep_digit_args *a, size_t i) {
    const uint32_t prefix = a->chosen->prefix;
    uint64_t above = 0, equal = 0;
    for (uint64_t word = a->equal[i]; word != 0; word &= word - 1) {
        const uint32_t digits = magnitude_of(a->v[WORD_BITS * i + LOWEST_BIT(word)]) >> a->shift;
        above |= digits > prefix ? word & (0 - word) : 0;
        equal |= digits == prefix ? word & (0 - word) : 0;
    }
    above |= a->above[i];
    a->above[i] = above;
    a->equal[i] = equal;
    a->counts[i] = BITS_SET(above) | (uint64_t)BITS_SET(equal) << 32;
}

/* Of equal magnitudes the lower indices. */
typedef struct settle_ties_args {
    uint64_t *above;
    const uint64_t *equal;
    const selection *chosen;
    uint64_t *ranks; /* (words) in: of above | equal << 32, before each word; out: of what is kept */
} settle_ties_args;

SL_SHARED void settle_ties(const settle_ties_args *a, size_t i) {
    const uint64_t before = a->ranks[i];
    const uint32_t left = a->chosen->left, first = (uint32_t)(before >> 32);
    uint64_t equal = a->equal[i], word = a->above[i];
    for (uint32_t rank = first; equal != 0 && rank < left; rank++, equal &= equal - 1)
        word |= equal & (0 - equal);
    a->above[i] = word;
    a->ranks[i] = (uint32_t)before + (first < left ? first : left);
}

/* Sums of FAN counts each; then each count becomes the sum of those before it. Two counts may share a number: neither has more than 32 bits. */
typedef struct scan_up_args {
    const uint64_t *counts;
    uint64_t *sums; /* (ceil(count / FAN)) */
    size_t count;
} scan_up_args;

SL_SHARED void scan_up(const scan_up_args *a, size_t i) {
    const size_t end = smaller(a->count, (i + 1) * FAN);
    uint64_t sum = 0;
    SL_UNROLL(16)
    for (size_t e = i * FAN; e < end; e++)
        sum += a->counts[e];
    a->sums[i] = sum;
}

typedef struct scan_down_args {
    uint64_t *counts;
    const uint64_t *sums; /* before each group; NULL: one group */
    size_t count;
} scan_down_args;

SL_SHARED void scan_down(const scan_down_args *a, size_t i) {
    const size_t end = smaller(a->count, (i + 1) * FAN);
    uint64_t before = a->sums != NULL ? a->sums[i] : 0;
    SL_UNROLL(8)
    for (size_t e = i * FAN; e < end; e++) {
        const uint64_t count = a->counts[e];
        a->counts[e] = before;
        before += count;
    }
}

/* ---- sparse messages ---- */

/* The word's elements in order. */
typedef struct list_word_args {
    const uint64_t *words;
    const uint64_t *ranks; /* (words) */
    uint32_t *indices;     /* (entries) */
} list_word_args;

SL_SHARED void list_word(const list_word_args *a, size_t i) {
    uint32_t *out = a->indices + a->ranks[i];
    for (uint64_t word = a->words[i]; word != 0; word &= word - 1)
        *out++ = (uint32_t)(WORD_BITS * i) + LOWEST_BIT(word);
}

SL_SHARED void put_value(uint8_t *part, size_t slot, float v, uint32_t *refused) {
    ((float *)part)[slot] = v;
    if ((float_bits(v) & FLOAT_MAGNITUDE) >= FLOAT_INFINITY)
        ATOMIC_ADD(refused, 1);
}

/* The value of entry i, where a part is a range of entries. */
typedef struct gather_entry_args {
    part_layout layout;
    const float *v;
    const uint32_t *indices;
    uint32_t *refused;
} gather_entry_args;

SL_SHARED void gather_entry(const gather_entry_args *a, size_t i) {
    const size_t part = i / a->layout.part_elements;
    put_value(a->layout.parts + part * a->layout.stride, i - part * a->layout.part_elements, a->v[a->indices[i]], a->refused);
}

/* The values of word i's elements, where a part is a range of elements; counts: how many values each part has room for and gets. */
typedef struct gather_word_args {
    part_layout layout;
    const float *v;
    const uint64_t *words;
    const uint64_t *ranks;
    const uint32_t *counts;
    uint32_t *refused;
} gather_word_args;

SL_SHARED void gather_word(const gather_word_args *a, size_t i) {
    const size_t part = WORD_BITS * i / a->layout.part_elements;
    uint8_t *out = a->layout.parts + part * a->layout.stride;
    size_t slot = a->ranks[i] - a->ranks[part * a->layout.part_elements / WORD_BITS];
    for (uint64_t word = a->words[i]; word != 0 && slot < a->counts[part]; word &= word - 1, slot++)
        put_value(out, slot, a->v[WORD_BITS * i + LOWEST_BIT(word)], a->refused);
}

/* Thread i packs eight indices of part i / groups, behind its values. */
typedef struct place_indices_args {
    part_layout layout; /* part_elements: entries; dimension: k */
    const uint32_t *indices;
    size_t groups;
    uint32_t width;
} place_indices_args;

SL_SHARED void place_indices(const place_indices_args *a, size_t i) {
    const size_t part = i / a->groups, first = part * a->layout.part_elements, at = i % a->groups * EIGHT;
    const size_t count = smaller(a->layout.dimension - first, a->layout.part_elements);
    if (at >= count)
        return;
    const size_t n = smaller(count - at, EIGHT);
    uint8_t *out = a->layout.parts + part * a->layout.stride + sizeof(float) * count + at / EIGHT * a->width;
    uint64_t waiting = 0;
    uint32_t filled = 0;
    for (size_t e = 0; e < n; e++) {
        waiting |= (uint64_t)a->indices[first + at + e] << filled;
        for (filled += a->width; filled >= 8; filled -= 8, waiting >>= 8)
            *out++ = (uint8_t)waiting;
    }
    if (filled > 0)
        *out = (uint8_t)waiting;
}

/* How many of `words`' bits lie in part i, at most its room. */
typedef struct count_parts_args {
    const uint64_t *words;
    const uint64_t *ranks;
    size_t dimension, part_elements, room, room_last, parts;
    uint32_t *counts; /* (parts) */
} count_parts_args;

SL_SHARED void count_parts(const count_parts_args *a, size_t i) {
    const size_t end = smaller((i + 1) * a->part_elements, a->dimension), last = (end - 1) / WORD_BITS;
    const size_t count = a->ranks[last] + BITS_SET(a->words[last]) - a->ranks[i * a->part_elements / WORD_BITS];
    a->counts[i] = (uint32_t)smaller(count, i + 1 == a->parts ? a->room_last : a->room);
}

/* The word's bits behind its part's values. */
typedef struct place_bitmap_args {
    part_layout layout;
    const uint64_t *words;
    const uint32_t *counts; /* (parts) */
} place_bitmap_args;

SL_SHARED void place_bitmap(const place_bitmap_args *a, size_t i) {
    const size_t part = WORD_BITS * i / a->layout.part_elements, start = part * a->layout.part_elements;
    const size_t n = smaller(a->layout.dimension - WORD_BITS * i, WORD_BITS);
    uint8_t *bitmap = a->layout.parts + part * a->layout.stride + sizeof(float) * a->counts[part];
    put_bytes(bitmap + (WORD_BITS * i - start) / 8, a->words[i], 0, (n + 7) / 8);
}

/* ---- random-k: the stream's words, rejected and repeated ones left out, until there are k different elements ---- */

/* A pass takes at most as many words as elements are missing: it cannot find too many, and so stops where the CPU, word by word, stops. */
typedef struct draw_state {
    uint64_t next; /* word of the stream */
    uint32_t missing, found;
} draw_state;

/* One thread. */
typedef struct begin_draw_args {
    draw_state *state;
    uint32_t missing;
} begin_draw_args;

SL_SHARED void begin_draw(const begin_draw_args *a, size_t i) {
    a->state[i].next = 0;
    a->state[i].missing = a->missing;
    a->state[i].found = 0;
}

typedef struct draw_word_args {
    draw_state *state;
    uint64_t *words; /* (words) */
    sl_rng_key key;
    uint32_t dimension;
} draw_word_args;

/* Draws word `at`; 1: a new element. */
SL_SHARED uint32_t draw_one(const draw_word_args *a, uint64_t at) {
    uint32_t block[4], index;
    philox_block(&a->key, (uint32_t)(at / 4), PHILOX_ROUNDS, block);
    if (!philox_below(block[at % 4], a->dimension, &index))
        return 0;
    const uint64_t bit = (uint64_t)1 << index % WORD_BITS;
    return (ATOMIC_OR(&a->words[index / WORD_BITS], bit) & bit) == 0;
}

SL_SHARED void draw_word(const draw_word_args *a, size_t i) {
    if (i < a->state->missing && draw_one(a, a->state->next + i))
        ATOMIC_ADD(&a->state->found, 1);
}

/* One thread, after a pass. */
typedef struct advance_draw_args {
    draw_state *state;
    uint32_t threads; /* of the pass */
} advance_draw_args;

SL_SHARED void advance_draw(const advance_draw_args *a, size_t i) {
    draw_state *s = a->state + i;
    s->next += smaller(s->missing, a->threads);
    s->missing -= s->found;
    s->found = 0;
}

/* One thread: the few that are still missing. */
typedef draw_word_args finish_draw_args;

SL_SHARED void finish_draw(const finish_draw_args *a, size_t i) {
    draw_state *s = a->state + i;
    for (; s->missing > 0; s->next++)
        s->missing -= draw_one(a, s->next);
}

/* Those left out, where they were drawn; and how many bits each word has. */
typedef struct settle_subset_args {
    uint64_t *words;
    uint64_t *counts;
    size_t dimension;
    int others;
} settle_subset_args;

SL_SHARED void settle_subset(const settle_subset_args *a, size_t i) {
    const size_t n = smaller(a->dimension - WORD_BITS * i, WORD_BITS);
    if (a->others)
        a->words[i] = ~a->words[i] & (n < WORD_BITS ? ((uint64_t)1 << n) - 1 : ~(uint64_t)0);
    a->counts[i] = BITS_SET(a->words[i]);
}

/* ---- random dropping: elements whose half-word is below `draws`; thread i has elements from + [64 i, 64 i + 64) ---- */

typedef struct mark_kept_args {
    uint64_t *words;
    uint64_t *counts;
    sl_rng_key key;
    uint32_t draws;
    size_t from, count;
} mark_kept_args;

SL_SHARED void mark_kept(const mark_kept_args *a, size_t i) {
    const size_t n = smaller(a->count - WORD_BITS * i, WORD_BITS);
    uint64_t word = 0;
    for (size_t e = 0; e < n; e += EIGHT) {
        uint32_t block[4];
        uint32_t kept = 0;
        philox_block(&a->key, (uint32_t)((a->from + WORD_BITS * i + e) / EIGHT), PHILOX_ROUNDS_QUICK, block);
        SL_UNROLL(8)
        for (uint32_t h = 0; h < EIGHT; h++)
            kept |= (uint32_t)(philox_half(block, h) < a->draws) << h;
        word |= (uint64_t)kept << e;
    }
    word &= ~(uint64_t)0 >> (WORD_BITS - n);
    a->words[i] = word;
    a->counts[i] = BITS_SET(word);
}

/* ---- sparse messages, decoded ---- */

/* Entry i, whose element is known. */
typedef struct add_entry_args {
    const float *values;
    const uint32_t *indices;
    float weight;
    float *acc;
} add_entry_args;

SL_SHARED void add_entry(const add_entry_args *a, size_t i) {
    a->acc[a->indices[i]] += a->weight * a->values[i];
}

/* Entry i, whose index is packed behind the values. */
typedef struct add_indexed_args {
    const float *values;
    const uint8_t *packed;
    uint32_t width;
    float weight;
    float *acc;
} add_indexed_args;

SL_SHARED void add_indexed(const add_indexed_args *a, size_t i) {
    const size_t bit = i * a->width;
    uint64_t word = 0;
    for (size_t b = 0; b < (bit % 8 + a->width + 7) / 8; b++)
        word |= (uint64_t)a->packed[bit / 8 + b] << 8 * b;
    a->acc[word >> bit % 8 & (((uint64_t)1 << a->width) - 1)] += a->weight * a->values[i];
}

/* Word i of a part's bitmap, which need not lie on eight bytes. */
typedef struct load_bitmap_args {
    const uint8_t *bitmap;
    size_t elements;
    uint64_t *words;
    uint64_t *counts;
} load_bitmap_args;

SL_SHARED void load_bitmap(const load_bitmap_args *a, size_t i) {
    const size_t bytes = (smaller(a->elements - WORD_BITS * i, WORD_BITS) + 7) / 8;
    uint64_t word = 0;
    for (size_t b = 0; b < bytes; b++)
        word |= (uint64_t)a->bitmap[8 * i + b] << 8 * b;
    a->words[i] = word;
    a->counts[i] = BITS_SET(word);
}

/* The word's elements, from acc on; at most `room` values. */
typedef struct add_word_args {
    const float *values;
    const uint64_t *words;
    const uint64_t *ranks;
    size_t room;
    float weight;
    float *acc;
} add_word_args;

SL_SHARED void add_word(const add_word_args *a, size_t i) {
    size_t rank = a->ranks[i];
    for (uint64_t word = a->words[i]; word != 0 && rank < a->room; word &= word - 1, rank++)
        a->acc[WORD_BITS * i + LOWEST_BIT(word)] += a->weight * a->values[rank];
}

#endif
