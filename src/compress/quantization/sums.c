/* sums.c - see sums.h. Sums are of doubles: squares of floats are exact, with which a fused
 * multiplication and addition is the same as two. */
#include "compress/quantization/sums.h"

#include <math.h>
#include <string.h>

#include "compress/quantization/lanes.h"

/* n: a multiple of SUM_GROUP, v[0] for lane 0. */
typedef void sum_kernel(bucket_sums *sums, const float *v, size_t n);

static void squares_plain(bucket_sums *sums, const float *v, size_t n) {
    double *lanes = sums->lanes[0];
    for (size_t i = 0; i < n; i += SUM_LANES)
        for (int l = 0; l < SUM_LANES; l++)
            lanes[l] += (double)v[i + l] * v[i + l];
}

static void magnitudes_plain(bucket_sums *sums, const float *v, size_t n) {
    double *lanes = sums->lanes[0];
    for (; n > 0; v += SUM_GROUP, n -= SUM_GROUP)
        for (int l = 0; l < SUM_LANES; l++)
            lanes[l] += sum_of_four(fabsf(v[l]), fabsf(v[SUM_LANES + l]),
                                    fabsf(v[2 * SUM_LANES + l]), fabsf(v[3 * SUM_LANES + l]));
}

static void sides_plain(bucket_sums *sums, const float *v, size_t n) {
    double *up = sums->lanes[0], *down = sums->lanes[1];
    uint64_t negatives = 0;
    for (size_t i = 0; i < n; i += SUM_LANES)
        for (int l = 0; l < SUM_LANES; l++) {
            up[l] += v[i + l] < 0 ? 0 : v[i + l];
            down[l] += v[i + l] < 0 ? v[i + l] : 0;
            negatives += v[i + l] < 0;
        }
    sums->negatives += negatives;
}

#ifdef SL_AVX2
/* Four doubles: conversion from memory needs no other instruction to get at a register's upper
 * half. */
SL_AVX2 static inline __m256d wide(const float *v) {
    return _mm256_cvtps_pd(_mm_loadu_ps(v));
}

SL_AVX2 static void squares_avx2(bucket_sums *sums, const float *v, size_t n) {
    __m256d sum[4];
    lanes_load(sums->lanes[0], sum);
    for (size_t i = 0; i < n; i += SUM_LANES) {
        __builtin_prefetch(v + i + sums->ahead);
        for (int g = 0; g < 4; g++) {
            __m256d x = wide(v + i + 4 * g);
            sum[g] = _mm256_fmadd_pd(x, x, sum[g]);
        }
    }
    lanes_store(sums->lanes[0], sum);
}

SL_AVX2 static void magnitudes_avx2(bucket_sums *sums, const float *v, size_t n) {
    __m256d sum[4];
    lanes_load(sums->lanes[0], sum);
    for (size_t i = 0; i < n; i += SUM_GROUP) {
        for (int line = 0; line < 4; line++)
            __builtin_prefetch(v + i + sums->ahead + 16 * line);
        lanes_add_magnitudes(sum, v + i);
    }
    lanes_store(sums->lanes[0], sum);
}

SL_AVX2 static void sides_avx2(bucket_sums *sums, const float *v, size_t n) {
    __m256d up[4], down[4];
    __m256i negatives = _mm256_setzero_si256();
    lanes_load(sums->lanes[0], up);
    lanes_load(sums->lanes[1], down);
    for (size_t i = 0; i < n; i += SUM_LANES) {
        __builtin_prefetch(v + i + sums->ahead);
        for (int g = 0; g < 4; g++) {
            __m256d x = wide(v + i + 4 * g),
                    below = _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_LT_OQ);
            up[g] = _mm256_add_pd(up[g], _mm256_andnot_pd(below, x));
            down[g] = _mm256_add_pd(down[g], _mm256_and_pd(below, x));
            negatives =
                _mm256_sub_epi64(negatives, _mm256_castpd_si256(below)); /* all ones are -1 */
        }
    }
    uint64_t counts[4];
    _mm256_storeu_si256((__m256i *)counts, negatives);
    sums->negatives += counts[0] + counts[1] + counts[2] + counts[3];
    lanes_store(sums->lanes[0], up);
    lanes_store(sums->lanes[1], down);
}
#endif

/* Groups that are not whole get zeros for what is missing; those change no sum. */
static void by_groups(sum_kernel *kernel, bucket_sums *sums, const float *v, size_t at, size_t n) {
    for (size_t step; n > 0; v += step, at += step, n -= step) {
        const size_t first = at % SUM_GROUP;
        if (first == 0 && n >= SUM_GROUP) {
            step = n / SUM_GROUP * SUM_GROUP;
            kernel(sums, v, step);
        } else {
            float group[SUM_GROUP] = {0};
            step = n < SUM_GROUP - first ? n : SUM_GROUP - first;
            memcpy(group + first, v, step * sizeof *v);
            kernel(sums, group, SUM_GROUP);
        }
    }
}

#ifdef SL_AVX2
#define BEST(name) (sl_has_avx2() ? name##_avx2 : name##_plain)
#else
#define BEST(name) name##_plain
#endif

static void end_tile(bucket_sums *sums, int count) {
    for (int s = 0; s < count; s++) {
        sum_fold(sums->folds[s], sums->tiles, sum_lanes(sums->lanes[s]));
        for (int l = 0; l < SUM_LANES; l++)
            sums->lanes[s][l] = 0;
    }
    sums->tiles++;
    sums->seen = 0;
}

static void by_tiles(sum_kernel *kernel, int count, bucket_sums *sums, const float *v, size_t at,
                     size_t n) {
    for (size_t step; n > 0; v += step, at += step, n -= step) {
        const size_t rest = SUM_TILE - sums->seen;
        step = n < rest ? n : rest;
        by_groups(kernel, sums, v, at, step);
        sums->seen += step;
        if (sums->seen == SUM_TILE)
            end_tile(sums, count);
    }
}

void sl_sum_begin(bucket_sums *sums, size_t ahead) {
    memset(sums->lanes, 0, sizeof sums->lanes);
    sums->seen = sums->tiles = 0;
    sums->negatives = 0;
    sums->largest = 0;
    sums->clip = 0;
    sums->ahead = ahead;
}

void sl_sum_squares(bucket_sums *sums, const float *v, size_t at, size_t n) {
    by_tiles(BEST(squares), 1, sums, v, at, n);
}

void sl_sum_magnitudes(bucket_sums *sums, const float *v, size_t at, size_t n) {
    by_tiles(BEST(magnitudes), 1, sums, v, at, n);
}

void sl_sum_sides(bucket_sums *sums, const float *v, size_t at, size_t n) {
    by_tiles(BEST(sides), 2, sums, v, at, n);
}

FOR_EACH_CPU(int32_t, largest_magnitude, (const float *v, size_t n), (v, n)) {
    int32_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, v + i, sizeof bits);
        bits &= 0x7FFFFFFF;
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

void sl_sum_largest(bucket_sums *sums, const float *v, size_t at, size_t n) {
    (void)at;
    const uint32_t largest = (uint32_t)largest_magnitude(v, n);
    sums->largest = largest > sums->largest ? largest : sums->largest;
}

void sl_sum_take(bucket_sums *sums, double *out, int count) {
    if (sums->seen > 0)
        end_tile(sums, count);
    for (int s = 0; s < count; s++)
        out[s] = sum_in_order(sums->folds[s], sum_folds(sums->tiles));
    sums->tiles = 0;
}
