/* layer_cpu.c - the rows of all kinds, and which compute on this CPU; see layer_cpu.h. */
#include "learner/layers/layer_cpu.h"

#include "base/kernels.h"

const sl_layer_type *sl_layer_type_of(sl_layer_kind kind) {
    static const sl_layer_type *const types[] = {
#define ROW(kind, name, text) &sl_##name##_plain,
        SL_LAYER_TABLE(ROW)
#undef ROW
    };
    return types[kind];
}

const sl_layer_backend *sl_layer_backend_plain(void) {
    static const sl_layer_ops *const table[] = {
#define ROW(kind, name, text) &sl_##name##_plain.ops,
        SL_LAYER_TABLE(ROW)
#undef ROW
    };
    static const sl_layer_backend backend = {table, sl_loss_scratch_cpu, sl_loss_cpu, NULL};
    return &backend;
}

#if defined(SL_HAS_V3)
const sl_layer_backend *sl_layer_backend_cpu(void) {
    static const sl_layer_ops *const table[] = {
#define ROW(kind, name, text) &sl_##name##_v3.ops,
        SL_LAYER_TABLE(ROW)
#undef ROW
    };
    static const sl_layer_backend backend = {table, sl_loss_scratch_cpu, sl_loss_cpu, NULL};
    return sl_has_avx2() ? &backend : sl_layer_backend_plain();
}
#else
const sl_layer_backend *sl_layer_backend_cpu(void) {
    return sl_layer_backend_plain();
}
#endif
