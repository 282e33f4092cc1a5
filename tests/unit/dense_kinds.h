/* dense_kinds.h - for tests of the dense-coded compressors: each of them, what is known of its
 * format, and vectors with numbers of all sizes. */
#ifndef STARLING_TEST_DENSE_KINDS_H
#define STARLING_TEST_DENSE_KINDS_H

#include <float.h>

#include "messages.h"

/* Numbers of all sizes, with zeros of both signs, subnormals and repeated ones. */
static inline float *motley(size_t n, uint32_t rank) {
    float *v = normal(n, rank, 0, SL_PURPOSE_DATA);
    static const float odd[] = {0,         -0.0f, 1,      -1,    0x1p-149f, -0x1p-127f,
                                0x1p-126f, 3e-5f, -6e-8f, 60000, -0.5f,     0x1.fffffep-1f};
    for (size_t i = 0; i < n; i += 1 + i % 5)
        v[i] = odd[(i + rank) % (sizeof odd / sizeof *odd)];
    return v;
}

static inline double squared(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((double)a[i] - (b ? b[i] : 0)) * ((double)a[i] - (b ? b[i] : 0));
    return sum;
}

static const sl_compressor_config kinds[] = {
    KIND(FLOAT16),
    KIND(BFLOAT16),
    KIND(QSGD, .levels = 1),
    KIND(QSGD, .levels = 7, .bucket = 512),
    KIND(QSGD, .levels = 4, .bucket = 1000),
    KIND(QSGD, .levels = 7, .bucket = 100, .norm = SL_NORM_MAX),
    KIND(QSGD, .levels = 127, .bucket = 3072),
    KIND(QSGD, .levels = 130, .bucket = 4),
    KIND(QSGD, .levels = 3000, .bucket = 4096, .contractive = true),
    KIND(QSGD, .levels = 32767, .bucket = 70000, .norm = SL_NORM_MAX),
    KIND(SCALED_SIGN),
    KIND(SCALED_SIGN, .bucket = 512),
    KIND(SCALED_SIGN, .bucket = 1000),
    KIND(SCALED_SIGN, .bucket = 13),
    KIND(SCALED_SIGN, .bucket = 266240), /* each of 262144, which go at once, and some more */
    KIND(ONE_BIT),
    KIND(ONE_BIT, .bucket = 2048),
    KIND(ONE_BIT, .bucket = 4),
    KIND(TERNGRAD),
    KIND(TERNGRAD, .bucket = 64, .contractive = true),
    KIND(TERNGRAD, .bucket = 777),
    KIND(TERNGRAD, .clip_sigma = 2.5),
    KIND(TERNGRAD, .bucket = 100, .clip_sigma = 1.5),
    KIND(NATURAL),
    KIND(NATURAL, .contractive = true),
    KIND(THRESHOLD, .threshold = 0.75),
};
enum { KINDS = LENGTH(kinds) };

static inline float value_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
