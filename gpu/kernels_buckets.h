/* kernels_buckets.h - levels whose buckets lie whole in a block: scales and codes in one launch,
 * which reads the vector once; see kernels.h. */
#ifndef SL_GPU_KERNELS_BUCKETS_H
#define SL_GPU_KERNELS_BUCKETS_H

#include "gpu/kernels_codes.h"

enum {
    BLOCK_ELEMENTS = BLOCK_THREADS * EIGHT,
    BUCKET_LEAST = BLOCK_ELEMENTS / BLOCK_TILES /* elements: a thread has a lane of one */
};

typedef struct encode_buckets_args {
    encode_eight_args codes; /* without roundings */
    coding_scale scale;      /* SCALE_MAX or SCALE_L2 */
    uint32_t levels;
} encode_buckets_args;

typedef struct encode_buckets_memory {
    encode_eight_memory codes;
    four v[BLOCK_ELEMENTS / FOUR];
    double lanes[BLOCK_THREADS];
    uint32_t largest[BLOCK_THREADS];
    rounding roundings[BLOCK_TILES];
} encode_buckets_memory;

SL_SHARED void load_elements(const encode_eight_args *a, four *v, block_codes b, uint32_t thread) {
    SL_UNROLL(2)
    for (uint32_t k = thread; k < BLOCK_ELEMENTS / FOUR; k += BLOCK_THREADS)
        v[k] = read_four(a->v, b.end, a->aligned, b.from + (size_t)FOUR * k);
}

/* What is beyond the end is 0, and changes neither. */
SL_SHARED void find_in_lane(const encode_buckets_args *a, encode_buckets_memory *m,
                            uint32_t thread) {
    const uint32_t bucket = (uint32_t)a->codes.scales.bucket;
    const float *v = (const float *)m->v + thread / SUM_LANES * bucket;
    double sum = 0;
    uint32_t largest = 0;
    SL_UNROLL(8)
    for (uint32_t e = thread % SUM_LANES; e < bucket; e += SUM_LANES) {
        const uint32_t magnitude = float_bits(v[e]) & FLOAT_MAGNITUDE;
        if (a->scale == SCALE_MAX)
            largest = magnitude > largest ? magnitude : largest;
        else
            sum += (double)v[e] * v[e];
    }
    m->lanes[thread] = sum;
    m->largest[thread] = largest;
}

SL_SHARED float scale_in_block(const encode_buckets_args *a, const encode_buckets_memory *m,
                               uint32_t bucket) {
    uint32_t largest = 0;
    if (a->scale == SCALE_L2)
        return scale_of_sum(sqrt(sum_lanes(m->lanes + bucket * SUM_LANES)), a->codes.refused);
    for (uint32_t l = 0; l < SUM_LANES; l++)
        if (m->largest[bucket * SUM_LANES + l] > largest)
            largest = m->largest[bucket * SUM_LANES + l];
    return scale_of_largest(largest, a->codes.refused);
}

enum { encode_buckets_PHASES = 5 };
SL_SHARED void encode_buckets(const encode_buckets_args *a, encode_buckets_memory *m,
                              block_place at, uint32_t phase) {
    const block_codes b = codes_of_block(&a->codes, at);
    const size_t bucket = a->codes.scales.bucket;
    if (b.from >= b.end)
        return;
    const uint32_t buckets = (uint32_t)ceiling(b.end - b.from, bucket), t = at.thread;
    const code_source source = {(const float *)(m->v + 2 * t), 1, m->roundings + EIGHT * t / bucket,
                                NULL};
    float *scales = (float *)(void *)(a->codes.layout.parts + b.part * a->codes.layout.stride);
    switch (phase) {
    case 0:
        draw_windows(&a->codes, &m->codes, b, t);
        load_elements(&a->codes, m->v, b, t);
        break;
    case 1:
        if (t / SUM_LANES < buckets)
            find_in_lane(a, m, t);
        break;
    case 2:
        if (t < buckets) {
            const float scale = scale_in_block(a, m, t);
            m->roundings[t] = rounding_of(a->levels, scale);
            scales[(b.from - b.start) / bucket + t] = scale;
        }
        break;
    case 3:
        if (b.from + (size_t)EIGHT * t < b.end)
            encode_own(&a->codes, &m->codes, b, t, source);
        break;
    case 4:
        write_codes(&a->codes, &m->codes, b, t);
        break;
    }
}

#endif
