/* shared.c - shapes, tensors and first parameters that several kinds of layers share; see
 * layer_cpu.h. */
#include <math.h>

#include "learner/layers/layer_cpu.h"

bool sl_layer_slide_window(sl_layer *layer) {
    uint64_t height = (uint64_t)layer->in.height + 2 * (uint64_t)layer->padding,
             width = (uint64_t)layer->in.width + 2 * (uint64_t)layer->padding;
    if (layer->window < 1 || layer->stride < 1 || layer->padding >= layer->window ||
        layer->window > height || layer->window > width)
        return false;
    layer->out.height = (uint32_t)((height - layer->window) / layer->stride + 1);
    layer->out.width = (uint32_t)((width - layer->window) / layer->stride + 1);
    return true;
}

bool sl_layer_keep_shape(sl_layer *layer) {
    layer->out = layer->in;
    return true;
}

void sl_layer_affine_tensors(const sl_layer *layer, sl_tensor out[SL_LAYER_TENSORS_MAX]) {
    out[0] = (sl_tensor){"scale", {layer->out.channels}, 1};
    out[1] = (sl_tensor){"shift", {layer->out.channels}, 1};
}

void sl_layer_affine_initial(const sl_layer *layer, sl_rng *rng, float *w) {
    (void)rng;
    for (uint32_t c = 0; c < layer->out.channels; c++)
        w[c] = 1;
}

void sl_layer_draw_normal(sl_rng *rng, float *w, size_t count, double deviation) {
    for (size_t i = 0; i < count; i++)
        w[i] = (float)(deviation * sl_rng_normal(rng));
}

double sl_layer_deviation(const sl_layer *layer, double inputs) {
    return layer->deviation > 0 ? layer->deviation : sqrt(2.0 / inputs);
}
