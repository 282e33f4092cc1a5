/* grid.h - the numbers of the compressor grid: a vector's range, with equally many points for each
 * message. */
#ifndef SL_GRID_H
#define SL_GRID_H

#include <stddef.h>
#include <stdint.h>

/* 2^bits points, a `step` apart, from -range to range; the range is finite. */
typedef struct sl_grid {
    double range, step, inverse; /* inverse: of the step */
    uint32_t last;               /* point */
} sl_grid;

sl_grid sl_grid_of(uint32_t bits, float range);
/* out[i]: the point next to v[i], which is within the range. */
void sl_grid_round(const sl_grid *grid, const float *v, size_t n, float *out);

#endif
