/* layers.h - the layers over a device's memory: one row a kind of learner/layers/layer.h. */
#ifndef SL_GPU_LAYERS_H
#define SL_GPU_LAYERS_H

#include "gpu/device.h"
#include "learner/layers/layer.h"

const sl_layer_backend *layers_backend(void);

/* layers_dense.c, layers_image.c, layers_text.c, layers_attention.c. NULL: there is no kernel. */
#define DECLARE(kind, name, text) extern const sl_layer_ops name##_layer __attribute__((weak));
SL_LAYER_TABLE(DECLARE)
#undef DECLARE

/* ---- sums over rows: kernels leave the sums of slices, which are added here ---- */

static inline size_t slices_of(size_t rows) {
    return (rows + SLICE - 1) / SLICE;
}

/* Floats that finish_sums needs from `parts` on. */
size_t sums_floats(size_t groups, size_t columns);
/* The sums (columns) of parts (groups, columns); in `total`, or behind the parts where that is
 * NULL. `rounded` (columns): the same in single precision, or NULL. */
double *finish_sums(double *parts, size_t groups, size_t columns, double *total, float *rounded);

/* Scratch memory is aligned for any type. */
static inline double *as_doubles(float *scratch) {
    return (double *)(void *)scratch;
}

static inline size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

#endif
