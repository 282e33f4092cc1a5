/* outer.c - sums of outer products; see outer.h.
 *
 * The kernel keeps a tile of 6 x 16 sums in twelve registers while it runs over the rows: per row
 * two loads of d and six broadcasts of x feed twelve multiply-adds. d is first packed into panels
 * of 16 columns, and six columns of x at a time into a strip, so that both are read in sequence;
 * panels are padded with zeros and only whole columns are written.
 */
#include "outer.h"

#include <cblas.h>
#include <stdbool.h>
#include <string.h>

#define TILE_IN 6
#define TILE_OUT 16
#define ROWS_MAX 256 /* longest strip */

static void sum_blas(float *g, const float *x, const float *d, uint32_t rows, uint32_t in,
                     uint32_t out) {
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)in, (int)out, (int)rows, 1.0f, x,
                (int)in, d, (int)out, 0.0f, g, (int)out);
}

#if defined(__x86_64__)
#include <immintrin.h>

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
sum_tile(float *t, size_t stride, const float *strip, const float *panel, uint32_t rows) {
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
static void sum_edge(float *t, size_t stride, const float *strip, const float *panel, uint32_t rows,
                     uint32_t height, uint32_t width) {
    float tile[TILE_IN][TILE_OUT];
    sum_tile(tile[0], TILE_OUT, strip, panel, rows);
    for (uint32_t i = 0; i < height; i++, t += stride)
        memcpy(t, tile[i], width * sizeof *t);
}

static void sum_tiles(float *g, const float *x, const float *d, uint32_t rows, uint32_t in,
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
                sum_tile(g + column, out, strip, p, rows);
            else
                sum_edge(g + column, out, strip, p, rows, height, width);
        }
    }
}

static bool kernel_fits(uint32_t rows, uint32_t out) {
    uint64_t padded = ((uint64_t)out + TILE_OUT - 1) / TILE_OUT * TILE_OUT;
    return rows <= ROWS_MAX && padded * rows <= SL_OUTER_PANEL_MAX &&
           __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
static void sum_tiles(float *g, const float *x, const float *d, uint32_t rows, uint32_t in,
                      uint32_t out, float *panel) {
    (void)panel;
    sum_blas(g, x, d, rows, in, out);
}

static bool kernel_fits(uint32_t rows, uint32_t out) {
    (void)rows;
    (void)out;
    return false;
}
#endif

void sl_outer_sum(float *g, const float *x, const float *d, uint32_t rows, uint32_t in,
                  uint32_t out, float *panel) {
    if (kernel_fits(rows, out))
        sum_tiles(g, x, d, rows, in, out, panel);
    else
        sum_blas(g, x, d, rows, in, out);
}
