/* sums.c - see sums.h. Sums are of doubles: no sum of floats overflows them, and squares of floats are exact, with which a fused
 * multiplication and addition is the same as two. */
#include "compress/sums.h"

#include <math.h>
#include <string.h>

#include "vec/for_each_cpu.h"

#ifdef SL_AVX2
#include <immintrin.h>
#endif

/* n: a multiple of SUM_LANES, v[0] for lane 0. */
typedef void sum_kernel(bucket_sums *sums, const float *v, size_t n);

FOR_EACH_CPU static void squares_plain(bucket_sums *sums, const float *v, size_t n) {
    double *lanes = sums->lanes[0];
    for (size_t i = 0; i < n; i += SUM_LANES)
        for (int l = 0; l < SUM_LANES; l++)
            lanes[l] += (double)v[i + l] * v[i + l];
}

FOR_EACH_CPU static void magnitudes_plain(bucket_sums *sums, const float *v, size_t n) {
    double *lanes = sums->lanes[0];
    for (size_t i = 0; i < n; i += SUM_LANES)
        for (int l = 0; l < SUM_LANES; l++)
            lanes[l] += fabsf(v[i + l]);
}

FOR_EACH_CPU static void sides_plain(bucket_sums *sums, const float *v, size_t n) {
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

FOR_EACH_CPU static void largest_plain(bucket_sums *sums, const float *v, size_t n) {
    int32_t largest = (int32_t)sums->largest;
    for (size_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, v + i, sizeof bits);
        bits &= 0x7FFFFFFF;
        largest = bits > largest ? bits : largest;
    }
    sums->largest = (uint32_t)largest;
}

#ifdef SL_AVX2
/* Sixteen elements as four times four doubles. */
#define WIDEN(x, out)                                     \
    __m256d out[4] = {                                    \
        _mm256_cvtps_pd(_mm256_castps256_ps128((x)[0])),   \
        _mm256_cvtps_pd(_mm256_extractf128_ps((x)[0], 1)), \
        _mm256_cvtps_pd(_mm256_castps256_ps128((x)[1])),   \
        _mm256_cvtps_pd(_mm256_extractf128_ps((x)[1], 1)), \
    }

SL_AVX2 static void load(const double *lanes, __m256d sum[4]) {
    for (int g = 0; g < 4; g++)
        sum[g] = _mm256_loadu_pd(lanes + 4 * g);
}

SL_AVX2 static void store(double *lanes, const __m256d sum[4]) {
    for (int g = 0; g < 4; g++)
        _mm256_storeu_pd(lanes + 4 * g, sum[g]);
}

SL_AVX2 static void squares_avx2(bucket_sums *sums, const float *v, size_t n) {
    __m256d sum[4];
    load(sums->lanes[0], sum);
    for (size_t i = 0; i < n; i += SUM_LANES) {
        __builtin_prefetch(v + i + sums->ahead);
        const __m256 x[2] = {_mm256_loadu_ps(v + i), _mm256_loadu_ps(v + i + 8)};
        WIDEN(x, wide);
        for (int g = 0; g < 4; g++)
            sum[g] = _mm256_fmadd_pd(wide[g], wide[g], sum[g]);
    }
    store(sums->lanes[0], sum);
}

SL_AVX2 static void magnitudes_avx2(bucket_sums *sums, const float *v, size_t n) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256d sum[4];
    load(sums->lanes[0], sum);
    for (size_t i = 0; i < n; i += SUM_LANES) {
        __builtin_prefetch(v + i + sums->ahead);
        const __m256 x[2] = {_mm256_andnot_ps(sign, _mm256_loadu_ps(v + i)), _mm256_andnot_ps(sign, _mm256_loadu_ps(v + i + 8))};
        WIDEN(x, wide);
        for (int g = 0; g < 4; g++)
            sum[g] = _mm256_add_pd(sum[g], wide[g]);
    }
    store(sums->lanes[0], sum);
}

SL_AVX2 static void sides_avx2(bucket_sums *sums, const float *v, size_t n) {
    __m256d up[4], down[4];
    unsigned negatives = 0;
    load(sums->lanes[0], up);
    load(sums->lanes[1], down);
    for (size_t i = 0; i < n; i += SUM_LANES) {
        __builtin_prefetch(v + i + sums->ahead);
        const __m256 x[2] = {_mm256_loadu_ps(v + i), _mm256_loadu_ps(v + i + 8)};
        const __m256 below[2] = {_mm256_cmp_ps(x[0], _mm256_setzero_ps(), _CMP_LT_OQ), _mm256_cmp_ps(x[1], _mm256_setzero_ps(), _CMP_LT_OQ)};
        const __m256 ups[2] = {_mm256_andnot_ps(below[0], x[0]), _mm256_andnot_ps(below[1], x[1])};
        const __m256 downs[2] = {_mm256_and_ps(below[0], x[0]), _mm256_and_ps(below[1], x[1])};
        WIDEN(ups, wide_ups);
        WIDEN(downs, wide_downs);
        for (int g = 0; g < 4; g++) {
            up[g] = _mm256_add_pd(up[g], wide_ups[g]);
            down[g] = _mm256_add_pd(down[g], wide_downs[g]);
        }
        negatives += (unsigned)__builtin_popcount((unsigned)_mm256_movemask_ps(below[0]) | (unsigned)_mm256_movemask_ps(below[1]) << 8);
    }
    store(sums->lanes[0], up);
    store(sums->lanes[1], down);
    sums->negatives += negatives;
}

SL_AVX2 static void largest_avx2(bucket_sums *sums, const float *v, size_t n) {
    const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
    __m256i largest[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (size_t i = 0; i < n; i += SUM_LANES) {
        __builtin_prefetch(v + i + sums->ahead);
        for (int g = 0; g < 2; g++) {
            __m256i bits = _mm256_and_si256(magnitude, _mm256_loadu_si256((const __m256i *)(v + i + 8 * g)));
            largest[g] = _mm256_max_epi32(largest[g], bits);
        }
    }
    uint32_t lanes[8];
    _mm256_storeu_si256((__m256i *)lanes, _mm256_max_epi32(largest[0], largest[1]));
    for (int l = 0; l < 8; l++)
        sums->largest = lanes[l] > sums->largest ? lanes[l] : sums->largest;
}
#endif

/* Groups that are not whole get zeros for what is missing; those change nothing. */
static void by_lanes(sum_kernel *kernel, bucket_sums *sums, const float *v, size_t at, size_t n) {
    for (size_t step; n > 0; v += step, at += step, n -= step) {
        const size_t lane = at % SUM_LANES;
        if (lane == 0 && n >= SUM_LANES) {
            step = n / SUM_LANES * SUM_LANES;
            kernel(sums, v, step);
        } else {
            float group[SUM_LANES] = {0};
            step = n < SUM_LANES - lane ? n : SUM_LANES - lane;
            memcpy(group + lane, v, step * sizeof *v);
            kernel(sums, group, SUM_LANES);
        }
    }
}

#ifdef SL_AVX2
#define BEST(name) (sl_has_avx2() ? name##_avx2 : name##_plain)
#else
#define BEST(name) name##_plain
#endif

void sl_sum_squares(bucket_sums *sums, const float *v, size_t at, size_t n) {
    by_lanes(BEST(squares), sums, v, at, n);
}

void sl_sum_magnitudes(bucket_sums *sums, const float *v, size_t at, size_t n) {
    by_lanes(BEST(magnitudes), sums, v, at, n);
}

void sl_sum_sides(bucket_sums *sums, const float *v, size_t at, size_t n) {
    by_lanes(BEST(sides), sums, v, at, n);
}

void sl_sum_largest(bucket_sums *sums, const float *v, size_t at, size_t n) {
    by_lanes(BEST(largest), sums, v, at, n);
}

double sl_sum_take(double lanes[SUM_LANES]) {
    double sum = 0;
    for (int l = 0; l < SUM_LANES; l++) {
        sum += lanes[l];
        lanes[l] = 0;
    }
    return sum;
}
