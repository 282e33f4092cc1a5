/* layer.c - building a table of layers: shapes, places of parameters, how they start; see layer.h.
 */
#include "learner/layers/layer.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "starling/rng.h"

const char *sl_layer_name(sl_layer_kind kind) {
    static const char *const names[SL_LAYER_KINDS] = {
        [SL_LAYER_DENSE] = "dense",
        [SL_LAYER_CONV2D] = "conv2d",
        [SL_LAYER_BATCH_NORM] = "batch norm",
        [SL_LAYER_MAX_POOL] = "max pool",
        [SL_LAYER_AVERAGE_POOL] = "average pool",
        [SL_LAYER_EMBEDDING] = "embedding",
        [SL_LAYER_LSTM] = "lstm",
        [SL_LAYER_LAYER_NORM] = "layer norm",
        [SL_LAYER_ATTENTION] = "attention",
        [SL_LAYER_GELU] = "gelu",
    };
    return names[kind];
}

uint32_t sl_layers_last(const sl_layers *table) {
    return (uint32_t)table->count;
}

sl_shape sl_layers_shape(const sl_layers *table, uint32_t index) {
    assert(index <= table->count);
    return index == 0 ? table->input : table->items[index - 1].out;
}

/* Inputs that one output of the layer sums over. */
static size_t fan_in(const sl_layer *layer) {
    if (layer->kind == SL_LAYER_DENSE)
        return layer->each ? layer->in.channels : sl_shape_size(layer->in);
    return (size_t)layer->window * layer->window * layer->in.channels;
}

static void add_tensor(sl_layer *layer, size_t count) {
    assert(layer->tensor_count < SL_LAYER_TENSORS_MAX);
    layer->tensors[layer->tensor_count++] = count;
    layer->count += count;
}

static bool slide_window(sl_layer *layer) {
    uint64_t height = (uint64_t)layer->in.height + 2 * (uint64_t)layer->padding,
             width = (uint64_t)layer->in.width + 2 * (uint64_t)layer->padding;
    if (layer->window < 1 || layer->stride < 1 || layer->padding >= layer->window ||
        layer->window > height || layer->window > width)
        return false;
    layer->out.height = (uint32_t)((height - layer->window) / layer->stride + 1);
    layer->out.width = (uint32_t)((width - layer->window) / layer->stride + 1);
    return true;
}

/* out from in; false where they do not fit. */
static bool find_shape(sl_layer *layer) {
    switch (layer->kind) {
    case SL_LAYER_DENSE:
        layer->out.height = layer->each ? layer->in.height : 1;
        layer->out.width = layer->each ? layer->in.width : 1;
        return true;
    case SL_LAYER_CONV2D:
        return slide_window(layer);
    case SL_LAYER_BATCH_NORM:
    case SL_LAYER_LAYER_NORM:
    case SL_LAYER_GELU:
        layer->out = layer->in;
        return true;
    case SL_LAYER_EMBEDDING:
    case SL_LAYER_LSTM:
        layer->out.height = 1;
        layer->out.width = layer->in.width;
        return layer->in.height == 1 &&
               (layer->kind == SL_LAYER_LSTM || (layer->in.channels == 1 && layer->symbols > 0));
    case SL_LAYER_ATTENTION:
        layer->out = (sl_shape){1, layer->in.width, layer->in.channels / 3};
        return layer->in.height == 1 && layer->in.channels % 3 == 0 && layer->heads > 0 &&
               layer->out.channels % layer->heads == 0;
    case SL_LAYER_AVERAGE_POOL:
        layer->out.channels = layer->in.channels;
        if (layer->window != 0)
            return slide_window(layer);
        layer->out.height = layer->out.width = 1;
        return true;
    case SL_LAYER_MAX_POOL:
        layer->out.channels = layer->in.channels;
        return slide_window(layer);
    }
    return false;
}

static void find_tensors(sl_layer *layer) {
    switch (layer->kind) {
    case SL_LAYER_DENSE:
        add_tensor(layer, fan_in(layer) * layer->out.channels);
        add_tensor(layer, layer->out.channels);
        return;
    case SL_LAYER_CONV2D:
        add_tensor(layer, fan_in(layer) * layer->out.channels);
        if (layer->bias)
            add_tensor(layer, layer->out.channels);
        return;
    case SL_LAYER_BATCH_NORM:
    case SL_LAYER_LAYER_NORM:
        add_tensor(layer, layer->out.channels);
        add_tensor(layer, layer->out.channels);
        return;
    case SL_LAYER_EMBEDDING:
        add_tensor(layer, (size_t)layer->symbols * layer->out.channels);
        if (layer->bias)
            add_tensor(layer, sl_shape_size(layer->out));
        return;
    case SL_LAYER_LSTM:
        add_tensor(layer, 4 * (size_t)layer->in.channels * layer->out.channels);
        add_tensor(layer, 4 * (size_t)layer->out.channels * layer->out.channels);
        add_tensor(layer, 4 * (size_t)layer->out.channels);
        return;
    case SL_LAYER_MAX_POOL:
    case SL_LAYER_AVERAGE_POOL:
    case SL_LAYER_ATTENTION:
    case SL_LAYER_GELU:
        return;
    }
}

/* A shortcut has the output's shape; a batch norm's may have twice its height and width, and fewer
 * channels. */
static bool shortcut_fits(const sl_layers *table, const sl_layer *layer) {
    if (layer->shortcut == 0)
        return true;
    sl_shape from = sl_layers_shape(table, layer->shortcut), to = layer->out;
    if (layer->kind == SL_LAYER_DENSE)
        return from.height == to.height && from.width == to.width && from.channels == to.channels;
    uint32_t step = from.height == to.height ? 1 : 2;
    return from.channels <= to.channels && (from.height + step - 1) / step == to.height &&
           (from.width + step - 1) / step == to.width;
}

static int refuse(const sl_layers *table, const sl_layer *layer, sl_error *error) {
    char window[64] = "";
    if (layer->window != 0)
        snprintf(window, sizeof window, " %ux%u, stride %u, padding %u", layer->window,
                 layer->window, layer->stride, layer->padding);
    return sl_fail(error, SL_EINVAL,
                   "model: layer %zu (%s%s, %u channels) does not fit its input of %ux%u positions "
                   "and %u channels; larger images, or a smaller model",
                   table->count + 1, sl_layer_name(layer->kind), window, layer->out.channels,
                   layer->in.height, layer->in.width, layer->in.channels);
}

int sl_layers_add(sl_layers *table, const sl_layer *wanted, sl_error *error) {
    assert(table->count < SL_LAYERS_MAX);
    sl_layer layer = *wanted;
    layer.input = sl_layers_last(table);
    layer.in = sl_layers_shape(table, layer.input);
    layer.offset = table->dimension;
    if (!find_shape(&layer) || !shortcut_fits(table, &layer))
        return refuse(table, &layer, error);
    size_t size = sl_shape_size(layer.out);
    if (size < 1 || size > SL_LAYER_SIZE_MAX)
        return sl_fail(error, SL_EINVAL, "model: layer %zu has size %zu; allowed are 1 to %zu",
                       table->count + 1, size, SL_LAYER_SIZE_MAX);
    find_tensors(&layer);
    size_t end = table->dimension; /* each tensor is below 2^56 */
    for (size_t t = 0; t < layer.tensor_count; t++)
        table->tensor_ends[table->tensor_count++] = end += layer.tensors[t];
    table->dimension = end;
    table->items[table->count++] = layer;
    if (end <= SL_LAYERS_DIMENSION_MAX)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "model: %zu parameters; at most %zu are allowed, use smaller hidden layers", end,
                   SL_LAYERS_DIMENSION_MAX);
}

static void draw_normal(float *x, size_t count, double deviation, uint64_t seed, uint32_t layer) {
    sl_rng rng = sl_rng_open(seed, layer, 0, SL_PURPOSE_INIT);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(deviation * sl_rng_normal(&rng));
}

static double deviation_of(const sl_layer *layer) {
    if (layer->deviation > 0)
        return layer->deviation;
    if (layer->kind == SL_LAYER_EMBEDDING)
        return 1;
    return sqrt(2.0 / (layer->kind == SL_LAYER_LSTM
                           ? (double)layer->in.channels + 5.0 * layer->out.channels
                           : (double)fan_in(layer)));
}

void sl_layers_initial(const sl_layers *table, uint64_t seed, float *x) {
    memset(x, 0, table->dimension * sizeof *x);
    if (table->count == 1)
        return;
    for (uint32_t l = 0; l < table->count; l++) {
        const sl_layer *layer = &table->items[l];
        float *w = x + layer->offset;
        switch (layer->kind) {
        case SL_LAYER_DENSE:
        case SL_LAYER_CONV2D:
            draw_normal(w, layer->tensors[0], deviation_of(layer), seed, l);
            break;
        case SL_LAYER_EMBEDDING:
            draw_normal(w, layer->count, deviation_of(layer), seed, l);
            break;
        case SL_LAYER_LSTM:
            draw_normal(w, layer->tensors[0] + layer->tensors[1], deviation_of(layer), seed, l);
            for (uint32_t c = 0; c < layer->out.channels; c++)
                w[layer->tensors[0] + layer->tensors[1] + layer->out.channels + c] = 1;
            break;
        case SL_LAYER_BATCH_NORM:
        case SL_LAYER_LAYER_NORM:
            for (uint32_t c = 0; c < layer->out.channels; c++)
                w[c] = 1;
            break;
        case SL_LAYER_MAX_POOL:
        case SL_LAYER_AVERAGE_POOL:
        case SL_LAYER_ATTENTION:
        case SL_LAYER_GELU:
            break;
        }
    }
}

uint64_t sl_layers_hash(uint64_t hash, const sl_layers *table) {
    for (size_t l = 0; l < table->count; l++) {
        const sl_layer *a = &table->items[l];
        const uint32_t words[] = {(uint32_t)a->kind, a->relu,      a->window,      a->stride,
                                  a->padding,        a->input,     a->shortcut,    a->each,
                                  a->heads,          a->in.height, a->in.width,    a->in.channels,
                                  a->out.height,     a->out.width, a->out.channels};
        hash = sl_hash(hash, words, sizeof words);
        hash = sl_hash(hash, a->tensors, a->tensor_count * sizeof a->tensors[0]);
    }
    return hash;
}
