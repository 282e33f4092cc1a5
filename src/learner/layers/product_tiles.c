/* product_tiles.c - the kernels of product.h, compiled once for AVX2 and once for AVX-512.
 *
 * Sums stay in registers: 4 x 16 or 4 x 64 of them in the forward product, 6 x 16 or 12 x 32 in the
 * gradient. Each is a chain of multiply-adds of its own, whatever the size of its tile, so that
 * both levels have the same bits.
 *
 * Forward: the kernel reads w in place, BLOCK rows at a time. A panel of 16 columns of a block is
 * 28 cache lines and stays in L1. It is not larger because rows are often a power of two apart, so
 * that their lines share few sets. All rows of x pass over the panel, a few at a time. The order of
 * sums: each block from 0 on, then added to the blocks before.
 *
 * Gradient: a tile's sums stay while the kernel runs over the rows. d is first packed into panels
 * of 16 columns, and x into strips as wide as a tile is high, so that both are read in sequence.
 * Panels are padded with zeros; only columns that exist are written.
 */
#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "learner/layers/layer_cpu.h"
#include "learner/layers/product_tiles.h"
#include "learner/layers/simd.h"

#define COLUMNS SL_PRODUCT_COLUMNS
#define BLOCK 28u /* rows of w */
#define HEIGHT 4u /* rows of x in a tile of the forward product */

#if LANES == 16
#define MULTIPLY_ADD _mm512_fmadd_ps /* in builds without optimization, too */
enum { FORWARD_VECTORS = 4, STRIP = 12 };
#else
#define MULTIPLY_ADD _mm256_fmadd_ps
enum { FORWARD_VECTORS = 2, STRIP = 6 };
#endif
enum { GRADIENT_VECTORS = 2 };

/* ---- y = x w ---- */

/* Where a tile's sums come from and go to, rows so many floats apart. */
typedef struct place {
    const float *from; /* NULL: from zero */
    float *to;
    size_t from_stride, to_stride;
} place;

/* to (height, vectors) = from + x (height, depth) w (depth, vectors). `from` is added at the end,
 * where nothing waits for it. Inlined, so that height and vectors are constants. */
KERNEL void forward_tile(place at, const float *x, const float *w, uint32_t height,
                         uint32_t vectors, uint32_t depth, uint32_t in, uint32_t out) {
    lanes sums[HEIGHT][FORWARD_VECTORS];
    for (uint32_t i = 0; i < height; i++)
        for (uint32_t v = 0; v < vectors; v++)
            sums[i][v] = broadcast(0);
    for (uint32_t k = 0; k < depth; k++, w += out) {
        lanes factors[FORWARD_VECTORS];
        for (uint32_t v = 0; v < vectors; v++)
            factors[v] = load(w + (size_t)v * LANES);
        for (uint32_t i = 0; i < height; i++) {
            lanes number = broadcast(x[(size_t)i * in + k]);
            for (uint32_t v = 0; v < vectors; v++)
                sums[i][v] = MULTIPLY_ADD(number, factors[v], sums[i][v]);
        }
    }
    for (uint32_t i = 0; i < height; i++)
        for (uint32_t v = 0; v < vectors; v++) {
            if (at.from != NULL)
                sums[i][v] = load(at.from + i * at.from_stride + (size_t)v * LANES) + sums[i][v];
            store(at.to + i * at.to_stride + (size_t)v * LANES, sums[i][v]);
        }
}

/* All rows of x over `depth` rows of w. */
KERNEL void forward_columns(place at, const float *x, const float *w, uint32_t vectors,
                            uint32_t rows, uint32_t depth, uint32_t in, uint32_t out) {
    for (uint32_t row = 0; row < rows;) {
        uint32_t height = rows - row < HEIGHT ? 1 : HEIGHT;
        if (height == HEIGHT)
            forward_tile(at, x, w, HEIGHT, vectors, depth, in, out);
        else
            forward_tile(at, x, w, 1, vectors, depth, in, out);
        row += height;
        x += (size_t)height * in;
        at.to += height * at.to_stride;
        if (at.from != NULL)
            at.from += height * at.from_stride;
    }
}

static void forward_wide(place at, const float *x, const float *w, uint32_t rows, uint32_t depth,
                         uint32_t in, uint32_t out) {
    forward_columns(at, x, w, FORWARD_VECTORS, rows, depth, in, out);
}

static void forward_narrow(place at, const float *x, const float *w, uint32_t rows, uint32_t depth,
                           uint32_t in, uint32_t out) {
    forward_columns(at, x, w, COLUMNS / LANES, rows, depth, in, out);
}

/* Between the first and the last block, `panel` holds the sums of a tile's columns together. In y
 * they would evict the lines of w from L1. */
static void forward(float *y, const float *x, const float *w, uint32_t rows, uint32_t in,
                    uint32_t out, float *panel) {
    const uint32_t wide = FORWARD_VECTORS * LANES;
    for (uint32_t k = 0; k < in; k += BLOCK) {
        uint32_t depth = in - k < BLOCK ? in - k : BLOCK, width;
        bool last = k + depth == in;
        for (uint32_t column = 0; column < out; column += width) {
            width = out - column < wide ? COLUMNS : wide;
            float *sums = panel + (size_t)column * rows;
            place at = {.from = k == 0 ? NULL : sums,
                        .to = last ? y + column : sums,
                        .from_stride = width,
                        .to_stride = last ? out : width};
            (width == wide ? forward_wide : forward_narrow)(at, x + k, w + (size_t)k * out + column,
                                                            rows, depth, in, out);
        }
    }
}

/* ---- g = x^T d ---- */

static void pack_panels(float *panel, const float *d, uint32_t rows, uint32_t out) {
    for (uint32_t column = 0; column < out; column += COLUMNS) {
        uint32_t width = out - column < COLUMNS ? out - column : COLUMNS;
        for (uint32_t row = 0; row < rows; row++, panel += COLUMNS) {
            memset(panel, 0, COLUMNS * sizeof *panel);
            memcpy(panel, d + (size_t)row * out + column, width * sizeof *panel);
        }
    }
}

static void pack_strip(float strip[SL_PRODUCT_ROWS_MAX * STRIP], const float *x, uint32_t rows,
                       uint32_t in, uint32_t width) {
    if (width == STRIP) { /* a constant size: three moves a row */
        for (uint32_t row = 0; row < rows; row++)
            memcpy(strip + (size_t)row * STRIP, x + (size_t)row * in, STRIP * sizeof *x);
        return;
    }
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t i = 0; i < STRIP; i++)
            strip[row * STRIP + i] = i < width ? x[(size_t)row * in + i] : 0;
}

/* A tile's sums; t (STRIP, vectors) lies `stride` apart. */
KERNEL void gradient_tile(float *t, size_t stride, const float *strip, const float *panel,
                          uint32_t rows, uint32_t vectors) {
    /* A panel has two vectors of 8, or one of 16. */
    const size_t next = LANES < COLUMNS ? LANES : (size_t)rows * COLUMNS;
    lanes sums[STRIP][GRADIENT_VECTORS];
    for (uint32_t i = 0; i < STRIP; i++)
        for (uint32_t v = 0; v < vectors; v++)
            sums[i][v] = broadcast(0);
    for (uint32_t row = 0; row < rows; row++, strip += STRIP, panel += COLUMNS) {
        lanes factors[GRADIENT_VECTORS];
        for (uint32_t v = 0; v < vectors; v++)
            factors[v] = load(panel + v * next);
#pragma GCC unroll 12
        for (uint32_t i = 0; i < STRIP; i++) {
            lanes number = broadcast(strip[i]);
            for (uint32_t v = 0; v < vectors; v++)
                sums[i][v] = MULTIPLY_ADD(number, factors[v], sums[i][v]);
        }
    }
#pragma GCC unroll 12
    for (uint32_t i = 0; i < STRIP; i++, t += stride)
        for (uint32_t v = 0; v < vectors; v++)
            store(t + (size_t)v * LANES, sums[i][v]);
}

static void gradient_wide(float *t, size_t stride, const float *strip, const float *panel,
                          uint32_t rows) {
    gradient_tile(t, stride, strip, panel, rows, GRADIENT_VECTORS);
}

static void gradient_narrow(float *t, size_t stride, const float *strip, const float *panel,
                            uint32_t rows) {
    gradient_tile(t, stride, strip, panel, rows, COLUMNS / LANES);
}

/* A tile of one panel, of which `height` x `width` exist. */
static void gradient_edge(float *t, size_t stride, const float *strip, const float *panel,
                          uint32_t rows, uint32_t height, uint32_t width) {
    float tile[STRIP][COLUMNS];
    gradient_narrow(tile[0], COLUMNS, strip, panel, rows);
    for (uint32_t i = 0; i < height; i++, t += stride)
        memcpy(t, tile[i], width * sizeof *t);
}

static void gradient(float *g, const float *x, const float *d, uint32_t rows, uint32_t in,
                     uint32_t out, float *panel) {
    const uint32_t wide = GRADIENT_VECTORS * LANES;
    float strip[SL_PRODUCT_ROWS_MAX * STRIP];
    pack_panels(panel, d, rows, out);
    for (uint32_t row = 0; row < in; row += STRIP, g += (size_t)STRIP * out) {
        uint32_t height = in - row < STRIP ? in - row : STRIP, width;
        pack_strip(strip, x + row, rows, in, height);
        for (uint32_t column = 0; column < out; column += width) {
            uint32_t left = out - column;
            const float *p = panel + (size_t)column * rows;
            width = height == STRIP && left >= wide ? wide : left < COLUMNS ? left : COLUMNS;
            if (height == STRIP && width == wide)
                gradient_wide(g + column, out, strip, p, rows);
            else if (height == STRIP && width == COLUMNS)
                gradient_narrow(g + column, out, strip, p, rows);
            else
                gradient_edge(g + column, out, strip, p, rows, height, width);
        }
    }
}

const sl_product_tiles SL_JOIN(sl_product_tiles, SL_LEVEL) = {forward, gradient};
