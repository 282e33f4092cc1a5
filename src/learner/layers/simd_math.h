/* simd_math.h - exponentials of eight floats at a time, for the layers' kernels; built as simd.h
 * says. */
#ifndef SL_LEARNER_SIMD_MATH_H
#define SL_LEARNER_SIMD_MATH_H

#include "learner/layers/simd.h"

#define LOG2_E 1.44269504f
#define LN_2_HIGH 0.693359375f /* few enough bits that its product with a power is exact */
#define LN_2_LOW (-2.12194440055e-4f)
#define ROUNDER                                                                                    \
    12582912.0f /* 1.5 2^23: adding it rounds to an integer, which stands in the low bits */
#define EXP_MIN (-87.0f) /* between these the result is a normal number */
#define EXP_MAX 88.0f

/* e^v to within 2 units of the last place; v is first brought into EXP_MIN to EXP_MAX; a NaN stays.
 * v = n ln 2 + r, and e^r by its series to r^7, |r| < 0.35. */
KERNEL lanes exp_lanes(lanes v) {
    v = choose(v < EXP_MIN, broadcast(EXP_MIN), v);
    v = choose(v > EXP_MAX, broadcast(EXP_MAX), v);
    lanes shifted = v * LOG2_E + ROUNDER, n = shifted - ROUNDER;
    lanes r = (v - n * LN_2_HIGH) - n * LN_2_LOW;
    lanes series = r * (1.0f / 5040) + 1.0f / 720;
    series = series * r + 1.0f / 120;
    series = series * r + 1.0f / 24;
    series = series * r + 1.0f / 6;
    series = series * r + 0.5f;
    series = series * r + 1.0f;
    series = series * r + 1.0f;
    lanes_mask power = (((lanes_mask)shifted - (lanes_mask)broadcast(ROUNDER)) + 127) << 23;
    return series * (lanes)power;
}

KERNEL lanes sigmoid_lanes(lanes v) {
    return 1.0f / (1.0f + exp_lanes(-v));
}

/* To within 1e-7, not of the result but of 1. */
KERNEL lanes tanh_lanes(lanes v) {
    return 1.0f - 2.0f / (1.0f + exp_lanes(2.0f * v));
}

#endif
