/* model.c - recipes of layers; see model.h. */
#include "learner/model.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

static int add_all(sl_layers *table, const sl_layer *recipe, size_t count, sl_error *error) {
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = sl_layers_add(table, &recipe[i], error);
    return result;
}

static int perceptron(sl_layers *table, const sl_model_config *config, uint32_t classes,
                      sl_error *error) {
    size_t hidden = config->kind == SL_MODEL_MLP ? config->hidden_count : 0;
    if (hidden > SL_HIDDEN_MAX || (config->kind == SL_MODEL_MLP && hidden == 0))
        return sl_fail(error, SL_EINVAL, "model.hidden has %zu layers; allowed are 1 to %d", hidden,
                       SL_HIDDEN_MAX);
    int result = 0;
    for (size_t i = 0; i <= hidden && result == 0; i++) {
        sl_layer dense = {.kind = SL_LAYER_DENSE,
                          .relu = i < hidden,
                          .out = {.channels = i < hidden ? config->hidden[i] : classes}};
        result = sl_layers_add(table, &dense, error);
    }
    return result;
}

/* LeCun, Bottou, Bengio, Haffner 1998, in the form in which it is trained today: ReLU for tanh, max
 * pools without parameters, every map of the second convolution sees all of the first,
 * cross-entropy. Images of 28x28 are padded to the paper's 32x32. 61,706 parameters for MNIST,
 * 62,006 for CIFAR-10. */
static int lenet5(sl_layers *table, const sl_model_config *config, uint32_t classes,
                  sl_error *error) {
    (void)config;
    const uint32_t padding = table->input.height == 28 ? 2 : 0;
    const sl_layer pool = {.kind = SL_LAYER_MAX_POOL, .window = 2, .stride = 2};
    const sl_layer recipe[] = {
        {.kind = SL_LAYER_CONV2D,
         .window = 5,
         .stride = 1,
         .padding = padding,
         .bias = true,
         .relu = true,
         .out = {.channels = 6}},
        pool,
        {.kind = SL_LAYER_CONV2D,
         .window = 5,
         .stride = 1,
         .bias = true,
         .relu = true,
         .out = {.channels = 16}},
        pool,
        {.kind = SL_LAYER_DENSE, .relu = true, .out = {.channels = 120}},
        {.kind = SL_LAYER_DENSE, .relu = true, .out = {.channels = 84}},
        {.kind = SL_LAYER_DENSE, .out = {.channels = classes}},
    };
    return add_all(table, recipe, sizeof recipe / sizeof *recipe, error);
}

static int convolve_and_normalise(sl_layers *table, uint32_t channels, uint32_t stride,
                                  uint32_t shortcut, sl_error *error) {
    const sl_layer recipe[] = {
        {.kind = SL_LAYER_CONV2D,
         .window = 3,
         .stride = stride,
         .padding = 1,
         .out = {.channels = channels}},
        {.kind = SL_LAYER_BATCH_NORM, .relu = true, .shortcut = shortcut},
    };
    return add_all(table, recipe, 2, error);
}

/* He, Zhang, Ren, Sun 2015, section 4.2: 6n + 2 layers, shortcuts of option A; n = 3. 269,722
 * parameters. */
static int resnet20(sl_layers *table, const sl_model_config *config, uint32_t classes,
                    sl_error *error) {
    (void)config;
    static const uint32_t widths[] = {16, 32, 64}, blocks = 3;
    int result = convolve_and_normalise(table, widths[0], 1, 0, error);
    for (uint32_t stage = 0; stage < 3; stage++)
        for (uint32_t block = 0; block < blocks && result == 0; block++) {
            uint32_t shortcut = sl_layers_last(table), stride = stage > 0 && block == 0 ? 2 : 1;
            result = convolve_and_normalise(table, widths[stage], stride, 0, error);
            if (result == 0)
                result = convolve_and_normalise(table, widths[stage], 1, shortcut, error);
        }
    const sl_layer end[] = {{.kind = SL_LAYER_AVERAGE_POOL},
                            {.kind = SL_LAYER_DENSE, .out = {.channels = classes}}};
    return result != 0 ? result : add_all(table, end, 2, error);
}

/* McMahan et al. 2017, section 3, and LEAF (Caldas et al. 2018): characters embedded in 8
 * dimensions, two layers of 256, and a softmax at each position. 813,897 parameters with 65
 * characters. */
static int lstm(sl_layers *table, const sl_model_config *config, uint32_t classes,
                sl_error *error) {
    const sl_layer embedding = {
        .kind = SL_LAYER_EMBEDDING, .symbols = classes, .out = {.channels = config->embedding}};
    const sl_layer memory = {.kind = SL_LAYER_LSTM,
                             .out = {.channels = config->units == 0 ? 256 : config->units}};
    const sl_layer end = {.kind = SL_LAYER_DENSE, .each = true, .out = {.channels = classes}};
    uint32_t layers = config->layers == 0 ? 2 : config->layers;
    int result = sl_layers_add(table, &embedding, error);
    for (uint32_t i = 0; i < layers && result == 0; i++)
        result = sl_layers_add(table, &memory, error);
    return result != 0 ? result : sl_layers_add(table, &end, error);
}

/* x + attention(norm(x)), then x + mlp(norm(x)). Weights N(0, 1/inputs); those that write into x
 * are smaller, so that x does not grow with depth. */
static int add_block(sl_layers *table, uint32_t width, uint32_t heads, uint32_t layers,
                     sl_error *error) {
    const sl_layer norm = {.kind = SL_LAYER_LAYER_NORM};
    double deviation = 1 / sqrt(width), less = 1 / sqrt(2.0 * layers);
    const sl_layer attention[] = {
        norm,
        {.kind = SL_LAYER_DENSE,
         .each = true,
         .deviation = deviation,
         .out = {.channels = 3 * width}},
        {.kind = SL_LAYER_ATTENTION, .heads = heads},
        {.kind = SL_LAYER_DENSE,
         .each = true,
         .deviation = deviation * less,
         .shortcut = sl_layers_last(table),
         .out = {.channels = width}},
    };
    int result = add_all(table, attention, sizeof attention / sizeof *attention, error);
    const sl_layer perceptron[] = {
        norm,
        {.kind = SL_LAYER_DENSE,
         .each = true,
         .deviation = deviation,
         .out = {.channels = 4 * width}},
        {.kind = SL_LAYER_GELU},
        {.kind = SL_LAYER_DENSE,
         .each = true,
         .deviation = deviation / 2 * less,
         .shortcut = sl_layers_last(table),
         .out = {.channels = width}},
    };
    return result != 0 ? result
                       : add_all(table, perceptron, sizeof perceptron / sizeof *perceptron, error);
}

/* The decoder of Vaswani et al. 2017 alone, in the form of Radford et al. 2019: learned positions,
 * normalisation before each part and at the end, GELU, a residual stream from end to end. */
static int transformer(sl_layers *table, const sl_model_config *config, uint32_t classes,
                       sl_error *error) {
    uint32_t width = config->units == 0 ? 128 : config->units,
             layers = config->layers == 0 ? 4 : config->layers;
    if (config->heads < 1 || width % config->heads != 0)
        return sl_fail(error, SL_EINVAL,
                       "model.heads is %u; it must divide model.units, which is %u", config->heads,
                       width);
    if (layers > SL_MODEL_LAYERS_MAX)
        return sl_fail(error, SL_EINVAL, "model.layers is %u; allowed are 1 to %d", layers,
                       SL_MODEL_LAYERS_MAX);
    const sl_layer embedding = {.kind = SL_LAYER_EMBEDDING,
                                .bias = true,
                                .symbols = classes,
                                .deviation = 0.1,
                                .out = {.channels = width}};
    int result = sl_layers_add(table, &embedding, error);
    for (uint32_t i = 0; i < layers && result == 0; i++)
        result = add_block(table, width, config->heads, layers, error);
    /* The first outputs are small beside 1, so that training starts at the loss of a guess,
     * log(classes). */
    const sl_layer end[] = {{.kind = SL_LAYER_LAYER_NORM},
                            {.kind = SL_LAYER_DENSE,
                             .each = true,
                             .deviation = 0.1 / sqrt(width),
                             .out = {.channels = classes}}};
    return result != 0 ? result : add_all(table, end, 2, error);
}

/* What a model takes, and its recipe; NULL: it is a problem, which has no layers. */
static const struct {
    bool images, text;
    int (*build)(sl_layers *table, const sl_model_config *config, uint32_t classes,
                 sl_error *error);
} models[] = {
    [SL_MODEL_SOFTMAX] = {.build = perceptron},
    [SL_MODEL_MLP] = {.build = perceptron},
    [SL_MODEL_QUADRATIC] = {0},
    [SL_MODEL_LENET5] = {.images = true, .build = lenet5},
    [SL_MODEL_RESNET20] = {.images = true, .build = resnet20},
    [SL_MODEL_LSTM] = {.text = true, .build = lstm},
    [SL_MODEL_TRANSFORMER] = {.text = true, .build = transformer},
    [SL_MODEL_SYNTHETIC] = {0},
    [SL_MODEL_LINEAR] = {0},
};

bool sl_model_takes_images(sl_model_kind kind) {
    return models[kind].images;
}

bool sl_model_takes_text(sl_model_kind kind) {
    return models[kind].text;
}

const char *sl_model_name(sl_model_kind kind) {
    static const char *const names[] = {
#define MODEL_NAME(kind, name) name,
        SL_MODELS(MODEL_NAME)
#undef MODEL_NAME
    };
    return names[kind];
}

static bool has_shape(sl_shape s, uint32_t side, uint32_t channels) {
    return s.height == side && s.width == side && s.channels == channels;
}

static int check_input(const sl_model_config *config, sl_shape input, const char *data,
                       sl_error *error) {
    bool fits_lenet = has_shape(input, 28, 1) || has_shape(input, 32, 3),
         is_lenet = config->kind == SL_MODEL_LENET5;
    if (is_lenet ? fits_lenet : has_shape(input, 32, 3))
        return 0;
    return sl_fail(
        error, SL_EINVAL,
        "model.name: %s takes images of %s; the samples of data.name %s are %s of %ux%ux%u",
        sl_model_name(config->kind), is_lenet ? "28x28x1 or 32x32x3" : "32x32x3", data,
        input.height > 1 ? "images" : "vectors", input.height, input.width, input.channels);
}

int sl_model_build(sl_layers *out, const sl_model_config *config, sl_shape input, uint32_t classes,
                   const char *data, sl_error *error) {
    *out = (sl_layers){.input = input};
    if (models[config->kind].build == NULL)
        return sl_fail(error, SL_EINVAL, "model.name: %s has no layers",
                       sl_model_name(config->kind));
    int result = models[config->kind].images ? check_input(config, input, data, error) : 0;
    return result != 0 ? result : models[config->kind].build(out, config, classes, error);
}

void sl_model_describe(char *text, size_t size, const sl_model_config *config,
                       const sl_layers *table) {
    sl_shape in = table->input;
    size_t used = (size_t)snprintf(text, size, "%s ", sl_model_name(config->kind));
    if (sl_model_takes_images(config->kind)) {
        snprintf(text + used, size - used, "%ux%ux%u-%u", in.height, in.width, in.channels,
                 table->items[table->count - 1].out.channels);
        return;
    }
    if (sl_model_takes_text(config->kind)) {
        uint32_t layers = 0, width = 0;
        for (size_t l = 0; l < table->count; l++)
            if (table->items[l].kind == SL_LAYER_LSTM ||
                table->items[l].kind == SL_LAYER_ATTENTION) {
                layers++;
                width = table->items[l].out.channels;
            }
        snprintf(text + used, size - used, "%ux%u, %u of %u characters", layers, width, in.width,
                 table->items[0].symbols);
        return;
    }
    used += (size_t)snprintf(text + used, size - used, "%zu", sl_shape_size(in));
    for (size_t l = 0; l < table->count && used < size; l++)
        used += (size_t)snprintf(text + used, size - used, "-%u", table->items[l].out.channels);
}
