/* layer_rows.h - layers as rows of the tables of tests. */
#ifndef STARLING_TEST_LAYER_ROWS_H
#define STARLING_TEST_LAYER_ROWS_H

#include "learner/layers/layer.h"

/* Outputs, window, stride, padding, bias, relu. */
#define CONV(k, w, s, p, b, r)                                                                     \
    {                                                                                              \
        .kind = SL_LAYER_CONV2D, .out.channels = k, .window = w, .stride = s, .padding = p,        \
        .bias = b, .relu = r                                                                       \
    }
#define NORM(r, from)                                                                              \
    { .kind = SL_LAYER_BATCH_NORM, .relu = r, .shortcut = from }
#define MAX_POOL(w, s)                                                                             \
    { .kind = SL_LAYER_MAX_POOL, .window = w, .stride = s }
#define AVERAGE_POOL(w, s)                                                                         \
    { .kind = SL_LAYER_AVERAGE_POOL, .window = w, .stride = s }
#define DENSE(k, e, r)                                                                             \
    { .kind = SL_LAYER_DENSE, .each = e, .relu = r, .out.channels = k }
#define EMBED(symbols_, k, p)                                                                      \
    { .kind = SL_LAYER_EMBEDDING, .symbols = symbols_, .out.channels = k, .bias = p }
#define LSTM(k)                                                                                    \
    { .kind = SL_LAYER_LSTM, .out.channels = k }
#define LAYER_NORM                                                                                 \
    { .kind = SL_LAYER_LAYER_NORM }
#define ATTEND(h)                                                                                  \
    { .kind = SL_LAYER_ATTENTION, .heads = h }
#define GELU                                                                                       \
    { .kind = SL_LAYER_GELU }

#endif
