/* product_tiles.h - a layer's two products by kernels of our own, for processors that have some. */
#ifndef SL_LEARNER_PRODUCT_TILES_H
#define SL_LEARNER_PRODUCT_TILES_H

#include <stdint.h>

#include "base/kernels.h"

#define SL_PRODUCT_COLUMNS 16u   /* a panel's; y has a multiple of them */
#define SL_PRODUCT_ROWS_MAX 256u /* of x and d in a gradient */

/* As in product.h. All levels add in one order, and give the same bits. */
typedef struct sl_product_tiles {
    void (*forward)(float *y, const float *x, const float *w, uint32_t rows, uint32_t in,
                    uint32_t out, float *panel);
    void (*gradient)(float *g, const float *x, const float *d, uint32_t rows, uint32_t in,
                     uint32_t out, float *panel);
} sl_product_tiles;

extern const sl_product_tiles sl_product_tiles_v3, sl_product_tiles_v4;

/* NULL: there are none. */
const sl_product_tiles *sl_product_tiles_of(sl_kernel_level level);

#endif
