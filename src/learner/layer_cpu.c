/* layer_cpu.c - which functions compute which kind on the CPU; see layer_cpu.h. */
#include "layer_cpu.h"

const sl_layer_ops *const sl_layer_ops_cpu[SL_LAYER_KINDS] = {
    [SL_LAYER_DENSE] = &sl_dense_cpu,
    [SL_LAYER_CONV2D] = &sl_conv2d_cpu,
    [SL_LAYER_BATCH_NORM] = &sl_batch_norm_cpu,
    [SL_LAYER_MAX_POOL] = &sl_max_pool_cpu,
    [SL_LAYER_AVERAGE_POOL] = &sl_average_pool_cpu,
};
