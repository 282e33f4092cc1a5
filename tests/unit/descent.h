/* descent.h - what peers of sessions' tests train: a vector, towards the rank. */
#ifndef DESCENT_H
#define DESCENT_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* x (d) before the first step: of each rank another one. */
static inline void descent_fill(float *x, size_t d, int64_t rank) {
    for (size_t i = 0; i < d; i++)
        x[i] = sinf((float)((int64_t)i + 100 * rank));
}

/* A step of x (d), from a gradient at `at`. */
static inline void descent_step(float *x, const float *at, size_t d, int64_t rank) {
    for (size_t i = 0; i < d; i++)
        x[i] -= 0.1f * (at[i] - (float)rank);
}

#endif
