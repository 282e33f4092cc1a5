/* product.c - a layer's two large matrix products; see product.h.
 *
 * Forward: the kernel reads w in place, FORWARD_BLOCK rows at a time. A panel of 16 columns of a
 * block is 28 cache lines and stays in L1. It is not larger because rows are often a power of two
 * apart, so that their lines share few sets. All rows of x pass over the panel, four at a time;
 * eight registers hold the 4 x 16 sums.
 *
 * Gradient: a tile of 6 x 16 sums stays in twelve registers while the kernel runs over the rows.
 * For each row, two loads of d and six broadcasts of x feed twelve multiply-adds. d is first packed
 * into panels of 16 columns, and x into strips of six columns, so that both are read in sequence.
 * Panels are padded with zeros; only columns that exist are written.
 */
#include "learner/layers/product.h"

#include <cblas.h>
#include <stdbool.h>
#include <string.h>

#include "base/kernels.h"

#define TILE_OUT 16         /* columns of a tile in both kernels */
#define FORWARD_TILE 4      /* rows of x */
#define FORWARD_BLOCK 28    /* rows of w */
#define FORWARD_ROWS_MAX 64 /* beyond, OpenBLAS's panels of w pay for themselves */
#define TILE_IN 6
#define ROWS_MAX 256 /* longest strip */

static void forward_blas(float *y, const float *x, const float *w, uint32_t rows, uint32_t in,
                         uint32_t out) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)out, (int)in, 1.0f, x,
                (int)in, w, (int)out, 0.0f, y, (int)out);
}

static void gradient_blas(float *g, const float *x, const float *d, uint32_t rows, uint32_t in,
                          uint32_t out) {
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)in, (int)out, (int)rows, 1.0f, x,
                (int)in, d, (int)out, 0.0f, g, (int)out);
}

#if defined(__x86_64__)
#include <immintrin.h>

/* Where a tile's sums come from and go to: rows of 16, so many floats apart. */
typedef struct forward_place {
    const float *from; /* NULL: from zero */
    float *to;
    size_t from_stride, to_stride;
} forward_place;

/* to (height, 16) = from + x (height, depth) w (depth, 16). `from` is added at the end, where
 * nothing waits for it. Inlined, so that the height is a constant. */
__attribute__((target("avx2,fma"), always_inline)) static inline void
forward_tile(forward_place place, const float *x, const float *w, uint32_t height, uint32_t depth,
             uint32_t in, uint32_t out) {
    __m256 sums[FORWARD_TILE][2];
    for (uint32_t i = 0; i < height; i++)
        sums[i][0] = sums[i][1] = _mm256_setzero_ps();
    for (uint32_t k = 0; k < depth; k++, w += out) {
        __m256 low = _mm256_loadu_ps(w), high = _mm256_loadu_ps(w + 8);
        for (uint32_t i = 0; i < height; i++) {
            __m256 factor = _mm256_broadcast_ss(x + (size_t)i * in + k);
            sums[i][0] = _mm256_fmadd_ps(factor, low, sums[i][0]);
            sums[i][1] = _mm256_fmadd_ps(factor, high, sums[i][1]);
        }
    }
    for (uint32_t i = 0; i < height; i++) {
        if (place.from != NULL) {
            const float *from = place.from + i * place.from_stride;
            sums[i][0] = _mm256_add_ps(_mm256_loadu_ps(from), sums[i][0]);
            sums[i][1] = _mm256_add_ps(_mm256_loadu_ps(from + 8), sums[i][1]);
        }
        _mm256_storeu_ps(place.to + i * place.to_stride, sums[i][0]);
        _mm256_storeu_ps(place.to + i * place.to_stride + 8, sums[i][1]);
    }
}

/* All rows of x over `depth` rows of 16 columns of w. */
__attribute__((target("avx2,fma"))) static void forward_block(forward_place place, const float *x,
                                                              const float *w, uint32_t rows,
                                                              uint32_t depth, uint32_t in,
                                                              uint32_t out) {
    for (uint32_t row = 0; row < rows;) {
        uint32_t height = rows - row < FORWARD_TILE ? 1 : FORWARD_TILE;
        if (height == FORWARD_TILE)
            forward_tile(place, x, w, FORWARD_TILE, depth, in, out);
        else
            forward_tile(place, x, w, 1, depth, in, out);
        row += height;
        x += (size_t)height * in;
        place.to += height * place.to_stride;
        if (place.from != NULL)
            place.from += height * place.from_stride;
    }
}

/* Between the first and the last block, `panel` holds the sums, 16 columns at a time. In y they
 * would evict the lines of w from L1. */
static void forward_panels(float *y, const float *x, const float *w, uint32_t rows, uint32_t in,
                           uint32_t out, float *panel) {
    for (uint32_t k = 0; k < in; k += FORWARD_BLOCK) {
        uint32_t depth = in - k < FORWARD_BLOCK ? in - k : FORWARD_BLOCK;
        bool last = k + depth == in;
        for (uint32_t column = 0; column < out; column += TILE_OUT) {
            float *sums = panel + (size_t)column * rows;
            forward_place place = {.from = k == 0 ? NULL : sums,
                                   .to = last ? y + column : sums,
                                   .from_stride = TILE_OUT,
                                   .to_stride = last ? out : TILE_OUT};
            forward_block(place, x + k, w + (size_t)k * out + column, rows, depth, in, out);
        }
    }
}

/* With AVX-512 OpenBLAS has registers twice as wide. */
static bool forward_fits(uint32_t rows, uint32_t out) {
    return rows <= FORWARD_ROWS_MAX && out % TILE_OUT == 0 &&
           (uint64_t)rows * out <= SL_PRODUCT_PANEL_MAX && sl_kernels_level == SL_KERNELS_V3;
}

static void pack_panels(float *panel, const float *d, uint32_t rows, uint32_t out) {
    for (uint32_t column = 0; column < out; column += TILE_OUT) {
        uint32_t width = out - column < TILE_OUT ? out - column : TILE_OUT;
        for (uint32_t row = 0; row < rows; row++, panel += TILE_OUT) {
            memset(panel, 0, TILE_OUT * sizeof *panel);
            memcpy(panel, d + (size_t)row * out + column, width * sizeof *panel);
        }
    }
}

static void pack_strip(float strip[ROWS_MAX * TILE_IN], const float *x, uint32_t rows, uint32_t in,
                       uint32_t width) {
    if (width == TILE_IN) { /* a constant size: three moves a row */
        for (uint32_t row = 0; row < rows; row++)
            memcpy(strip + (size_t)row * TILE_IN, x + (size_t)row * in, TILE_IN * sizeof *x);
        return;
    }
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t i = 0; i < TILE_IN; i++)
            strip[row * TILE_IN + i] = i < width ? x[(size_t)row * in + i] : 0;
}

/* One tile's sums; t (6, 16) lies `stride` apart. */
__attribute__((target("avx2,fma"))) static void
gradient_tile(float *t, size_t stride, const float *strip, const float *panel, uint32_t rows) {
    __m256 sums[TILE_IN][2];
    for (int i = 0; i < TILE_IN; i++)
        sums[i][0] = sums[i][1] = _mm256_setzero_ps();
    for (uint32_t row = 0; row < rows; row++, strip += TILE_IN, panel += TILE_OUT) {
        __m256 low = _mm256_load_ps(panel), high = _mm256_load_ps(panel + 8);
#pragma GCC unroll 6
        for (int i = 0; i < TILE_IN; i++) {
            __m256 factor = _mm256_broadcast_ss(strip + i);
            sums[i][0] = _mm256_fmadd_ps(factor, low, sums[i][0]);
            sums[i][1] = _mm256_fmadd_ps(factor, high, sums[i][1]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < TILE_IN; i++, t += stride) {
        _mm256_storeu_ps(t, sums[i][0]);
        _mm256_storeu_ps(t + 8, sums[i][1]);
    }
}

/* A tile at the edge: through a full one on the stack. */
static void gradient_edge(float *t, size_t stride, const float *strip, const float *panel,
                          uint32_t rows, uint32_t height, uint32_t width) {
    float tile[TILE_IN][TILE_OUT];
    gradient_tile(tile[0], TILE_OUT, strip, panel, rows);
    for (uint32_t i = 0; i < height; i++, t += stride)
        memcpy(t, tile[i], width * sizeof *t);
}

static void gradient_tiles(float *g, const float *x, const float *d, uint32_t rows, uint32_t in,
                           uint32_t out, float *panel) {
    float strip[ROWS_MAX * TILE_IN];
    pack_panels(panel, d, rows, out);
    for (uint32_t row = 0; row < in; row += TILE_IN, g += (size_t)TILE_IN * out) {
        uint32_t height = in - row < TILE_IN ? in - row : TILE_IN;
        pack_strip(strip, x + row, rows, in, height);
        for (uint32_t column = 0; column < out; column += TILE_OUT) {
            uint32_t width = out - column < TILE_OUT ? out - column : TILE_OUT;
            const float *p = panel + (size_t)column * rows;
            if (height == TILE_IN && width == TILE_OUT)
                gradient_tile(g + column, out, strip, p, rows);
            else
                gradient_edge(g + column, out, strip, p, rows, height, width);
        }
    }
}

static bool gradient_fits(uint32_t rows, uint32_t out) {
    uint64_t padded = ((uint64_t)out + TILE_OUT - 1) / TILE_OUT * TILE_OUT;
    return rows <= ROWS_MAX && padded * rows <= SL_PRODUCT_PANEL_MAX && sl_has_avx2();
}

void sl_product_forward(float *y, const float *x, const float *w, uint32_t rows, uint32_t in,
                        uint32_t out, float *panel) {
    if (forward_fits(rows, out))
        forward_panels(y, x, w, rows, in, out, panel);
    else
        forward_blas(y, x, w, rows, in, out);
}

void sl_product_gradient(float *g, const float *x, const float *d, uint32_t rows, uint32_t in,
                         uint32_t out, float *panel) {
    if (gradient_fits(rows, out))
        gradient_tiles(g, x, d, rows, in, out, panel);
    else
        gradient_blas(g, x, d, rows, in, out);
}

#else
void sl_product_forward(float *y, const float *x, const float *w, uint32_t rows, uint32_t in,
                        uint32_t out, float *panel) {
    (void)panel;
    forward_blas(y, x, w, rows, in, out);
}

void sl_product_gradient(float *g, const float *x, const float *d, uint32_t rows, uint32_t in,
                         uint32_t out, float *panel) {
    (void)panel;
    gradient_blas(g, x, d, rows, in, out);
}
#endif
