/* pool.c - the largest, or the mean, of each window, channel by channel.
 *
 * The gradient of a maximum goes to the first position that has it, in row order. Vectors hold
 * eight channels. Where fewer are left, a vector reaches into the next pixel, which is written
 * later (y) or gets zeros added (d_in). The last pixel of a batch has no next one, and takes one
 * float at a time.
 */
#include "learner/layers/layer_cpu.h"

#include "learner/layers/simd.h"

/* One window, at the first of the channels looked at: `x` and `d_in` at its first pixel, `y` and
 * `d_out` at its output. */
typedef struct window {
    const float *x;
    float *y, *d_in, *d_out;
    size_t line;       /* floats from one row of the image to the next */
    uint32_t channels; /* floats from one pixel to the next */
    uint32_t height, width;
    uint32_t count;   /* of the channels looked at, at most LANES */
    uint32_t touched; /* lanes that may be read and written, at least `count` */
} window;

typedef void visit(const window *w);

static sl_layer_memory memory(const sl_layer *layer, uint32_t rows) {
    (void)layer, (void)rows;
    return (sl_layer_memory){0};
}

KERNEL void visit_channels(window w, bool is_last, visit *visitor) {
    for (uint32_t left = w.channels; left > 0; left -= w.count) {
        w.count = left < LANES ? left : LANES;
        w.touched = is_last ? w.count : LANES;
        if (w.touched == LANES) {
            w.touched = LANES; /* a constant from here on */
            visitor(&w);
        } else
            visitor(&w);
        w.x += w.count;
        w.y += w.count;
        w.d_in = w.d_in == NULL ? NULL : w.d_in + w.count;
        w.d_out = w.d_out == NULL ? NULL : w.d_out + w.count;
    }
}

KERNEL void visit_windows(const sl_layer_call *c, visit *visitor) {
    const sl_layer *l = c->layer;
    bool whole = l->window == 0; /* the window is the image */
    size_t line = (size_t)l->in.width * l->in.channels, image = sl_shape_size(l->in), to = 0;
    window w = {.line = line,
                .channels = l->in.channels,
                .height = whole ? l->in.height : l->window,
                .width = whole ? l->in.width : l->window};
    for (uint32_t row = 0; row < c->rows; row++)
        for (uint32_t y = 0; y < l->out.height; y++)
            for (uint32_t x = 0; x < l->out.width; x++, to += w.channels) {
                size_t from =
                    row * image + (size_t)y * l->stride * line + (size_t)x * l->stride * w.channels;
                w.x = c->in + from;
                w.y = c->out + to;
                w.d_in = c->d_in == NULL ? NULL : c->d_in + from;
                w.d_out = c->d_out == NULL ? NULL : c->d_out + to;
                visit_channels(
                    w, row + 1 == c->rows && y + 1 == l->out.height && x + 1 == l->out.width,
                    visitor);
            }
}

KERNEL void find_largest(const window *w) {
    lanes best = load_part(w->x, w->touched);
    for (uint32_t i = 0; i < w->height; i++)
        for (uint32_t j = 0; j < w->width; j++) {
            lanes x = load_part(w->x + i * w->line + j * w->channels, w->touched);
            best = choose((x <= best) | (best != best), best,
                          x); /* a NaN stays, so that divergence shows */
        }
    store_part(w->y, best, w->touched);
}

KERNEL void give_to_largest(const window *w) {
    lanes y = load_part(w->y, w->touched),
          rest = (lanes)((lanes_mask)load_part(w->d_out, w->touched) & first_lanes(w->count));
    for (uint32_t i = 0; i < w->height; i++)
        for (uint32_t j = 0; j < w->width; j++) {
            size_t at = i * w->line + j * w->channels;
            lanes part = (lanes)((lanes_mask)rest & (load_part(w->x + at, w->touched) == y));
            store_part(w->d_in + at, load_part(w->d_in + at, w->touched) + part, w->touched);
            rest -= part; /* only the first takes it */
        }
}

KERNEL void take_mean(const window *w) {
    lanes sum = broadcast(0);
    for (uint32_t i = 0; i < w->height; i++)
        for (uint32_t j = 0; j < w->width; j++)
            sum += load_part(w->x + i * w->line + j * w->channels, w->touched);
    store_part(w->y, sum * (1.0f / ((float)w->height * (float)w->width)), w->touched);
}

KERNEL void give_to_all(const window *w) {
    lanes d = (lanes)((lanes_mask)load_part(w->d_out, w->touched) & first_lanes(w->count)) *
              (1.0f / ((float)w->height * (float)w->width));
    for (uint32_t i = 0; i < w->height; i++)
        for (uint32_t j = 0; j < w->width; j++) {
            size_t at = i * w->line + j * w->channels;
            store_part(w->d_in + at, load_part(w->d_in + at, w->touched) + d, w->touched);
        }
}

static void max_forward(const sl_layer_call *c) {
    visit_windows(c, find_largest);
}

static void average_forward(const sl_layer_call *c) {
    visit_windows(c, take_mean);
}

KERNEL void give(const sl_layer_call *c, visit *visitor) {
    if (c->d_in == NULL)
        return;
    if (!c->add_in)
        memset(c->d_in, 0, c->rows * sl_shape_size(c->layer->in) * sizeof *c->d_in);
    visit_windows(c, visitor);
}

static void max_backward(const sl_layer_call *c) {
    give(c, give_to_largest);
}

static void average_backward(const sl_layer_call *c) {
    give(c, give_to_all);
}

static bool shape(sl_layer *layer) {
    layer->out.channels = layer->in.channels;
    return sl_layer_slide_window(layer);
}

/* Window 0: over all positions. */
static bool average_shape(sl_layer *layer) {
    if (layer->window != 0)
        return shape(layer);
    layer->out = (sl_shape){1, 1, layer->in.channels};
    return true;
}

SL_LAYER(max_pool) = {.shape = shape, .ops = {memory, max_forward, max_backward}};
SL_LAYER(average_pool) = {.shape = average_shape,
                          .ops = {memory, average_forward, average_backward}};
