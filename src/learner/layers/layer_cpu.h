/* layer_cpu.h - a kind of layer is one row, at the end of its file: shapes, tensors, how it starts,
 * and its functions on the CPU.
 *
 * The files are compiled once for any processor and once for those with AVX2 and FMA (meson.build
 * defines SL_LEVEL, which ends the row's name); layer_cpu.c chooses when the program runs.
 */
#ifndef SL_LEARNER_LAYER_CPU_H
#define SL_LEARNER_LAYER_CPU_H

#include "learner/layers/layer.h"
#include "starling/rng.h"
#include "starling/tensors.h"

typedef struct sl_layer_type {
    /* Finds the shape of the output; false: the input does not fit. */
    bool (*shape)(sl_layer *layer);
    /* Its tensors; the rest of `out` is 0. NULL: no parameters. */
    void (*tensors)(const sl_layer *layer, sl_tensor out[SL_LAYER_TENSORS_MAX]);
    /* Writes the first parameters into w (count), which is 0. NULL: it stays so. */
    void (*initial)(const sl_layer *layer, sl_rng *rng, float *w);
    /* Its shortcut may have twice the height and width, and fewer channels. */
    bool widens_shortcut;
    sl_layer_ops ops;
} sl_layer_type;

#define SL_JOIN_(a, b) a##b
#define SL_JOIN(a, b) SL_JOIN_(a, b)
#define SL_LAYER(name) const sl_layer_type SL_JOIN(sl_##name, SL_LEVEL)

#define SL_LAYER_DECLARE(kind, name, text)                                                         \
    extern const sl_layer_type sl_##name##_plain, sl_##name##_v3;
SL_LAYER_TABLE(SL_LAYER_DECLARE)
#undef SL_LAYER_DECLARE

const sl_layer_type *sl_layer_type_of(sl_layer_kind kind);

/* ---- shared.c: what several kinds share ---- */

/* The output of a square window that slides over the input. */
bool sl_layer_slide_window(sl_layer *layer);
/* The output's shape is the input's. */
bool sl_layer_keep_shape(sl_layer *layer);
/* A scale and a shift for each channel; the scale starts at 1. */
void sl_layer_affine_tensors(const sl_layer *layer, sl_tensor out[SL_LAYER_TENSORS_MAX]);
void sl_layer_affine_initial(const sl_layer *layer, sl_rng *rng, float *w);
/* w (count) from N(0, deviation^2). */
void sl_layer_draw_normal(sl_rng *rng, float *w, size_t count, double deviation);
/* The layer's own deviation or, without one, sqrt(2 / inputs) (He et al. 2015). */
double sl_layer_deviation(const sl_layer *layer, double inputs);

void sl_loss_cpu(const sl_loss_call *call); /* loss.c */
size_t sl_loss_scratch_cpu(uint32_t rows);

#endif
