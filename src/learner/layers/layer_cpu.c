/* layer_cpu.c - which functions compute which kind on this CPU; see layer_cpu.h. */
#include "learner/layers/layer_cpu.h"

#include "base/kernels.h"

#define TABLE(level)                                                                               \
    {                                                                                              \
        [SL_LAYER_DENSE] = &sl_dense_cpu, [SL_LAYER_CONV2D] = &sl_conv2d_##level,                  \
        [SL_LAYER_BATCH_NORM] = &sl_batch_norm_##level,                                            \
        [SL_LAYER_MAX_POOL] = &sl_max_pool_##level,                                                \
        [SL_LAYER_AVERAGE_POOL] = &sl_average_pool_##level,                                        \
        [SL_LAYER_EMBEDDING] = &sl_embedding_cpu, [SL_LAYER_LSTM] = &sl_lstm_##level,              \
        [SL_LAYER_LAYER_NORM] = &sl_layer_norm_##level,                                            \
        [SL_LAYER_ATTENTION] = &sl_attention_##level, [SL_LAYER_GELU] = &sl_gelu_##level           \
    }

const sl_layer_backend *sl_layer_backend_plain(void) {
    static const sl_layer_ops *const table[SL_LAYER_KINDS] = TABLE(plain);
    static const sl_layer_backend backend = {table, sl_loss_scratch_cpu, sl_loss_cpu};
    return &backend;
}

#if defined(SL_HAS_V3)
const sl_layer_backend *sl_layer_backend_cpu(void) {
    static const sl_layer_ops *const table[SL_LAYER_KINDS] = TABLE(v3);
    static const sl_layer_backend backend = {table, sl_loss_scratch_cpu, sl_loss_cpu};
    return sl_has_avx2() ? &backend : sl_layer_backend_plain();
}
#else
const sl_layer_backend *sl_layer_backend_cpu(void) {
    return sl_layer_backend_plain();
}
#endif
