/* layers.h - the layers over device memory: one row for each kind in learner/layers/layer.h. */
#ifndef SL_GPU_LAYERS_H
#define SL_GPU_LAYERS_H

#include "gpu/device.h"
#include "learner/layers/layer.h"

const sl_layer_backend *layers_backend(void);

/* In layers_dense.c, layers_image.c, layers_text.c and layers_attention.c. NULL: no kernel. */
#define DECLARE(kind, name, text) extern const sl_layer_ops name##_layer __attribute__((weak));
SL_LAYER_TABLE(DECLARE)
#undef DECLARE

/* ---- sums over rows: kernels sum slices, finish_sums adds these ---- */

static inline size_t slices_of(size_t rows) {
    return (rows + SLICE - 1) / SLICE;
}

/* The floats that finish_sums needs at `parts`. */
size_t sums_floats(size_t groups, size_t columns);
/* Adds up parts (groups, columns). Returns the sums (columns): in `total`, or after the parts if
 * `total` is NULL. `rounded` (columns) gets them in single precision; may be NULL. */
double *finish_sums(double *parts, size_t groups, size_t columns, double *total, float *rounded);

/* Scratch memory is aligned for every type. */
static inline double *as_doubles(float *scratch) {
    return (double *)(void *)scratch;
}

static inline size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

#endif
