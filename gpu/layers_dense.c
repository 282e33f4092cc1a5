/* layers_dense.c - dense layers and GELU on the device; learner/layers/dense.c and gelu.c have the
 * formulas. */
#include "gpu/layers.h"

/* The number of vectors that the weights multiply, and their sizes. */
typedef struct extent {
    uint32_t rows, in, out;
} extent;

static extent extent_of(const sl_layer *l, uint32_t rows) {
    if (l->each)
        return (extent){rows * l->in.height * l->in.width, l->in.channels, l->out.channels};
    return (extent){rows, (uint32_t)sl_shape_size(l->in), l->out.channels};
}

static sl_layer_memory dense_memory(const sl_layer *layer, uint32_t rows) {
    return (sl_layer_memory){
        .scratch = sums_floats(slices_of(extent_of(layer, rows).rows), layer->out.channels)};
}

static void dense_forward(const sl_layer_call *c) {
    const extent e = extent_of(c->layer, c->rows);
    device_multiply(&(device_product){.a = {.at = c->in, .line = e.in},
                                      .b = {.at = c->w, .line = e.out},
                                      .c = c->out,
                                      .c_line = e.out,
                                      .m = e.rows,
                                      .n = e.out,
                                      .k = e.in,
                                      .count = 1,
                                      .scale = 1});
    launch_finish_rows(&(finish_rows_args){c->out, c->shortcut, c->w + (size_t)e.in * e.out, e.out,
                                           c->layer->relu},
                       (size_t)e.rows * e.out);
}

static void dense_backward(const sl_layer_call *c) {
    const extent e = extent_of(c->layer, c->rows);
    const size_t slices = slices_of(e.rows);
    double *sums = as_doubles(c->scratch);
    launch_take_rows(&(take_rows_args){c->d_out, c->layer->relu ? c->out : NULL, c->d_shortcut,
                                       c->add_shortcut, sums, e.rows, e.out},
                     slices * e.out);
    finish_sums(sums, slices, e.out, NULL, c->g + (size_t)e.in * e.out);
    device_multiply(&(device_product){.a = {.at = c->in, .line = e.in, .turned = true},
                                      .b = {.at = c->d_out, .line = e.out},
                                      .c = c->g,
                                      .c_line = e.out,
                                      .m = e.in,
                                      .n = e.out,
                                      .k = e.rows,
                                      .count = 1,
                                      .scale = 1});
    if (c->d_in != NULL)
        device_multiply(&(device_product){.a = {.at = c->d_out, .line = e.out},
                                          .b = {.at = c->w, .line = e.out, .turned = true},
                                          .c = c->d_in,
                                          .c_line = e.in,
                                          .m = e.rows,
                                          .n = e.in,
                                          .k = e.out,
                                          .count = 1,
                                          .scale = 1,
                                          .add = c->add_in});
}

static sl_layer_memory gelu_memory(const sl_layer *layer, uint32_t rows) {
    (void)layer, (void)rows;
    return (sl_layer_memory){0};
}

static void gelu_forward(const sl_layer_call *c) {
    launch_gelu_value(&(gelu_value_args){.x = c->in, .y = c->out},
                      c->rows * sl_shape_size(c->layer->in));
}

static void gelu_backward(const sl_layer_call *c) {
    if (c->d_in != NULL)
        launch_gelu_slope(&(gelu_slope_args){c->in, c->d_out, c->d_in, c->add_in},
                          c->rows * sl_shape_size(c->layer->in));
}

const sl_layer_ops dense_layer = {dense_memory, dense_forward, dense_backward};
const sl_layer_ops gelu_layer = {gelu_memory, gelu_forward, gelu_backward};
