/* lanes.h - a tile's lanes (element/sum.h) in AVX2 registers, four doubles each. */
#ifndef SL_LANES_H
#define SL_LANES_H

#include "base/kernels.h"
#include "element/sum.h"

#ifdef SL_AVX2
#include <immintrin.h>

SL_AVX2 static inline void lanes_load(const double lanes[SUM_LANES], __m256d sum[4]) {
    for (int g = 0; g < 4; g++)
        sum[g] = _mm256_loadu_pd(lanes + 4 * g);
}

SL_AVX2 static inline void lanes_store(double lanes[SUM_LANES], const __m256d sum[4]) {
    for (int g = 0; g < 4; g++)
        _mm256_storeu_pd(lanes + 4 * g, sum[g]);
}

/* The magnitudes of a group of SUM_GROUP elements. */
SL_AVX2 static inline void lanes_add_magnitudes(__m256d sum[4], const float *v) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    for (int half = 0; half < 2; half++) {
        __m256 m[4];
        for (int k = 0; k < 4; k++)
            m[k] = _mm256_andnot_ps(sign, _mm256_loadu_ps(v + k * SUM_LANES + 8 * half));
        const __m256 four = _mm256_add_ps(_mm256_add_ps(m[0], m[1]), _mm256_add_ps(m[2], m[3]));
        sum[2 * half] = _mm256_add_pd(sum[2 * half], _mm256_cvtps_pd(_mm256_castps256_ps128(four)));
        sum[2 * half + 1] =
            _mm256_add_pd(sum[2 * half + 1], _mm256_cvtps_pd(_mm256_extractf128_ps(four, 1)));
    }
}
#endif

#endif
