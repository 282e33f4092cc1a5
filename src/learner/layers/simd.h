/* simd.h - eight floats at a time in plain C (sixteen for AVX-512), for the layers' kernels.
 *
 * These are GNU C vectors, which the compiler maps to the processor's instructions. Files that
 * include this header are compiled once per level of processor (meson.build, layer_cpu.h), with
 * contraction: a product and a sum may become one fused multiply-add. The order of sums is fixed.
 * All processors with fused multiply-add give the same bits; those without give others.
 */
#ifndef SL_LEARNER_SIMD_H
#define SL_LEARNER_SIMD_H

#include <stdint.h>
#include <string.h>

#ifndef LANES
#define LANES 8
#endif
#define KERNEL static inline __attribute__((always_inline))

typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t lanes_mask __attribute__((vector_size(4 * LANES)));

KERNEL lanes load(const float *p) {
    lanes v;
    memcpy(&v, p, sizeof v);
    return v;
}

KERNEL void store(float *p, lanes v) {
    memcpy(p, &v, sizeof v);
}

/* Loads the first `width` lanes; the others are 0. */
KERNEL lanes load_part(const float *p, uint32_t width) {
    if (width == LANES)
        return load(p);
    float whole[LANES] = {0};
    memcpy(whole, p, width * sizeof *p);
    return load(whole);
}

KERNEL void store_part(float *p, lanes v, uint32_t width) {
    if (width == LANES) {
        store(p, v);
        return;
    }
    float whole[LANES];
    store(whole, v);
    memcpy(p, whole, width * sizeof *p);
}

KERNEL lanes broadcast(float f) {
    return f - (lanes){0}; /* -0 stays */
}

/* max(0, v); a NaN stays, so that divergence shows. */
KERNEL lanes relu(lanes v) {
    return (lanes)((lanes_mask)v & ~(v < 0));
}

/* a where the mask is set, b elsewhere. */
KERNEL lanes choose(lanes_mask mask, lanes a, lanes b) {
    return (lanes)(((lanes_mask)a & mask) | ((lanes_mask)b & ~mask));
}

/* The first `width` lanes. */
KERNEL lanes_mask first_lanes(uint32_t width) {
    lanes_mask index;
    for (int32_t i = 0; i < LANES; i++)
        index[i] = i;
    return index < (int32_t)width;
}

/* v where y > 0, else 0. */
KERNEL lanes where_positive(lanes v, lanes y) {
    return (lanes)((lanes_mask)v & (y > 0));
}

#endif
