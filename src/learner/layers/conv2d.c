/* conv2d.c - convolution, wherever winograd.h does not fit:
 *
 *     y[p, q, k] = b[k] + sum over r, s, c of x[p t + r - a, q t + s - a, c] W[r, s, c, k]
 *
 * with stride t and padding a. Channels are the fastest index, so one row of a window is a run of
 * window * channels contiguous floats, in x and in W. An output tile (6 pixels, 16 channels) is
 * therefore a small matrix product whose sums fill twelve registers: for each float of the run, six
 * broadcasts of x and two vectors of W feed twelve multiply-adds. Nothing is unfolded (no im2col).
 * An image is copied only to pad it with zeros. W is packed once per batch, into panels of 16
 * columns.
 *
 * The gradient of x uses the same kernel on padded d, with W rotated by 180 degrees and transposed.
 * With a stride t, pixels of x whose row and column agree modulo t use the same subset of W; each
 * of these t * t phases is one pass. The gradient of W keeps a tile of 6 x 16 sums in registers
 * while it runs over a block of pixels that fits in L1. Images are processed in order, so the order
 * of all sums is fixed.
 */
#include "learner/layers/layer_cpu.h"

#include <assert.h>

#include "learner/layers/tiles.h"
#include "learner/layers/winograd.h"

#define BLOCK_FLOATS 4096 /* floats of x and d in one block of the gradient of W */

/* What the kernels need of a convolution with padded input and packed weights. */
typedef struct geometry {
    uint32_t window_height, window_width, stride, channels, outputs; /* outputs: channels of y */
    uint32_t height, width;               /* pixels of y that are computed */
    uint32_t framed_height, framed_width; /* of the padded input */
    size_t y_step;                        /* floats of y from one computed pixel to the next */
    size_t y_line;                        /* floats of y from one computed row to the next */
} geometry;

static uint32_t panels_of(uint32_t outputs) {
    return (outputs + PANEL - 1) / PANEL;
}

static size_t depth_of(const geometry *g) {
    return (size_t)g->window_height * g->window_width * g->channels;
}

static size_t packed_size(const geometry *g) {
    return panels_of(g->outputs) * PANEL * (depth_of(g) + 1); /* and a row of biases */
}

static size_t framed_size(const geometry *g) {
    return (size_t)g->framed_height * g->framed_width * g->channels;
}

static geometry forward_geometry(const sl_layer *l) {
    return (geometry){.window_height = l->window,
                      .window_width = l->window,
                      .stride = l->stride,
                      .channels = l->in.channels,
                      .outputs = l->out.channels,
                      .height = l->out.height,
                      .width = l->out.width,
                      .framed_height = l->in.height + 2 * l->padding,
                      .framed_width = l->in.width + 2 * l->padding,
                      .y_step = l->out.channels,
                      .y_line = (size_t)l->out.width * l->out.channels};
}

/* One phase in one direction. Positions p = phase, phase + t, ... of x get their gradient from the
 * weights r = first, first + t, ..., where r = p + a (mod t), and from outputs that begin `start`
 * after p/t in d, which is padded by window - 1 zeros. */
typedef struct phase {
    uint32_t first, taps, start, count;
} phase;

static phase phase_of(const sl_layer *l, uint32_t index, uint32_t size) {
    uint32_t first = (index + l->padding) % l->stride, shift = (index + l->padding) / l->stride;
    uint32_t taps = first < l->window ? (l->window - first - 1) / l->stride + 1 : 0;
    return (phase){first, taps, shift + l->window - taps,
                   index < size ? (size - index - 1) / l->stride + 1 : 0};
}

static geometry backward_geometry(const sl_layer *l, phase down, phase right) {
    return (geometry){.window_height = down.taps,
                      .window_width = right.taps,
                      .stride = 1,
                      .channels = l->out.channels,
                      .outputs = l->in.channels,
                      .height = down.count,
                      .width = right.count,
                      .framed_height = l->out.height + 2 * (l->window - 1),
                      .framed_width = l->out.width + 2 * (l->window - 1),
                      .y_step = (size_t)l->stride * l->in.channels,
                      .y_line = (size_t)l->stride * l->in.width * l->in.channels};
}

static size_t aligned(size_t count) {
    return (count + 15) / 16 * 16;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Floats of one image's d after padding its channels to whole panels. */
static size_t widened_size(const sl_layer *l) {
    return (size_t)l->out.height * l->out.width * panels_of(l->out.channels) * PANEL;
}

static sl_layer_memory memory(const sl_layer *layer, uint32_t rows) {
    (void)rows;
    if (sl_winograd_fits(layer))
        return (sl_layer_memory){.scratch = sl_winograd_scratch(layer)};
    phase whole = {.taps = layer->window};
    geometry f = forward_geometry(layer), b = backward_geometry(layer, whole, whole);
    size_t product = larger(packed_size(&f), packed_size(&b)),
           image = larger(framed_size(&f), framed_size(&b));
    return (sl_layer_memory){.scratch = aligned(product) + aligned(image) + widened_size(layer)};
}

/* ---- frames and panels ---- */

/* Copies x (height, width, channels) into `framed`, whose border of `before` zeros is there. */
static void frame(float *framed, const float *x, sl_shape shape, uint32_t before) {
    size_t run = (size_t)shape.width * shape.channels,
           line = run + 2 * (size_t)before * shape.channels;
    for (uint32_t row = 0; row < shape.height; row++)
        memcpy(framed + ((size_t)before + row) * line + (size_t)before * shape.channels,
               x + row * run, run * sizeof *x);
}

/* Writes panel after panel: a row of biases, then `depth` rows of 16 columns. */
static void pack(float *panels, const float *w, const float *b, size_t depth, uint32_t outputs) {
    for (uint32_t column = 0; column < outputs; column += PANEL) {
        uint32_t width = outputs - column < PANEL ? outputs - column : PANEL;
        memset(panels, 0, (depth + 1) * PANEL * sizeof *panels);
        if (b != NULL)
            memcpy(panels, b + column, width * sizeof *b);
        panels += PANEL;
        for (size_t i = 0; i < depth; i++, panels += PANEL)
            memcpy(panels, w + i * outputs + column, width * sizeof *w);
    }
}

/* The same for a phase's weights, rotated and transposed: last to first, rows (r, s, k), columns
 * c. */
static void pack_turned(float *panels, const float *w, const sl_layer *l, phase down, phase right) {
    uint32_t in = l->in.channels, out = l->out.channels;
    for (uint32_t column = 0; column < in; column += PANEL) {
        uint32_t width = in - column < PANEL ? in - column : PANEL;
        memset(panels, 0, ((size_t)down.taps * right.taps * out + 1) * PANEL * sizeof *panels);
        panels += PANEL;
        for (uint32_t r = down.taps; r-- > 0;)
            for (uint32_t s = right.taps; s-- > 0;) {
                size_t tap =
                    (size_t)(down.first + r * l->stride) * l->window + right.first + s * l->stride;
                for (uint32_t k = 0; k < out; k++, panels += PANEL)
                    for (uint32_t c = 0; c < width; c++)
                        panels[c] = w[(tap * in + column + c) * out + k];
            }
    }
}

/* ---- y ---- */

typedef struct finish {
    bool relu, add; /* y = max(0, sums); y += sums */
} finish;

/* Stores `width` lanes of sums. With `spill` it stores the whole vector: the caller overwrites the
 * other lanes later. */
KERNEL void finish_lanes(float *y, lanes sums, uint32_t width, bool spill, finish f) {
    if (f.add)
        sums += load_part(y, width);
    store_part(y, f.relu ? relu(sums) : sums, spill ? LANES : width);
}

/* Offsets of a tile's pixels: of their windows in the padded input, and of themselves in y. */
typedef struct places {
    size_t x[NARROW_TILE], y[NARROW_TILE];
} places;

/* Computes the first `pixels` pixels of a tile of `height`, for `vectors` vectors of channels, the
 * last of them `width` lanes wide. `height` and `vectors` are constants. */
KERNEL void convolve_tile(float *y, const float *x, const places *at, const float *panel,
                          const geometry *g, uint32_t pixels, uint32_t height, uint32_t vectors,
                          uint32_t width, finish f) {
    tile_sums sums;
    size_t run = (size_t)g->window_width * g->channels;
#pragma GCC unroll 12
    for (uint32_t i = 0; i < height * vectors; i++)
        sums[i] = load(panel + i % vectors * LANES);
    panel += PANEL;
    for (uint32_t r = 0; r < g->window_height;
         r++, x += (size_t)g->framed_width * g->channels, panel += run * PANEL)
        tile_product(sums, x, at->x, panel, run, height, vectors);
    /* The lanes beyond the only panel belong to the next pixel, which is stored next. */
    bool spills = g->outputs < PANEL && g->y_step == g->outputs && !f.add;
#pragma GCC unroll 12
    for (uint32_t p = 0; p < height; p++)
#pragma GCC unroll 2
        for (uint32_t v = 0; v < vectors; v++)
            if (p < pixels)
                finish_lanes(y + at->y[p] + v * LANES, sums[p * vectors + v],
                             v + 1 < vectors ? LANES : width, spills && p + 1 < pixels, f);
}

/* A pixel of y. Pixels are visited row by row. */
typedef struct cursor {
    uint32_t row, column;
} cursor;

/* Finds the next `count` pixels. Beyond the end of the image it repeats the first one. */
KERNEL void find_places(places *out, cursor *next, const geometry *g, uint32_t count) {
    for (uint32_t p = 0; p < count; p++) {
        size_t row = next->row < g->height ? next->row : 0,
               column = next->row < g->height ? next->column : 0;
        out->x[p] = (row * g->framed_width + column) * g->stride * g->channels;
        out->y[p] = row * g->y_line + column * g->y_step;
        next->column++;
        if (next->column == g->width) {
            next->column = 0;
            next->row++;
        }
    }
}

/* Computes one panel of channels of one image, in tiles of `height` pixels. */
KERNEL void convolve_panel(float *y, const float *x, const float *panel, const geometry *g,
                           uint32_t height, uint32_t vectors, uint32_t width, finish f) {
    uint32_t count = g->height * g->width;
    cursor next = {0};
    for (uint32_t pixel = 0; pixel < count; pixel += height) {
        places at;
        find_places(&at, &next, g, height);
        convolve_tile(y, x, &at, panel, g, count - pixel, height, vectors, width, f);
    }
}

static void convolve(float *y, const float *x, const float *packed, const geometry *g, finish f) {
    for (uint32_t column = 0; column < g->outputs;
         column += PANEL, packed += PANEL * (depth_of(g) + 1)) {
        uint32_t rest = g->outputs - column;
        if (rest >= PANEL)
            convolve_panel(y + column, x, packed, g, TILE, 2, LANES, f);
        else if (rest > LANES)
            convolve_panel(y + column, x, packed, g, TILE, 2, rest - LANES, f);
        else
            convolve_panel(y + column, x, packed, g, NARROW_TILE, 1, rest, f);
    }
}

static void forward(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    if (sl_winograd_fits(l)) {
        sl_winograd_forward(c);
        return;
    }
    geometry g = forward_geometry(l);
    float *packed = c->scratch, *framed = packed + aligned(packed_size(&g));
    pack(packed, c->w, l->bias ? c->w + l->tensors[0] : NULL, depth_of(&g), g.outputs);
    memset(framed, 0, framed_size(&g) * sizeof *framed);
    for (uint32_t row = 0; row < c->rows; row++) {
        const float *x = c->in + row * sl_shape_size(l->in);
        if (l->padding > 0)
            frame(framed, x, l->in, l->padding);
        convolve(c->out + row * sl_shape_size(l->out), l->padding > 0 ? framed : x, packed, &g,
                 (finish){.relu = l->relu});
    }
}

/* ---- backward ---- */

/* Adds a tile of the gradient over a block of rows: `height` floats of a window's row, from x on,
 * by `vectors` vectors of d's channels. `height` is a constant. */
KERNEL void gradient_tile(float *to, const float *x, const float *d, const geometry *g,
                          uint32_t rows, size_t d_width, uint32_t height, uint32_t vectors,
                          uint32_t width) {
    tile_sums sums;
    tile_clear(sums);
    for (uint32_t row = 0; row < rows; row++)
        tile_outer_product(sums, x + (size_t)row * g->stride * g->framed_width * g->channels,
                           (size_t)g->stride * g->channels, d + row * g->width * d_width, d_width,
                           g->width, height, vectors);
#pragma GCC unroll 6
    for (uint32_t i = 0; i < height; i++)
#pragma GCC unroll 2
        for (uint32_t v = 0; v < vectors; v++)
            finish_lanes(to + (size_t)i * g->outputs + v * LANES, sums[i * vectors + v],
                         v + 1 < vectors ? LANES : width, false, (finish){.add = true});
}

/* The height is a constant, so that a tile's sums stay in registers. */
#define GRADIENT_TILE(height)                                                                      \
    case height:                                                                                   \
        gradient_tile(to, x + i, d, g, rows, d_width, height, vectors, width);                     \
        break

/* Adds all tiles of one panel of channels over a block of rows. */
KERNEL void gradient_panel(float *to, const float *x, const float *d, const geometry *g,
                           uint32_t rows, size_t d_width, uint32_t vectors, uint32_t width) {
    uint32_t run = g->window_width * g->channels;
    for (uint32_t r = 0; r < g->window_height; r++, x += (size_t)g->framed_width * g->channels)
        for (uint32_t i = 0, height; i < run; i += height, to += (size_t)height * g->outputs) {
            height = run - i < TILE ? run - i : TILE;
            switch (height) {
                GRADIENT_TILE(6);
                GRADIENT_TILE(5);
                GRADIENT_TILE(4);
                GRADIENT_TILE(3);
                GRADIENT_TILE(2);
                GRADIENT_TILE(1);
            }
        }
}

/* Rows of y in one block. */
static uint32_t block_rows(const geometry *g) {
    size_t floats = (size_t)g->width * (g->outputs + (size_t)g->stride * g->stride * g->channels);
    size_t rows = BLOCK_FLOATS / floats;
    return rows < 1 ? 1 : rows < g->height ? (uint32_t)rows : g->height;
}

/* Adds one image's gradient of W. d (height, width, d_width) is readable in whole vectors. */
static void gradient_image(float *to, const float *x, const float *d, const geometry *g,
                           size_t d_width) {
    uint32_t block = block_rows(g);
    for (uint32_t row = 0; row < g->height; row += block) {
        uint32_t rows = g->height - row < block ? g->height - row : block;
        const float *from = x + (size_t)row * g->stride * g->framed_width * g->channels,
                    *d_from = d + row * g->width * d_width;
        for (uint32_t column = 0; column < g->outputs; column += PANEL) {
            uint32_t rest = g->outputs - column;
            if (rest >= PANEL)
                gradient_panel(to + column, from, d_from + column, g, rows, d_width, 2, LANES);
            else if (rest > LANES)
                gradient_panel(to + column, from, d_from + column, g, rows, d_width, 2,
                               rest - LANES);
            else
                gradient_panel(to + column, from, d_from + column, g, rows, d_width, 1, rest);
        }
    }
}

/* Copies d (pixels, outputs) to rows of `width` floats. The padding keeps its finite values. */
static void widen(float *wide, const float *d, size_t pixels, uint32_t outputs, size_t width) {
    for (size_t p = 0; p < pixels; p++)
        memcpy(wide + p * width, d + p * outputs, outputs * sizeof *d);
}

static void backward_weights(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    geometry g = forward_geometry(l);
    float *framed = c->scratch, *wide = framed + aligned(framed_size(&g));
    size_t pixels = (size_t)g.height * g.width,
           width = g.outputs % LANES == 0 ? g.outputs : panels_of(g.outputs) * PANEL;
    memset(framed, 0, framed_size(&g) * sizeof *framed);
    memset(wide, 0, widened_size(l) * sizeof *wide);
    memset(c->g, 0, l->tensors[0] * sizeof *c->g);
    for (uint32_t row = 0; row < c->rows; row++) {
        const float *x = c->in + row * sl_shape_size(l->in),
                    *d = c->d_out + row * sl_shape_size(l->out);
        if (l->padding > 0)
            frame(framed, x, l->in, l->padding);
        if (width != g.outputs)
            widen(wide, d, pixels, g.outputs, width);
        gradient_image(c->g, l->padding > 0 ? framed : x, width != g.outputs ? wide : d, &g, width);
    }
}

/* Computes the gradient of one phase, whose first pixel of x lies at float `from`. */
static void backward_phase(const sl_layer_call *c, phase down, phase right, size_t from) {
    const sl_layer *l = c->layer;
    geometry g = backward_geometry(l, down, right);
    float *packed = c->scratch, *framed = packed + aligned(packed_size(&g));
    size_t start = ((size_t)down.start * g.framed_width + right.start) * g.channels;
    pack_turned(packed, c->w, l, down, right);
    memset(framed, 0, framed_size(&g) * sizeof *framed);
    for (uint32_t row = 0; row < c->rows; row++) {
        frame(framed, c->d_out + row * sl_shape_size(l->out), l->out, l->window - 1);
        convolve(c->d_in + row * sl_shape_size(l->in) + from, framed + start, packed, &g,
                 (finish){.add = c->add_in});
    }
}

static void backward_input(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    for (uint32_t i = 0; i < l->stride; i++)
        for (uint32_t j = 0; j < l->stride; j++)
            backward_phase(c, phase_of(l, i, l->in.height), phase_of(l, j, l->in.width),
                           ((size_t)i * l->in.width + j) * l->in.channels);
}

/* Applies ReLU's derivative to d, and sums d over pixels into db. */
static void backward_outputs(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    size_t pixels = (size_t)c->rows * l->out.height * l->out.width, channels = l->out.channels;
    if (l->relu)
        for (size_t i = 0; i < pixels * channels; i++)
            c->d_out[i] = c->out[i] > 0 ? c->d_out[i] : 0;
    if (!l->bias)
        return;
    float *db = c->g + l->tensors[0];
    memset(db, 0, channels * sizeof *db);
    for (size_t p = 0; p < pixels; p++)
        for (size_t k = 0; k < channels; k++)
            db[k] += c->d_out[p * channels + k];
}

static void backward(const sl_layer_call *c) {
    bool transformed = sl_winograd_fits(c->layer);
    backward_outputs(c);
    (transformed ? sl_winograd_weight_gradient : backward_weights)(c);
    if (c->d_in != NULL)
        (transformed ? sl_winograd_input_gradient : backward_input)(c);
}

static size_t inputs_of(const sl_layer *layer) {
    return (size_t)layer->window * layer->window * layer->in.channels;
}

/* W (window, window, in, out) and, if bias, b (out). */
static void tensors(const sl_layer *layer, sl_tensor out[SL_LAYER_TENSORS_MAX]) {
    const uint32_t channels = layer->out.channels;
    out[0] = (sl_tensor){"weight", {layer->window, layer->window, layer->in.channels, channels}, 4};
    if (layer->bias)
        out[1] = (sl_tensor){"bias", {channels}, 1};
}

static void initial(const sl_layer *layer, sl_rng *rng, float *w) {
    sl_layer_draw_normal(rng, w, layer->tensors[0],
                         sl_layer_deviation(layer, (double)inputs_of(layer)));
}

SL_LAYER(conv2d) = {.shape = sl_layer_slide_window,
                    .tensors = tensors,
                    .initial = initial,
                    .ops = {memory, forward, backward}};
