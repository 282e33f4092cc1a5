/* sum.h - the order in which every backend sums a long vector, so that all get the same bits and
 * many threads can share the work.
 *
 * Elements are taken in tiles of SUM_TILE from the first on. Within a tile element i of the vector
 * goes to lane i % SUM_LANES, and the tile's sum is that of its lanes, by halves. Tile t then goes
 * to fold t % SUM_FOLDS, and the sum of all is that of the folds, in order. So no chain of
 * additions is longer than a tile's elements over SUM_LANES, the tiles over SUM_FOLDS, or the
 * folds.
 *
 * Magnitudes are added as floats first, by fours: those that a tile's lane has of SUM_GROUP
 * elements [k SUM_GROUP, (k + 1) SUM_GROUP) of the vector, zero where the tile has none. Two
 * roundings to 24 bits, of which the mean of many keeps next to nothing, save three of four
 * conversions.
 */
#ifndef SL_SUM_H
#define SL_SUM_H

#include <assert.h>

#include "element/shared.h"

enum { SUM_LANES = 16, SUM_GROUP = 4 * SUM_LANES, SUM_TILE = 4096, SUM_FOLDS = 256 };

/* Tiles of n elements, and the folds that these need. */
SL_SHARED size_t sum_tiles(size_t n) {
    return (n + SUM_TILE - 1) / SUM_TILE;
}

SL_SHARED size_t sum_folds(size_t tiles) {
    return tiles < SUM_FOLDS ? tiles : (size_t)SUM_FOLDS;
}

/* Of folds: one thread of a device adds them up, and no more. */
SL_SHARED double sum_in_order(const double *v, size_t count) {
    double sum = 0;
#ifndef __CUDA_ARCH__
    assert(count <= SUM_FOLDS);
#endif
    SL_UNROLL(16)
    for (size_t i = 0; i < count; i++)
        sum += v[i];
    return sum;
}

SL_SHARED double sum_of_four(float a, float b, float c, float d) {
    return (double)((a + b) + (c + d));
}

/* A tile's lanes, by halves: a chain of four additions where one after the other is fifteen, which
 * every short bucket would wait for. */
SL_SHARED double sum_lanes(const double lanes[SUM_LANES]) {
    double half[SUM_LANES / 2], quarter[SUM_LANES / 4];
    SL_UNROLL(8)
    for (int l = 0; l < SUM_LANES / 2; l++)
        half[l] = lanes[l] + lanes[l + SUM_LANES / 2];
    SL_UNROLL(4)
    for (int l = 0; l < SUM_LANES / 4; l++)
        quarter[l] = half[l] + half[l + SUM_LANES / 4];
    return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
}

/* Tiles of each fold one after the other, `tile` counted from 0. Folds need no first value. */
SL_SHARED void sum_fold(double *folds, size_t tile, double sum) {
    const size_t fold = tile % SUM_FOLDS;
    folds[fold] = tile < SUM_FOLDS ? sum : folds[fold] + sum;
}

/* One fold of tiles that are all there, as on a device; 0 if it has none. */
SL_SHARED double sum_of_fold(const double *tiles, size_t count, size_t fold) {
    double sum = 0;
    SL_UNROLL(16)
    for (size_t t = fold; t < count; t += SUM_FOLDS)
        sum += tiles[t];
    return sum;
}

#endif
