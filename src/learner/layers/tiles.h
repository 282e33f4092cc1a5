/* tiles.h - the two inner loops of convolutions and LSTMs: small matrix products whose sums stay in
 * registers.
 *
 * For each element of the inner dimension, six broadcasts of x and two vectors feed twelve
 * independent multiply-adds: enough to hide their latency. The functions are inlined, so that
 * heights and widths are constants.
 */
#ifndef SL_LEARNER_TILES_H
#define SL_LEARNER_TILES_H

#include <stddef.h>

#include "learner/layers/simd.h"

#define TILE 6            /* rows of a tile two vectors wide */
#define NARROW_TILE 12    /* and of one that is one vector wide */
#define PANEL (2 * LANES) /* columns of a panel */

typedef lanes tile_sums[12]; /* row by row */

KERNEL void tile_clear(tile_sums sums) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; i++)
        sums[i] = broadcast(0);
}

/* Row i of sums += sum over n of x[offsets[i] + n] panel[n], n < depth, i < height; panel (depth,
 * 16), of which `vectors` are used. */
KERNEL void tile_product(tile_sums sums, const float *x, const size_t *offsets, const float *panel,
                         size_t depth, uint32_t height, uint32_t vectors) {
    for (size_t n = 0; n < depth; n++, panel += PANEL) {
        lanes w[2] = {load(panel), vectors > 1 ? load(panel + LANES) : load(panel)};
#pragma GCC unroll 12
        for (uint32_t i = 0; i < height; i++) {
            lanes factor = broadcast(x[offsets[i] + n]);
#pragma GCC unroll 2
            for (uint32_t v = 0; v < vectors; v++)
                sums[i * vectors + v] += factor * w[v];
        }
    }
}

/* Row i of sums += sum over n of x[n x_step + i] d[n d_step ...], n < count, i < height. */
KERNEL void tile_outer_product(tile_sums sums, const float *x, size_t x_step, const float *d,
                               size_t d_step, size_t count, uint32_t height, uint32_t vectors) {
    for (size_t n = 0; n < count; n++, x += x_step, d += d_step) {
        lanes factor[2] = {load(d), vectors > 1 ? load(d + LANES) : load(d)};
#pragma GCC unroll 12
        for (uint32_t i = 0; i < height; i++) {
            lanes number = broadcast(x[i]);
#pragma GCC unroll 2
            for (uint32_t v = 0; v < vectors; v++)
                sums[i * vectors + v] += number * factor[v];
        }
    }
}

#endif
