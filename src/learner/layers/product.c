/* product.c - who does a layer's two large matrix products; see product.h. */
#include "learner/layers/product.h"

#include <cblas.h>

#include "learner/layers/product_tiles.h"

#define FORWARD_ROWS_MAX 64u /* beyond, OpenBLAS's panels of w pay for themselves */

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

const sl_product_tiles *sl_product_tiles_of(sl_kernel_level level) {
#ifdef SL_HAS_V3
    return level == SL_KERNELS_V4   ? &sl_product_tiles_v4
           : level == SL_KERNELS_V3 ? &sl_product_tiles_v3
                                    : NULL;
#else
    (void)level;
    return NULL;
#endif
}

static bool forward_fits(uint32_t rows, uint32_t out) {
    return rows <= FORWARD_ROWS_MAX && out % SL_PRODUCT_COLUMNS == 0 &&
           (uint64_t)rows * out <= SL_PRODUCT_PANEL_MAX;
}

static bool gradient_fits(uint32_t rows, uint32_t out) {
    const uint64_t panels = ((uint64_t)out + SL_PRODUCT_COLUMNS - 1) / SL_PRODUCT_COLUMNS;
    return rows <= SL_PRODUCT_ROWS_MAX &&
           panels * SL_PRODUCT_COLUMNS * rows <= SL_PRODUCT_PANEL_MAX;
}

void sl_product_forward(float *y, const float *x, const float *w, uint32_t rows, uint32_t in,
                        uint32_t out, float *panel) {
    const sl_product_tiles *tiles = sl_product_tiles_of(sl_kernels_level);
    if (tiles != NULL && forward_fits(rows, out))
        tiles->forward(y, x, w, rows, in, out, panel);
    else
        forward_blas(y, x, w, rows, in, out);
}

void sl_product_gradient(float *g, const float *x, const float *d, uint32_t rows, uint32_t in,
                         uint32_t out, float *panel) {
    const sl_product_tiles *tiles = sl_product_tiles_of(sl_kernels_level);
    if (tiles != NULL && gradient_fits(rows, out))
        tiles->gradient(g, x, d, rows, in, out, panel);
    else
        gradient_blas(g, x, d, rows, in, out);
}
