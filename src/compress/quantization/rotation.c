/* rotation.c - see rotation.h. Sums and differences are those of Yates's scheme, from neighbours to
 * halves, whatever the instruction set; two steps at a time halve what is read and written. */
#include "compress/quantization/rotation.h"

#include <stdint.h>
#include <string.h>

#include "base/kernels.h"

#pragma GCC diagnostic ignored "-Wpsabi" /* vectors only go between functions that are inlined */

enum { LANES = 8, CACHED = 4096 };

typedef float eight __attribute__((vector_size(4 * LANES)));

static inline __attribute__((always_inline)) eight load(const float *v) {
    eight x;
    memcpy(&x, v, sizeof x);
    return x;
}

static inline __attribute__((always_inline)) void store(float *v, eight x) {
    memcpy(v, &x, sizeof x);
}

/* Steps of 1, 2 and 4 elements within eight. */
static inline __attribute__((always_inline)) eight within(eight x) {
    eight t = __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6);
    x = __builtin_shufflevector(x + t, t - x, 0, 9, 2, 11, 4, 13, 6, 15);
    t = __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5);
    x = __builtin_shufflevector(x + t, t - x, 0, 1, 10, 11, 4, 5, 14, 15);
    t = __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3);
    return __builtin_shufflevector(x + t, t - x, 0, 1, 2, 3, 12, 13, 14, 15);
}

/* The step of h, and where there is room that of 2 h; returns the next one. */
static inline __attribute__((always_inline)) size_t step(float *v, size_t n, size_t h) {
    if (4 * h > n) {
        for (size_t i = 0; i < n; i += 2 * h)
            for (size_t j = i; j < i + h; j += LANES) {
                const eight a = load(v + j), b = load(v + j + h);
                store(v + j, a + b);
                store(v + j + h, a - b);
            }
        return 2 * h;
    }
    for (size_t i = 0; i < n; i += 4 * h)
        for (size_t j = i; j < i + h; j += LANES) {
            const eight a = load(v + j), b = load(v + j + h), c = load(v + j + 2 * h),
                        d = load(v + j + 3 * h);
            const eight ab = a + b, a_b = a - b, cd = c + d, c_d = c - d;
            store(v + j, ab + cd);
            store(v + j + h, a_b + c_d);
            store(v + j + 2 * h, ab - cd);
            store(v + j + 3 * h, a_b - c_d);
        }
    return 4 * h;
}

static inline __attribute__((always_inline)) void steps(float *v, size_t n, size_t from) {
    for (size_t h = from; h < n;)
        h = step(v, n, h);
}

/* First within parts that the first cache holds, then between them. */
FOR_EACH_CPU(void, transform, (float *v, size_t n), (v, n)) {
    const size_t cached = n < CACHED ? n : (size_t)CACHED;
    for (size_t i = 0; i < n; i += LANES)
        store(v + i, within(load(v + i)));
    for (size_t i = 0; i < n; i += cached)
        steps(v + i, cached, LANES);
    steps(v, n, cached);
}

void sl_rotation_hadamard(float *v, size_t n) {
    if (n >= LANES) {
        transform(v, n);
        return;
    }
    for (size_t h = 1; h < n; h *= 2)
        for (size_t i = 0; i < n; i++)
            if ((i & h) == 0) {
                const float a = v[i], b = v[i + h];
                v[i] = a + b;
                v[i + h] = a - b;
            }
}

static inline __attribute__((always_inline)) void flip_some(uint32_t signs, float *v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, v + i, sizeof bits);
        bits ^= signs >> i << 31;
        memcpy(v + i, &bits, sizeof bits);
    }
}

FOR_EACH_CPU(void, flip, (const uint32_t *signs, float *v, size_t n), (signs, v, n)) {
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        flip_some(signs[i / 32], v + i, 32);
    if (i < n)
        flip_some(signs[i / 32], v + i, n - i);
}

void sl_rotation_signs(const sl_rng_key *key, size_t from, float *v, size_t n) {
    uint32_t signs[ROTATION_PIECE / 32];
    sl_rng_quick_blocks(key, (uint32_t)(from / 128), (n + 127) / 128, signs);
    flip(signs, v, n);
}
