/* layer_table.c - see layer_table.h.
 *
 * Names, shapes and order are those in which the usual libraries keep these models: networks of
 * images as in torchvision (weights: outputs, inputs, rows, columns), for images of 224x224 and
 * 1000 classes; BERT as in transformers' BertForPreTraining, with the 30,522 words of its uncased
 * vocabulary, sequences of 128 of which 20 words are predicted (Devlin and others 2019, first
 * phase). Products of matrices count; embeddings are looked up.
 */
#include "learner/layer_table.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLASSES = 1000, LAYER_BYTES = 64, BLOCK_BYTES = 24 };

/* ---- tensors ---- */

static bool grow(sl_layer_table *t) {
    if (t->error.code == 0 && t->count == t->room) {
        const size_t room = 2 * t->room + 64;
        sl_tensor *tensors = realloc(t->tensors, room * sizeof *tensors);
        t->tensors = tensors != NULL ? tensors : t->tensors;
        sl_table_name *names = realloc(t->names, room * sizeof *names);
        t->names = names != NULL ? names : t->names;
        if (tensors == NULL || names == NULL)
            sl_fail(&t->error, SL_ENOMEM, "out of memory for the tensors of a model");
        else
            t->room = room;
    }
    return t->error.code == 0;
}

/* The name is that of a layer, then a dot and `what`. */
static void add(sl_layer_table *t, const char *layer, const char *what, sl_tensor shape) {
    if (!grow(t))
        return;
    snprintf(t->names[t->count].text, sizeof t->names->text, "%s%s%s", layer,
             what[0] != '\0' ? "." : "", what);
    t->tensors[t->count++] = shape;
    t->dimension += sl_tensor_size(&shape);
}

static void vector(sl_layer_table *t, const char *layer, const char *what, size_t length) {
    add(t, layer, what, (sl_tensor){.shape = {length}, .axes = 1});
}

static void matrix(sl_layer_table *t, const char *layer, const char *what, size_t rows,
                   size_t columns) {
    add(t, layer, what, (sl_tensor){.shape = {rows, columns}, .axes = 2});
}

/* ---- layers ---- */

/* window: of its rows and columns; side: of its output. */
static void convolve(sl_layer_table *t, const char *layer, size_t inputs, size_t outputs,
                     size_t window, size_t side) {
    add(t, layer, "weight", (sl_tensor){.shape = {outputs, inputs, window, window}, .axes = 4});
    t->products += (double)(outputs * inputs * window * window * side * side);
}

static void normalise(sl_layer_table *t, const char *layer, size_t channels) {
    vector(t, layer, "weight", channels);
    vector(t, layer, "bias", channels);
}

/* positions: at which a sample passes it. */
static void connect(sl_layer_table *t, const char *layer, size_t inputs, size_t outputs,
                    size_t positions) {
    matrix(t, layer, "weight", outputs, inputs);
    vector(t, layer, "bias", outputs);
    t->products += (double)(inputs * outputs * positions);
}

/* "layer2.0.conv1" */
static const char *join(char out[LAYER_BYTES], const char *block, const char *layer) {
    snprintf(out, LAYER_BYTES, "%s.%s", block, layer);
    return out;
}

/* ---- He, Zhang, Ren, Sun 2015 ---- */

/* One convolution of a block; the form of today: the 3x3 one strides. */
static void convolve_in(sl_layer_table *t, const char *block, int index, size_t inputs,
                        size_t outputs, size_t window, size_t side) {
    char layer[8], name[LAYER_BYTES];
    snprintf(layer, sizeof layer, "conv%d", index);
    convolve(t, join(name, block, layer), inputs, outputs, window, side);
    snprintf(layer, sizeof layer, "bn%d", index);
    normalise(t, join(name, block, layer), outputs);
}

typedef struct residual {
    const uint32_t *blocks; /* (4) */
    bool bottleneck;        /* 1x1, 3x3, 1x1 and four times as many channels; else 3x3, 3x3 */
} residual;

/* Returns its outputs. before: side of what comes. */
static size_t add_block(sl_layer_table *t, const residual *r, const char *block, size_t inputs,
                        size_t width, size_t before, size_t side) {
    const size_t outputs = r->bottleneck ? 4 * width : width;
    char name[LAYER_BYTES];
    if (r->bottleneck) {
        convolve_in(t, block, 1, inputs, width, 1, before);
        convolve_in(t, block, 2, width, width, 3, side);
        convolve_in(t, block, 3, width, outputs, 1, side);
    } else {
        convolve_in(t, block, 1, inputs, width, 3, side);
        convolve_in(t, block, 2, width, width, 3, side);
    }
    if (inputs != outputs) {
        convolve(t, join(name, block, "downsample.0"), inputs, outputs, 1, side);
        normalise(t, join(name, block, "downsample.1"), outputs);
    }
    return outputs;
}

static void resnet(sl_layer_table *t, const residual *r) {
    size_t channels = 64, side = 56;
    convolve(t, "conv1", 3, channels, 7, 112);
    normalise(t, "bn1", channels);
    for (uint32_t stage = 0; stage < 4; stage++)
        for (uint32_t b = 0; b < r->blocks[stage]; b++) {
            char block[BLOCK_BYTES];
            const size_t before = side;
            side = stage > 0 && b == 0 ? side / 2 : side;
            snprintf(block, sizeof block, "layer%u.%u", stage + 1, b);
            channels = add_block(t, r, block, channels, (size_t)64 << stage, before, side);
        }
    connect(t, "fc", channels, CLASSES, 1);
}

static void resnet18(sl_layer_table *t) {
    resnet(t, &(residual){.blocks = (const uint32_t[]){2, 2, 2, 2}});
}

static void resnet50(sl_layer_table *t) {
    resnet(t, &(residual){.blocks = (const uint32_t[]){3, 4, 6, 3}, .bottleneck = true});
}

/* ---- Krizhevsky 2014; Simonyan, Zisserman 2014 ---- */

typedef struct convolution {
    int index;
    size_t inputs, outputs, window, side;
} convolution;

static void perceptron(sl_layer_table *t, const int indices[3], size_t inputs) {
    for (int i = 0; i < 3; i++) {
        char name[LAYER_BYTES];
        snprintf(name, sizeof name, "classifier.%d", indices[i]);
        connect(t, name, i == 0 ? inputs : 4096, i == 2 ? CLASSES : 4096, 1);
    }
}

static void features(sl_layer_table *t, const convolution *c, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char name[LAYER_BYTES];
        snprintf(name, sizeof name, "features.%d", c[i].index);
        convolve(t, name, c[i].inputs, c[i].outputs, c[i].window, c[i].side);
        vector(t, name, "bias", c[i].outputs);
    }
}

static void alexnet(sl_layer_table *t) {
    static const convolution c[] = {{0, 3, 64, 11, 55},
                                    {3, 64, 192, 5, 27},
                                    {6, 192, 384, 3, 13},
                                    {8, 384, 256, 3, 13},
                                    {10, 256, 256, 3, 13}};
    features(t, c, sizeof c / sizeof *c);
    perceptron(t, (const int[]){1, 4, 6}, 256 * 6 * 6);
}

static void vgg16(sl_layer_table *t) {
    static const convolution c[] = {
        {0, 3, 64, 3, 224},    {2, 64, 64, 3, 224},   {5, 64, 128, 3, 112},  {7, 128, 128, 3, 112},
        {10, 128, 256, 3, 56}, {12, 256, 256, 3, 56}, {14, 256, 256, 3, 56}, {17, 256, 512, 3, 28},
        {19, 512, 512, 3, 28}, {21, 512, 512, 3, 28}, {24, 512, 512, 3, 14}, {26, 512, 512, 3, 14},
        {28, 512, 512, 3, 14}};
    features(t, c, sizeof c / sizeof *c);
    perceptron(t, (const int[]){0, 3, 6}, 512 * 7 * 7);
}

/* ---- Devlin, Chang, Lee, Toutanova 2019 ---- */

enum { WORDS = 30522, POSITIONS = 512, SEQUENCE = 128, PREDICTED = 20 };

static void add_encoder(sl_layer_table *t, size_t width, uint32_t index) {
    static const char *const inner[] = {"attention.self.query", "attention.self.key",
                                        "attention.self.value", "attention.output.dense"};
    char block[BLOCK_BYTES], name[LAYER_BYTES];
    snprintf(block, sizeof block, "encoder.layer.%u", index);
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
        connect(t, join(name, block, inner[i]), width, width, SEQUENCE);
    t->products += 2.0 * SEQUENCE * SEQUENCE * (double)width; /* queries, keys; then values */
    normalise(t, join(name, block, "attention.output.LayerNorm"), width);
    connect(t, join(name, block, "intermediate.dense"), width, 4 * width, SEQUENCE);
    connect(t, join(name, block, "output.dense"), 4 * width, width, SEQUENCE);
    normalise(t, join(name, block, "output.LayerNorm"), width);
}

/* Words are predicted with the weights of their embeddings. */
static void bert(sl_layer_table *t, size_t width, uint32_t layers) {
    matrix(t, "embeddings.word_embeddings", "weight", WORDS, width);
    matrix(t, "embeddings.position_embeddings", "weight", POSITIONS, width);
    matrix(t, "embeddings.token_type_embeddings", "weight", 2, width);
    normalise(t, "embeddings.LayerNorm", width);
    for (uint32_t i = 0; i < layers; i++)
        add_encoder(t, width, i);
    connect(t, "pooler.dense", width, width, 1);
    vector(t, "cls.predictions.bias", "", WORDS);
    connect(t, "cls.predictions.transform.dense", width, width, PREDICTED);
    normalise(t, "cls.predictions.transform.LayerNorm", width);
    t->products += (double)WORDS * (double)width * PREDICTED;
    connect(t, "cls.seq_relationship", width, 2, 1);
}

static void bert_base(sl_layer_table *t) {
    bert(t, 768, 12);
}

static void bert_large(sl_layer_table *t) {
    bert(t, 1024, 24);
}

/* ---- all of them ---- */

const char *sl_layer_table_name(sl_layer_table_kind kind) {
    static const char *const names[] = {
#define TABLE_NAME(kind, name) name,
        SL_LAYER_TABLES(TABLE_NAME)
#undef TABLE_NAME
    };
    return names[kind];
}

int sl_layer_table_open(sl_layer_table *out, sl_layer_table_kind kind, sl_error *error) {
    static void (*const recipes[])(sl_layer_table *) = {
        [SL_LAYER_TABLE_RESNET18] = resnet18,   [SL_LAYER_TABLE_RESNET50] = resnet50,
        [SL_LAYER_TABLE_ALEXNET] = alexnet,     [SL_LAYER_TABLE_VGG16] = vgg16,
        [SL_LAYER_TABLE_BERT_BASE] = bert_base, [SL_LAYER_TABLE_BERT_LARGE] = bert_large,
    };
    *out = (sl_layer_table){0};
    recipes[kind](out);
    for (size_t i = 0; i < out->count; i++) /* they do not move any more */
        out->tensors[i].name = out->names[i].text;
    if (out->error.code != 0 && error != NULL)
        *error = out->error;
    return out->error.code;
}

void sl_layer_table_close(sl_layer_table *t) {
    free(t->tensors);
    free(t->names);
    *t = (sl_layer_table){0};
}
