/* pool.c - the largest, or the mean, of each window, channel by channel.
 *
 * The gradient of a largest number goes to the first of those equal to it, row by row.
 */
#include "layer_cpu.h"

#include <string.h>

#include "simd.h"

/* One window: `x` and `d_in` at its first pixel, `y` and `d_out` at its output. */
typedef struct window {
    const float *x;
    float *y, *d_in, *d_out;
    size_t line; /* floats from one row of the image to the next */
    uint32_t height, width, channels;
} window;

typedef void visit(const window *w);

static sl_layer_memory memory(const sl_layer *layer, uint32_t rows) {
    (void)layer, (void)rows;
    return (sl_layer_memory){0};
}

KERNEL void visit_windows(const sl_layer_call *c, visit *visitor) {
    const sl_layer *l = c->layer;
    bool whole = l->window == 0; /* the window is the image */
    window w = {.line = (size_t)l->in.width * l->in.channels, .height = whole ? l->in.height : l->window,
                .width = whole ? l->in.width : l->window, .channels = l->in.channels};
    for (uint32_t row = 0; row < c->rows * l->out.height; row++)
        for (uint32_t column = 0; column < l->out.width; column++) {
            size_t image = row / l->out.height, top = (size_t)(row % l->out.height) * l->stride, left = (size_t)column * l->stride;
            size_t from = image * sl_shape_size(l->in) + top * w.line + left * w.channels;
            size_t to = ((size_t)row * l->out.width + column) * w.channels;
            w.x = c->in + from;
            w.d_in = c->d_in == NULL ? NULL : c->d_in + from;
            w.y = c->out + to;
            w.d_out = c->d_out == NULL ? NULL : c->d_out + to;
            visitor(&w);
        }
}

static void clear_input_gradient(const sl_layer_call *c) {
    if (!c->add_in)
        memset(c->d_in, 0, c->rows * sl_shape_size(c->layer->in) * sizeof *c->d_in);
}

KERNEL void find_largest(const window *w) {
    memcpy(w->y, w->x, w->channels * sizeof *w->y);
    for (uint32_t i = 0; i < w->height; i++)
        for (uint32_t j = 0; j < w->width; j++) {
            const float *x = w->x + i * w->line + j * w->channels;
            for (uint32_t c = 0; c < w->channels; c++) {
                bool stays = x[c] <= w->y[c] || w->y[c] != w->y[c]; /* a NaN stays, so that divergence shows */
                w->y[c] = stays ? w->y[c] : x[c];
            }
        }
}

/* d_out is used up, so that only the first takes it. */
KERNEL void give_to_largest(const window *w) {
    for (uint32_t i = 0; i < w->height; i++)
        for (uint32_t j = 0; j < w->width; j++) {
            size_t at = i * w->line + j * w->channels;
            for (uint32_t c = 0; c < w->channels; c++) {
                float part = w->x[at + c] == w->y[c] ? w->d_out[c] : 0;
                w->d_in[at + c] += part;
                w->d_out[c] -= part;
            }
        }
}

KERNEL void take_mean(const window *w) {
    float share = 1.0f / ((float)w->height * (float)w->width);
    memset(w->y, 0, w->channels * sizeof *w->y);
    for (uint32_t i = 0; i < w->height; i++)
        for (uint32_t j = 0; j < w->width; j++)
            for (uint32_t c = 0; c < w->channels; c++)
                w->y[c] += w->x[i * w->line + j * w->channels + c];
    for (uint32_t c = 0; c < w->channels; c++)
        w->y[c] *= share;
}

KERNEL void give_to_all(const window *w) {
    float share = 1.0f / ((float)w->height * (float)w->width);
    for (uint32_t i = 0; i < w->height; i++)
        for (uint32_t j = 0; j < w->width; j++)
            for (uint32_t c = 0; c < w->channels; c++)
                w->d_in[i * w->line + j * w->channels + c] += share * w->d_out[c];
}

static void max_forward(const sl_layer_call *c) {
    visit_windows(c, find_largest);
}

static void max_gradient(const sl_layer_call *c) {
    visit_windows(c, give_to_largest);
}

static void average_forward(const sl_layer_call *c) {
    visit_windows(c, take_mean);
}

static void average_gradient(const sl_layer_call *c) {
    visit_windows(c, give_to_all);
}

static void max_backward(const sl_layer_call *c) {
    if (c->d_in == NULL)
        return;
    clear_input_gradient(c);
    max_gradient(c);
}

static void average_backward(const sl_layer_call *c) {
    if (c->d_in == NULL)
        return;
    clear_input_gradient(c);
    average_gradient(c);
}

const sl_layer_ops SL_OPS(max_pool) = {memory, max_forward, max_backward};
const sl_layer_ops SL_OPS(average_pool) = {memory, average_forward, average_backward};
