/* layer.c - builds a table of layers: shapes, places of parameters, how they start; see layer.h. */
#include "learner/layers/layer.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "learner/layers/layer_cpu.h"

const char *sl_layer_name(sl_layer_kind kind) {
    static const char *const names[] = {
#define NAME(kind, function, text) text,
        SL_LAYER_TABLE(NAME)
#undef NAME
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

static void find_tensors(sl_layer *layer) {
    sl_tensor tensors[SL_LAYER_TENSORS_MAX] = {0};
    const sl_layer_type *type = sl_layer_type_of(layer->kind);
    if (type->tensors != NULL)
        type->tensors(layer, tensors);
    for (size_t t = 0; t < SL_LAYER_TENSORS_MAX && tensors[t].name != NULL; t++) {
        layer->tensors[layer->tensor_count++] = sl_tensor_size(&tensors[t]);
        layer->count += layer->tensors[t];
    }
}

/* A shortcut has the output's shape, but where the kind widens it. */
static bool shortcut_fits(const sl_layers *table, const sl_layer *layer) {
    if (layer->shortcut == 0)
        return true;
    sl_shape from = sl_layers_shape(table, layer->shortcut), to = layer->out;
    if (!sl_layer_type_of(layer->kind)->widens_shortcut)
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
    if (!sl_layer_type_of(layer.kind)->shape(&layer) || !shortcut_fits(table, &layer))
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

static uint32_t number_of(const sl_layers *table, size_t layer) {
    uint32_t number = 0;
    for (size_t l = 0; l <= layer; l++)
        number += table->items[l].kind == table->items[layer].kind;
    return number;
}

void sl_layers_name_tensors(const sl_layers *table, sl_tensor *out, sl_tensor_name *names) {
    static const char *const kinds[] = {
#define KIND(kind, function, text) #function,
        SL_LAYER_TABLE(KIND)
#undef KIND
    };
    for (size_t l = 0; l < table->count; l++) {
        const sl_layer *layer = &table->items[l];
        const sl_layer_type *type = sl_layer_type_of(layer->kind);
        if (type->tensors != NULL)
            type->tensors(layer, out);
        for (size_t t = 0; t < layer->tensor_count; t++, out++, names++) {
            snprintf(names->text, sizeof names->text, "%s%u.%s", kinds[layer->kind],
                     number_of(table, l), out->name);
            out->name = names->text;
        }
    }
}

static double products_of(const sl_layer *layer) {
    const double positions = (double)layer->out.height * layer->out.width;
    if (layer->kind == SL_LAYER_ATTENTION)
        return 2 * positions * positions * layer->out.channels;
    const sl_layer_type *type = sl_layer_type_of(layer->kind);
    sl_tensor tensors[SL_LAYER_TENSORS_MAX] = {0};
    if (type->tensors == NULL || layer->kind == SL_LAYER_EMBEDDING)
        return 0;
    type->tensors(layer, tensors);
    double products = 0;
    for (size_t t = 0; t < layer->tensor_count; t++)
        if (tensors[t].axes > 1) /* else a bias, or a scale */
            products += positions * (double)layer->tensors[t];
    return products;
}

double sl_layers_products(const sl_layers *table) {
    double products = 0;
    for (size_t l = 0; l < table->count; l++)
        products += products_of(&table->items[l]);
    return products;
}

void sl_layers_initial(const sl_layers *table, uint64_t seed, float *x) {
    memset(x, 0, table->dimension * sizeof *x);
    for (uint32_t l = 0; l < table->count && table->count > 1; l++) {
        const sl_layer *layer = &table->items[l];
        const sl_layer_type *type = sl_layer_type_of(layer->kind);
        sl_rng rng = sl_rng_open(seed, l, 0, SL_PURPOSE_INIT);
        if (type->initial != NULL)
            type->initial(layer, &rng, x + layer->offset);
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
