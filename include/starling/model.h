/* model.h - the built-in models: which there are, and what an experiment says of one. */
#ifndef STARLING_MODEL_H
#define STARLING_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "starling/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_HIDDEN_MAX 16
#define SL_MODEL_LAYERS_MAX 12 /* lstm, transformer */

/* Rows: enum suffix, name in an experiment. */
#define SL_MODELS(X)                                                                               \
    X(SOFTMAX, "softmax")                                                                          \
    X(MLP, "mlp")                                                                                  \
    X(QUADRATIC, "quadratic")                                                                      \
    X(LENET5, "lenet5")                                                                            \
    X(RESNET20, "resnet20")                                                                        \
    X(LSTM, "lstm")                                                                                \
    X(TRANSFORMER, "transformer")                                                                  \
    X(SYNTHETIC, "synthetic")                                                                      \
    X(LINEAR, "linear")
typedef enum sl_model_kind {
#define SL_MODEL_ENUM(kind, name) SL_MODEL_##kind,
    SL_MODELS(SL_MODEL_ENUM)
#undef SL_MODEL_ENUM
} sl_model_kind;

/* Of a linear model: enum suffix, name in an experiment. */
#define SL_LOSSES(X)                                                                               \
    X(SQUARED, "squared")                                                                          \
    X(LOGISTIC, "logistic")
typedef enum sl_loss_kind {
#define SL_LOSS_ENUM(kind, name) SL_LOSS_##kind,
    SL_LOSSES(SL_LOSS_ENUM)
#undef SL_LOSS_ENUM
} sl_loss_kind;

/* Models of others whose sizes and times a synthetic one has: enum suffix, name in an experiment.
 */
#define SL_LAYER_TABLES(X)                                                                         \
    X(RESNET50, "resnet50")                                                                        \
    X(RESNET18, "resnet18")                                                                        \
    X(ALEXNET, "alexnet")                                                                          \
    X(VGG16, "vgg16")                                                                              \
    X(BERT_BASE, "bert-base")                                                                      \
    X(BERT_LARGE, "bert-large")
typedef enum sl_layer_table_kind {
#define SL_LAYER_TABLE_ENUM(kind, name) SL_LAYER_TABLE_##kind,
    SL_LAYER_TABLES(SL_LAYER_TABLE_ENUM)
#undef SL_LAYER_TABLE_ENUM
} sl_layer_table_kind;

#define SL_MATRIX_AXES 2

typedef struct sl_model_config {
    sl_model_kind kind;
    uint32_t hidden[SL_HIDDEN_MAX]; /* mlp */
    size_t hidden_count;
    uint32_t layers, units;    /* lstm, transformer; 0: the model's own */
    uint32_t embedding;        /* lstm */
    uint32_t heads;            /* transformer */
    sl_layer_table_kind table; /* synthetic */
    double gflops;             /* synthetic: 10^9 operations a second; 0: a gradient takes what it
                                  takes */
    char path[SL_PATH_MAX];    /* quadratic: JSON with A [n][m][d], b [n][m], x0 [n][d] */
    uint32_t matrix[SL_MATRIX_AXES]; /* quadratic: rows and columns of its first parameters */
    size_t matrix_count;             /* 0: they are a vector */
    sl_loss_kind loss;               /* linear */
    double l2;                       /* linear: adds l2/2 |x|^2 to the loss */
    char start[SL_PATH_MAX]; /* file with the first parameters (starling/tensors.h); empty: none */
} sl_model_config;

#ifdef __cplusplus
}
#endif
#endif
