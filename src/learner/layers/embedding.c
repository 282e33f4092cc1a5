/* embedding.c - a vector for each character, and if asked one for each position on top: y_t =
 * E[x_t] + P[t].
 *
 * Tensors: E (symbols, out) and, if bias, P (width, out); both start at N(0, 1).
 *
 * The input holds codes, as floats. Backward: each row of E sums the d of the positions where its
 * code stands, rows of the batch one after the other.
 */
#include "learner/layers/layer_cpu.h"

#include <assert.h>
#include <string.h>

static sl_layer_memory memory(const sl_layer *layer, uint32_t rows) {
    (void)layer, (void)rows;
    return (sl_layer_memory){0};
}

/* Where in E the vector of the code at `x` begins. */
static size_t vector_of(const sl_layer *l, float x) {
    assert(x >= 0 && x < (float)l->symbols);
    return (size_t)x * l->out.channels;
}

static void forward(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    uint32_t channels = l->out.channels;
    const float *positions = c->w + l->tensors[0];
    float *y = c->out;
    for (size_t i = 0; i < (size_t)c->rows * l->in.width; i++, y += channels) {
        memcpy(y, c->w + vector_of(l, c->in[i]), channels * sizeof *y);
        const float *p = positions + i % l->in.width * channels;
        for (uint32_t k = 0; k < channels && l->bias; k++)
            y[k] += p[k];
    }
}

static void backward(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    uint32_t channels = l->out.channels;
    const float *d = c->d_out;
    memset(c->g, 0, l->count * sizeof *c->g);
    for (size_t i = 0; i < (size_t)c->rows * l->in.width; i++, d += channels) {
        float *g = c->g + vector_of(l, c->in[i]),
              *p = c->g + l->tensors[0] + i % l->in.width * channels;
        for (uint32_t k = 0; k < channels; k++)
            g[k] += d[k];
        for (uint32_t k = 0; k < channels && l->bias; k++)
            p[k] += d[k];
    }
}

static bool shape(sl_layer *layer) {
    layer->out.height = 1;
    layer->out.width = layer->in.width;
    return layer->in.height == 1 && layer->in.channels == 1 && layer->symbols > 0;
}

static void tensors(const sl_layer *layer, sl_tensor out[SL_LAYER_TENSORS_MAX]) {
    const uint32_t channels = layer->out.channels;
    out[0] = (sl_tensor){"weight", {layer->symbols, channels}, 2};
    if (layer->bias)
        out[1] = (sl_tensor){"position", {layer->out.height * layer->out.width, channels}, 2};
}

static void initial(const sl_layer *layer, sl_rng *rng, float *w) {
    sl_layer_draw_normal(rng, w, layer->count, layer->deviation > 0 ? layer->deviation : 1);
}

SL_LAYER(embedding) = {
    .shape = shape, .tensors = tensors, .initial = initial, .ops = {memory, forward, backward}};
