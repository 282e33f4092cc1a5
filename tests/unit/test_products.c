/* test_products.c - a layer's two products: each form that this processor has (OpenBLAS, kernels
 * for AVX2, for AVX-512) beside float64, and the kernels bit for bit beside sums in their order. */
#include "harness.h"
#include "learner/layers/product.h"
#include "learner/layers/product_tiles.h"
#include "starling/kernels.h"
#include "starling/rng.h"

enum { LEVELS = SL_KERNELS_V4 + 1, WIDEST = 300, LONGEST = 257, BLOCK = 28 };

static sl_kernel_level best;
static float *panel, *x, *w, *to;

/* In [-1, 1]. */
static float *draw(size_t count, uint64_t seed) {
    float *at = aligned_alloc(64, (count * sizeof *at + 63) / 64 * 64);
    sl_rng rng = sl_rng_open(seed, 0, 0, SL_PURPOSE_FAULT);
    for (size_t i = 0; i < count; i++)
        at[i] = (float)(2 * sl_rng_uniform(&rng) - 1);
    return at;
}

static void open_all(void) {
    best = sl_kernels_level;
    panel = draw(SL_PRODUCT_PANEL_MAX, 2);
    x = draw((size_t)LONGEST * WIDEST, 3);
    w = draw((size_t)WIDEST * WIDEST, 4);
    to = draw((size_t)WIDEST * WIDEST + 1, 5);
}

static void close_all(void) {
    sl_kernels_level = best;
    free(panel);
    free(x);
    free(w);
    free(to);
}

/* False: this processor has no such form. */
static bool choose(int level) {
    if (level <= (int)best)
        sl_kernels_level = (sl_kernel_level)level;
    else
        printf("not compared: this processor has no kernels of level %d\n", level);
    return level <= (int)best;
}

/* All columns of each `step`-th line. */
#define EACH_NUMBER(lines, columns, step)                                                          \
    for (uint32_t i = 0; i < (lines); i += (step))                                                 \
        for (uint32_t j = 0; j < (columns); j++)

FIXTURES(open_all, close_all);

/* The kernels' order: rows one after the other; blocks of 28 inputs, each from 0 on. */
START_LOOP_TEST(kernels_of_all_processors_have_the_bits_of_sums_in_one_order, LEVELS) {
    static const uint32_t rows[] = {1, 3, 4, 7, 32}, ins[] = {1, 11, 12, 13, 29, 56, 100},
                          outs[] = {1, 15, 16, 17, 32, 48, 64, 80, 144, 256};
    const sl_product_tiles *tiles = choose(_i) ? sl_product_tiles_of((sl_kernel_level)_i) : NULL;
    for (size_t shape = 0; shape < 5 * 7 * 10 && tiles != NULL; shape++) {
        const uint32_t n = rows[shape % 5], in = ins[shape / 5 % 7], out = outs[shape / 35];
        tiles->gradient(to, x, w, n, in, out, panel);
        EACH_NUMBER(in, out, in / 7 + 1) {
            float sum = 0;
            for (uint32_t k = 0; k < n; k++)
                sum = fmaf(x[k * in + i], w[k * out + j], sum);
            ck_assert_float_eq(to[i * out + j], sum);
        }
        if (out % SL_PRODUCT_COLUMNS != 0)
            continue;
        tiles->forward(to, x, w, n, in, out, panel);
        EACH_NUMBER(n, out, 1) {
            float sum = 0;
            for (uint32_t k = 0, end; k < in; k = end) {
                float block = 0;
                for (end = k; end < in && end < k + BLOCK; end++)
                    block = fmaf(x[i * in + end], w[end * out + j], block);
                sum += block;
            }
            ck_assert_float_eq(to[i * out + j], sum);
        }
    }
}
