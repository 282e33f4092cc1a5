/* lstm.c - a layer of long short-term memory (Hochreiter, Schmidhuber 1997, with the forget gate of
 * Gers, Schmidhuber, Cummins 2000):
 *
 *     (i, f, g, o) = x_t W + h_{t-1} U + b,  then s(i), s(f), tanh(g), s(o), s the logistic
 *                                            function
 *     c_t = f c_{t-1} + i g,  h_t = o tanh(c_t),  h and c start at 0 with each sample
 *
 * The n columns of W, U and b for i come first, then those for f, g and o. Backward through all of
 * a sample's positions, with a for the four before their functions, dh_t from above and from t + 1,
 * and m = tanh(c_t):
 *
 *     dc_t = dh_t o (1 - m^2) + dc_{t+1} f_{t+1}
 *     da = (dc_t g i (1 - i),  dc_t c_{t-1} f (1 - f),  dc_t i (1 - g^2),  dh_t m o (1 - o)),  from
 *                              above into t - 1: da U^T
 *
 * The products with W are one product over all positions of the batch. Only the products with U
 * run step by step, on all rows of the batch. U, or U^T, is packed once per batch into panels of 16
 * columns, which all steps share. Tiles of sums stay in registers (tiles.h).
 */
#include "learner/layers/layer_cpu.h"

#include <cblas.h>

#include "learner/layers/simd_math.h"
#include "learner/layers/tiles.h"

#define DEPTH 256 /* rows of a panel that tiles pass over at a time: they stay in L1 */

typedef struct lstm {
    uint32_t rows, steps, inputs, n;
    const float *w, *u, *b;
    float *gates;  /* (rows, steps, 4 n) after their functions; backward: da */
    float *cells;  /* (rows, steps, n) c_t */
    float *before; /* (rows, steps, n) h_{t-1} */
    float *panels; /* of U, backward of U^T */
    float *sums;   /* (rows, 4 n) of one step: h_{t-1} U, or da */
    float *state;  /* (rows, n) h_{t-1}, or what dh_t gets from t + 1 */
    float *carry;  /* (rows, n) backward: dc_{t+1} f_{t+1} */
} lstm;

static size_t panels_of(uint32_t columns) {
    return (columns + PANEL - 1) / PANEL;
}

/* Of U (n, 4 n) or U^T (4 n, n), whichever needs more. */
static size_t packed_size(size_t n) {
    return 4 * n * panels_of((uint32_t)n) * PANEL;
}

static sl_layer_memory memory(const sl_layer *layer, uint32_t rows) {
    size_t n = layer->out.channels, positions = (size_t)rows * layer->in.width;
    return (sl_layer_memory){.saved = 6 * n * positions, .scratch = packed_size(n) + 6 * n * rows};
}

static lstm open_call(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    lstm m = {.rows = c->rows,
              .steps = l->in.width,
              .inputs = l->in.channels,
              .n = l->out.channels,
              .w = c->w};
    size_t n = m.n, positions = (size_t)m.rows * m.steps;
    m.u = m.w + l->tensors[0];
    m.b = m.u + l->tensors[1];
    m.gates = c->saved;
    m.cells = m.gates + 4 * n * positions;
    m.before = m.cells + n * positions;
    m.panels = c->scratch;
    m.sums = m.panels + packed_size(n);
    m.state = m.sums + 4 * n * m.rows;
    m.carry = m.state + n * m.rows;
    return m;
}

static inline uint32_t width_at(uint32_t k, uint32_t n) {
    return n - k < LANES ? n - k : LANES;
}

/* ---- products with U, or U^T ---- */

/* Panel after panel of U (n, 4 n): its rows, 16 columns of each, zeros where there are none. */
static void pack(float *panels, const float *u, uint32_t n) {
    for (uint32_t column = 0; column < 4 * n; column += PANEL) {
        uint32_t width = 4 * n - column < PANEL ? 4 * n - column : PANEL;
        for (uint32_t row = 0; row < n; row++, panels += PANEL) {
            memset(panels, 0, PANEL * sizeof *panels);
            memcpy(panels, u + (size_t)row * 4 * n + column, width * sizeof *u);
        }
    }
}

/* The same of U^T (4 n, n). */
static void pack_turned(float *panels, const float *u, uint32_t n) {
    for (uint32_t column = 0; column < n; column += PANEL) {
        uint32_t width = n - column < PANEL ? n - column : PANEL;
        for (uint32_t row = 0; row < 4 * n; row++, panels += PANEL) {
            memset(panels, 0, PANEL * sizeof *panels);
            for (uint32_t k = 0; k < width; k++)
                panels[k] = u[(size_t)(column + k) * 4 * n + row];
        }
    }
}

/* One tile of y (rows, columns) from `depth` rows of a panel: y = x panel, or added. `height` and
 * `width` of it are there. */
KERNEL void multiply_tile(float *y, const float *x, const float *panel, uint32_t in,
                          uint32_t columns, uint32_t depth, uint32_t height, uint32_t width,
                          bool add) {
    size_t offsets[TILE];
    tile_sums sums;
    for (uint32_t i = 0; i < TILE; i++)
        offsets[i] = (i < height ? i : 0) * (size_t)in;
    tile_clear(sums);
    tile_product(sums, x, offsets, panel, depth, TILE, 2);
    for (uint32_t i = 0; i < height; i++, y += columns)
        for (uint32_t v = 0; v < 2 && v * LANES < width; v++) {
            uint32_t part = width - v * LANES < LANES ? width - v * LANES : LANES;
            float *to = y + v * LANES;
            store_part(to, add ? sums[2 * i + v] + load_part(to, part) : sums[2 * i + v], part);
        }
}

/* y (rows, columns) = x (rows, in) times the packed matrix (in, columns). */
static void multiply(float *y, const float *x, const float *panels, uint32_t rows, uint32_t in,
                     uint32_t columns) {
    for (uint32_t first = 0; first < in; first += DEPTH) {
        uint32_t depth = in - first < DEPTH ? in - first : DEPTH;
        for (uint32_t column = 0; column < columns; column += PANEL) {
            const float *panel = panels + (size_t)column * in + (size_t)first * PANEL;
            uint32_t width = columns - column < PANEL ? columns - column : PANEL;
            for (uint32_t row = 0; row < rows; row += TILE)
                multiply_tile(y + (size_t)row * columns + column, x + (size_t)row * in + first,
                              panel, in, columns, depth, rows - row < TILE ? rows - row : TILE,
                              width, first > 0);
        }
    }
}

/* ---- forward ---- */

/* Channels k of one row: gates hold x W, sums h U. */
KERNEL void advance(float *gates, const float *sums, const float *b, const float *c_before,
                    float *c, float *h, uint32_t n, uint32_t width) {
    lanes i = sigmoid_lanes(load_part(gates, width) + load_part(sums, width) + load_part(b, width));
    lanes f = sigmoid_lanes(load_part(gates + n, width) + load_part(sums + n, width) +
                            load_part(b + n, width));
    lanes g = tanh_lanes(load_part(gates + 2 * n, width) + load_part(sums + 2 * n, width) +
                         load_part(b + 2 * n, width));
    lanes o = sigmoid_lanes(load_part(gates + 3 * n, width) + load_part(sums + 3 * n, width) +
                            load_part(b + 3 * n, width));
    lanes cell = i * g;
    if (c_before != NULL)
        cell += f * load_part(c_before, width);
    store_part(gates, i, width);
    store_part(gates + n, f, width);
    store_part(gates + 2 * n, g, width);
    store_part(gates + 3 * n, o, width);
    store_part(c, cell, width);
    store_part(h, o * tanh_lanes(cell), width);
}

static void forward_step(const lstm *m, uint32_t t, float *out) {
    uint32_t n = m->n;
    for (uint32_t row = 0; row < m->rows; row++) {
        size_t at = ((size_t)row * m->steps + t) * n;
        const float *sums = m->sums + (size_t)row * 4 * n;
        for (uint32_t k = 0; k < n; k += LANES)
            advance(m->gates + 4 * at + k, sums + k, m->b + k,
                    t == 0 ? NULL : m->cells + at - n + k, m->cells + at + k, out + at + k, n,
                    width_at(k, n));
        memcpy(m->state + (size_t)row * n, out + at, n * sizeof *out);
        if (t + 1 < m->steps)
            memcpy(m->before + at + n, out + at, n * sizeof *out);
        if (t == 0)
            memset(m->before + at, 0, n * sizeof *out);
    }
}

static void forward(const sl_layer_call *c) {
    lstm m = open_call(c);
    int positions = (int)(m.rows * m.steps), n = (int)m.n, inputs = (int)m.inputs;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, positions, 4 * n, inputs, 1, c->in,
                inputs, m.w, 4 * n, 0, m.gates, 4 * n);
    memset(m.sums, 0, (size_t)m.rows * 4 * m.n * sizeof *m.sums);
    pack(m.panels, m.u, m.n);
    for (uint32_t t = 0; t < m.steps; t++) {
        if (t > 0)
            multiply(m.sums, m.state, m.panels, m.rows, m.n, 4 * m.n);
        forward_step(&m, t, c->out);
    }
}

/* ---- backward ---- */

KERNEL void retreat(float *gates, float *sums, const float *c_before, const float *c,
                    const float *d, const float *state, float *carry, uint32_t n, uint32_t width) {
    lanes i = load_part(gates, width), f = load_part(gates + n, width),
          g = load_part(gates + 2 * n, width), o = load_part(gates + 3 * n, width);
    lanes m = tanh_lanes(load_part(c, width)), dh = load_part(d, width) + load_part(state, width);
    lanes dc = dh * o * (1.0f - m * m) + load_part(carry, width);
    lanes before = c_before == NULL ? broadcast(0) : load_part(c_before, width);
    lanes da[] = {dc * g * i * (1.0f - i), dc * before * f * (1.0f - f), dc * i * (1.0f - g * g),
                  dh * m * o * (1.0f - o)};
    for (int part = 0; part < 4; part++) {
        store_part(gates + part * n, da[part], width);
        store_part(sums + part * n, da[part], width);
    }
    store_part(carry, dc * f, width);
}

static void backward_step(const lstm *m, uint32_t t, const float *d_out, float *db) {
    uint32_t n = m->n;
    for (uint32_t row = 0; row < m->rows; row++) {
        size_t at = ((size_t)row * m->steps + t) * n, own = (size_t)row * n;
        for (uint32_t k = 0; k < n; k += LANES)
            retreat(m->gates + 4 * at + k, m->sums + 4 * own + k,
                    t == 0 ? NULL : m->cells + at - n + k, m->cells + at + k, d_out + at + k,
                    m->state + own + k, m->carry + own + k, n, width_at(k, n));
        for (uint32_t k = 0; k < 4 * n; k++)
            db[k] += m->sums[4 * own + k];
    }
}

static void backward(const sl_layer_call *c) {
    lstm m = open_call(c);
    int positions = (int)(m.rows * m.steps), n = (int)m.n, inputs = (int)m.inputs;
    float *dw = c->g, *du = dw + c->layer->tensors[0], *db = du + c->layer->tensors[1];
    memset(db, 0, 4 * (size_t)n * sizeof *db);
    memset(m.state, 0, 2 * (size_t)m.rows * m.n * sizeof *m.state); /* carry too */
    pack_turned(m.panels, m.u, m.n);
    for (uint32_t t = m.steps; t > 0; t--) {
        backward_step(&m, t - 1, c->d_out, db);
        if (t > 1)
            multiply(m.state, m.sums, m.panels, m.rows, 4 * m.n, m.n);
    }
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, inputs, 4 * n, positions, 1, c->in, inputs,
                m.gates, 4 * n, 0, dw, 4 * n);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, 4 * n, positions, 1, m.before, n,
                m.gates, 4 * n, 0, du, 4 * n);
    if (c->d_in != NULL)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, positions, inputs, 4 * n, 1, m.gates,
                    4 * n, m.w, 4 * n, c->add_in ? 1 : 0, c->d_in, inputs);
}

static bool shape(sl_layer *layer) {
    layer->out.height = 1;
    layer->out.width = layer->in.width;
    return layer->in.height == 1;
}

/* W (in, 4 out), U (out, 4 out), b (4 out). */
static void tensors(const sl_layer *layer, sl_tensor out[SL_LAYER_TENSORS_MAX]) {
    const uint32_t n = layer->out.channels;
    out[0] = (sl_tensor){"weight", {layer->in.channels, 4 * n}, 2};
    out[1] = (sl_tensor){"recurrent_weight", {n, 4 * n}, 2};
    out[2] = (sl_tensor){"bias", {4 * n}, 1};
}

/* W and U from N(0, 2 / (inputs + outputs)) (Glorot, Bengio 2010); b is 1 for the forget gate (Gers
 * et al. 2000), else 0. */
static void initial(const sl_layer *layer, sl_rng *rng, float *w) {
    const size_t weights = layer->tensors[0] + layer->tensors[1];
    const double connections = (double)layer->in.channels + 5.0 * layer->out.channels;
    sl_layer_draw_normal(rng, w, weights, sl_layer_deviation(layer, connections));
    for (uint32_t c = 0; c < layer->out.channels; c++)
        w[weights + layer->out.channels + c] = 1;
}

SL_LAYER(lstm) = {
    .shape = shape, .tensors = tensors, .initial = initial, .ops = {memory, forward, backward}};
