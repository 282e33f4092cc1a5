/* dense.c - y = relu?(x W + b) for whole samples; products in product.h.
 *
 * Backward, with d = d loss / d (output before relu):  dW = x^T d;  db = column sums of d;  dx = d W^T.
 */
#include "layer_cpu.h"

#include <assert.h>
#include <cblas.h>
#include <string.h>

#include "product.h"

static sl_layer_memory memory(const sl_layer *layer, uint32_t rows) {
    (void)layer, (void)rows;
    return (sl_layer_memory){.scratch = SL_PRODUCT_PANEL_MAX};
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

static void forward(const sl_layer_call *c) {
    uint32_t in = (uint32_t)sl_shape_size(c->layer->in), out = c->layer->out.channels;
    sl_product_forward(c->out, c->in, c->w, c->rows, in, out, c->scratch);
    add_bias(c->out, c->w + (size_t)in * out, c->rows, out, c->layer->relu);
}

/* db (out) = column sums of d (rows, out); where `y` is given, d counts, and stays, only where y > 0. */
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
    uint32_t in = (uint32_t)sl_shape_size(c->layer->in), out = c->layer->out.channels;
    bias_gradient(c->g + (size_t)in * out, c->d_out, c->layer->relu ? c->out : NULL, c->rows, out);
    sl_product_gradient(c->g, c->in, c->d_out, c->rows, in, out, c->scratch);
    if (c->d_in != NULL)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)c->rows, (int)in, (int)out, 1.0f, c->d_out, (int)out, c->w,
                    (int)out, c->add_in ? 1.0f : 0.0f, c->d_in, (int)in);
}

const sl_layer_ops sl_dense_cpu = {memory, forward, backward};
