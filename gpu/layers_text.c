/* layers_text.c - embedding, LSTM and layer normalization on the device; embedding.c, lstm.c and
 * layer_norm.c in learner/layers have the formulas. */
#include "gpu/layers.h"

static uint32_t positions_of(const sl_layer *l, uint32_t rows) {
    return rows * l->in.height * l->in.width;
}

/* ---- embedding ---- */

static size_t code_slices(size_t positions) {
    return (positions + CODE_SLICE - 1) / CODE_SLICE;
}

static sl_layer_memory embedding_memory(const sl_layer *l, uint32_t rows) {
    return (sl_layer_memory){.scratch =
                                 sums_floats(code_slices(positions_of(l, rows)), l->tensors[0])};
}

static void embedding_forward(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    launch_embed(&(embed_args){c->in, c->w, l->bias ? c->w + l->tensors[0] : NULL, c->out,
                               l->in.width, l->out.channels},
                 c->rows * sl_shape_size(l->out));
}

static void embedding_backward(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    const uint32_t positions = positions_of(l, c->rows);
    double *sums = as_doubles(c->scratch);
    launch_gather_codes(
        &(gather_codes_args){c->in, c->d_out, sums, positions, l->symbols, l->out.channels},
        code_slices(positions) * l->tensors[0]);
    finish_sums(sums, code_slices(positions), l->tensors[0], NULL, c->g);
    if (l->bias)
        launch_gather_positions(&(gather_positions_args){c->d_out, c->g + l->tensors[0], c->rows,
                                                         (uint32_t)l->tensors[1]},
                                l->tensors[1]);
}

/* ---- LSTM: products with x cover all positions at once; those with h are part of a step, which is
 * one launch ---- */

/* saved: gates, cells and the previous step's h. scratch: carry and U turned (lstm_retreat), or
 * sums. */
static sl_layer_memory lstm_memory(const sl_layer *l, uint32_t rows) {
    const size_t n = l->out.channels, positions = positions_of(l, rows);
    return (sl_layer_memory){
        .saved = 6 * n * positions,
        .scratch = larger(n * rows + 4 * n * n, sums_floats(slices_of(positions), 4 * n))};
}

static lstm_args lstm_of(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    const size_t n = l->out.channels, positions = positions_of(l, c->rows);
    return (lstm_args){.gates = c->saved,
                       .cells = c->saved + 4 * n * positions,
                       .before = c->saved + 5 * n * positions,
                       .h = c->out,
                       .u = c->w + l->tensors[0],
                       .b = c->w + l->tensors[0] + l->tensors[1],
                       .carry = c->scratch,
                       .rows = c->rows,
                       .steps = l->in.width,
                       .n = l->out.channels};
}

static void lstm_forward(const sl_layer_call *c) {
    lstm_args a = lstm_of(c);
    const uint32_t n = a.n, inputs = c->layer->in.channels;
    device_multiply(&(device_product){.a = {.at = c->in, .line = inputs},
                                      .b = {.at = c->w, .line = 4 * n},
                                      .c = a.gates,
                                      .c_line = 4 * n,
                                      .m = c->rows * a.steps,
                                      .n = 4 * n,
                                      .k = inputs,
                                      .count = 1,
                                      .scale = 1});
    for (a.t = 0; a.t < a.steps; a.t++)
        launch_lstm_advance(&a, lstm_blocks(c->rows, n));
}

/* From the four gates' gradients: those of W, U, b and x. */
static void lstm_gradients(const sl_layer_call *c, const lstm_args *a) {
    const uint32_t n = a->n, inputs = c->layer->in.channels,
                   positions = positions_of(c->layer, c->rows);
    float *du = c->g + c->layer->tensors[0];
    const device_matrix d = {.at = a->gates, .line = 4 * n};
    double *sums = as_doubles(c->scratch);
    device_multiply(&(device_product){.a = {.at = c->in, .line = inputs, .turned = true},
                                      .b = d,
                                      .c = c->g,
                                      .c_line = 4 * n,
                                      .m = inputs,
                                      .n = 4 * n,
                                      .k = positions,
                                      .count = 1,
                                      .scale = 1});
    device_multiply(&(device_product){.a = {.at = a->before, .line = n, .turned = true},
                                      .b = d,
                                      .c = du,
                                      .c_line = 4 * n,
                                      .m = n,
                                      .n = 4 * n,
                                      .k = positions,
                                      .count = 1,
                                      .scale = 1});
    launch_take_rows(
        &(take_rows_args){.d = a->gates, .sums = sums, .rows = positions, .columns = 4 * n},
        slices_of(positions) * 4 * n);
    finish_sums(sums, slices_of(positions), 4 * (size_t)n, NULL, du + c->layer->tensors[1]);
    if (c->d_in != NULL)
        device_multiply(&(device_product){.a = d,
                                          .b = {.at = c->w, .line = 4 * n, .turned = true},
                                          .c = c->d_in,
                                          .c_line = inputs,
                                          .m = positions,
                                          .n = inputs,
                                          .k = 4 * n,
                                          .count = 1,
                                          .scale = 1,
                                          .add = c->add_in});
}

static void lstm_backward(const sl_layer_call *c) {
    lstm_args a = lstm_of(c);
    const size_t n = a.n;
    float *turned = a.carry + n * c->rows;
    launch_transpose(&(transpose_args){a.u, turned, a.n, 4 * a.n}, 4 * n * n);
    a.h = c->d_out;
    a.u = turned;
    for (a.t = a.steps; a.t-- > 0;)
        launch_lstm_retreat(&a, lstm_blocks(c->rows, a.n));
    lstm_gradients(c, &a);
}

/* ---- layer normalisation ---- */

/* saved: as on the CPU. scratch: two means per position, then lanes or sums. */
static sl_layer_memory norm_memory(const sl_layer *l, uint32_t rows) {
    const size_t positions = positions_of(l, rows), lanes = 4 * POSITION_LANES * positions;
    return (sl_layer_memory){
        .saved = 2 * positions,
        .scratch = 2 * positions +
                   larger(lanes, sums_floats(slices_of(positions), 2 * (size_t)l->in.channels))};
}

static position_args norm_of(const sl_layer_call *c) {
    const uint32_t positions = positions_of(c->layer, c->rows), n = c->layer->in.channels;
    double *behind = as_doubles(c->scratch + 2 * (size_t)positions);
    return (position_args){.x = c->in,
                           .d = c->d_out,
                           .scale = c->w,
                           .shift = c->w + n,
                           .saved = c->saved,
                           .means = c->scratch,
                           .lanes = behind,
                           .sums = behind,
                           .positions = positions,
                           .n = n,
                           .add = c->add_in};
}

static void norm_forward(const sl_layer_call *c) {
    position_args a = norm_of(c);
    a.y = c->out;
    launch_position_lanes(&a, (size_t)a.positions * POSITION_LANES);
    launch_position_moments(&a, a.positions);
    launch_normalise_positions(&a, (size_t)a.positions * a.n);
}

static void norm_backward(const sl_layer_call *c) {
    position_args a = norm_of(c);
    a.y = c->d_in;
    launch_take_positions(&a, slices_of(a.positions) * a.n);
    finish_sums(a.sums, slices_of(a.positions), 2 * (size_t)a.n, NULL, c->g);
    if (c->d_in == NULL)
        return;
    launch_position_products(&a, (size_t)a.positions * POSITION_LANES);
    launch_position_means(&a, a.positions);
    launch_give_positions(&a, (size_t)a.positions * a.n);
}

const sl_layer_ops embedding_layer = {embedding_memory, embedding_forward, embedding_backward};
const sl_layer_ops lstm_layer = {lstm_memory, lstm_forward, lstm_backward};
const sl_layer_ops layer_norm_layer = {norm_memory, norm_forward, norm_backward};
