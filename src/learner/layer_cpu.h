/* layer_cpu.h - the kinds of layers on the CPU: one file each. */
#ifndef SL_LEARNER_LAYER_CPU_H
#define SL_LEARNER_LAYER_CPU_H

#include "layer.h"

extern const sl_layer_ops sl_dense_cpu;      /* dense.c */
extern const sl_layer_ops sl_conv2d_cpu;     /* conv2d.c */
extern const sl_layer_ops sl_batch_norm_cpu; /* batch_norm.c */
extern const sl_layer_ops sl_max_pool_cpu, sl_average_pool_cpu; /* pool.c */

#endif
