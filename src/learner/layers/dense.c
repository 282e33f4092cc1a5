/* dense.c - y = relu?(x W + b + shortcut?) for whole samples, or for each of their positions;
 * products in product.h.
 *
 * Tensors: W (in, out), b (out). W starts at N(0, 2 / in), b at 0.
 *
 * Backward, with d = d loss / d (output before relu):  dW = x^T d;  db = column sums of d;  dx = d
 * W^T;  d shortcut = d.
 */
#include "learner/layers/layer_cpu.h"

#include <assert.h>
#include <cblas.h>
#include <string.h>

#include "learner/layers/product.h"

static sl_layer_memory memory(const sl_layer *layer, uint32_t rows) {
    (void)layer, (void)rows;
    return (sl_layer_memory){.scratch = SL_PRODUCT_PANEL_MAX};
}

/* How many vectors the weights multiply, of which size. */
typedef struct extent {
    uint32_t rows, in, out;
} extent;

static extent extent_of(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    if (l->each)
        return (extent){c->rows * l->in.height * l->in.width, l->in.channels, l->out.channels};
    return (extent){c->rows, (uint32_t)sl_shape_size(l->in), l->out.channels};
}

/* y (rows, out) = y + b, and relu if asked. */
static void add_bias(float *y, const float *b, uint32_t rows, uint32_t out, bool relu) {
    for (uint32_t row = 0; row < rows; row++, y += out) {
        if (relu)
            for (uint32_t j = 0; j < out; j++) {
                float sum = y[j] + b[j];
                y[j] = sum < 0 ? 0 : sum; /* a NaN stays, so that divergence shows */
            }
        else
            for (uint32_t j = 0; j < out; j++)
                y[j] += b[j];
    }
}

static void add(float *y, const float *x, size_t count) {
    for (size_t i = 0; i < count; i++)
        y[i] += x[i];
}

static void forward(const sl_layer_call *c) {
    extent e = extent_of(c);
    sl_product_forward(c->out, c->in, c->w, e.rows, e.in, e.out, c->scratch);
    if (c->shortcut != NULL)
        add(c->out, c->shortcut, (size_t)e.rows * e.out);
    add_bias(c->out, c->w + (size_t)e.in * e.out, e.rows, e.out, c->layer->relu);
}

/* db (out) = column sums of d (rows, out); where `y` is given, d counts, and stays, only where y >
 * 0. */
static void bias_gradient(float *db, float *d, const float *y, uint32_t rows, uint32_t out) {
    memset(db, 0, out * sizeof *db);
    for (uint32_t row = 0; row < rows; row++, d += out) {
        if (y != NULL) {
            for (uint32_t j = 0; j < out; j++)
                d[j] = y[j] > 0 ? d[j] : 0;
            y += out;
        }
        for (uint32_t j = 0; j < out; j++)
            db[j] += d[j];
    }
}

static void backward(const sl_layer_call *c) {
    extent e = extent_of(c);
    bias_gradient(c->g + (size_t)e.in * e.out, c->d_out, c->layer->relu ? c->out : NULL, e.rows,
                  e.out);
    if (c->d_shortcut != NULL && c->add_shortcut)
        add(c->d_shortcut, c->d_out, (size_t)e.rows * e.out);
    else if (c->d_shortcut != NULL)
        memcpy(c->d_shortcut, c->d_out, (size_t)e.rows * e.out * sizeof *c->d_out);
    sl_product_gradient(c->g, c->in, c->d_out, e.rows, e.in, e.out, c->scratch);
    if (c->d_in != NULL)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)e.rows, (int)e.in, (int)e.out,
                    1.0f, c->d_out, (int)e.out, c->w, (int)e.out, c->add_in ? 1.0f : 0.0f, c->d_in,
                    (int)e.in);
}

static bool shape(sl_layer *layer) {
    layer->out.height = layer->each ? layer->in.height : 1;
    layer->out.width = layer->each ? layer->in.width : 1;
    return true;
}

static size_t inputs_of(const sl_layer *layer) {
    return layer->each ? layer->in.channels : sl_shape_size(layer->in);
}

static void tensors(const sl_layer *layer, sl_tensor out[SL_LAYER_TENSORS_MAX]) {
    out[0] = (sl_tensor){"weight", {inputs_of(layer), layer->out.channels}, 2};
    out[1] = (sl_tensor){"bias", {layer->out.channels}, 1};
}

static void initial(const sl_layer *layer, sl_rng *rng, float *w) {
    sl_layer_draw_normal(rng, w, layer->tensors[0],
                         sl_layer_deviation(layer, (double)inputs_of(layer)));
}

SL_LAYER(dense) = {
    .shape = shape, .tensors = tensors, .initial = initial, .ops = {memory, forward, backward}};
