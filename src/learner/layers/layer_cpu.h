/* layer_cpu.h - the kinds of layers on the CPU: one file each.
 *
 * Files of kernels (simd.h) are compiled once for any processor and once for those with AVX2 and
 * FMA (meson.build defines SL_LEVEL, which ends their names); layer_cpu.c chooses when the program
 * runs.
 */
#ifndef SL_LEARNER_LAYER_CPU_H
#define SL_LEARNER_LAYER_CPU_H

#include "learner/layers/layer.h"

#define SL_JOIN_(a, b) a##b
#define SL_JOIN(a, b) SL_JOIN_(a, b)
#define SL_OPS(kind) SL_JOIN(sl_##kind, SL_LEVEL)

extern const sl_layer_ops sl_dense_cpu;     /* dense.c */
extern const sl_layer_ops sl_embedding_cpu; /* embedding.c */

void sl_loss_cpu(const sl_loss_call *call); /* loss.c */
size_t sl_loss_scratch_cpu(uint32_t rows);

/* conv2d.c, batch_norm.c, pool.c; lstm.c, layer_norm.c, attention.c, gelu.c */
#define SL_KERNELS(X)                                                                              \
    X(conv2d) X(batch_norm) X(max_pool) X(average_pool) X(lstm) X(layer_norm) X(attention) X(gelu)
#define SL_DECLARE_KERNEL(kind) extern const sl_layer_ops sl_##kind##_plain, sl_##kind##_v3;
SL_KERNELS(SL_DECLARE_KERNEL)
#undef SL_DECLARE_KERNEL

#endif
