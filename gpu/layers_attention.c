/* layers_attention.c - causal self-attention on the device; learner/layers/attention.c has the
 * formulas.
 *
 * The samples of a batch lie at equal distances, so one head of all samples is one batched
 * product. The matrices P are large: a batch is processed in pieces of a few rows, and the
 * backward pass recomputes P. */
#include <math.h>

#include "gpu/layers.h"

#define WEIGHTS_MAX                                                                                \
    ((size_t)1 << 23) /* floats of P (and of dP) in one piece, unless one row has more */

/* Rows [first, first + rows) of one call. */
typedef struct piece {
    const sl_layer *layer;
    uint32_t rows, steps, channels; /* channels: of one head */
    size_t line, in, out, square; /* strides in floats: between the q of two positions; between two
                                     samples' inputs, outputs, and P of one head */
    const float *x;
    float *p, *dp; /* (rows, heads, steps, steps) */
} piece;

static uint32_t piece_rows(const sl_layer *l, uint32_t rows) {
    const size_t fit = WEIGHTS_MAX / ((size_t)l->heads * l->in.width * l->in.width);
    return fit < 1 ? 1 : fit < rows ? (uint32_t)fit : rows;
}

static size_t weights_of(const sl_layer *l, uint32_t rows) {
    return (size_t)piece_rows(l, rows) * l->heads * l->in.width * l->in.width;
}

static sl_layer_memory memory(const sl_layer *layer, uint32_t rows) {
    return (sl_layer_memory){.scratch = 2 * weights_of(layer, rows)};
}

static piece piece_at(const sl_layer_call *c, uint32_t first) {
    const sl_layer *l = c->layer;
    piece s = {.layer = l,
               .rows = least(piece_rows(l, c->rows), c->rows - first),
               .steps = l->in.width,
               .channels = l->out.channels / l->heads,
               .line = l->in.channels,
               .in = sl_shape_size(l->in),
               .out = sl_shape_size(l->out)};
    s.square = (size_t)s.steps * s.steps;
    s.x = c->in + first * s.in;
    s.p = c->scratch;
    s.dp = c->scratch + weights_of(l, c->rows);
    return s;
}

static float scale_of(const piece *s) {
    return 1 / sqrtf((float)s->channels);
}

/* The queries, keys or values (0, 1, 2) of head h, or their gradients. */
static size_t third(const piece *s, int which, uint32_t h) {
    return (size_t)which * s->layer->out.channels + h * (size_t)s->channels;
}

static device_matrix part_of(const piece *s, int which, uint32_t h) {
    return (device_matrix){.at = s->x + third(s, which, h), .line = s->line, .step = s->in};
}

static device_matrix square_of(const piece *s, const float *p, uint32_t h) {
    return (device_matrix){
        .at = p + h * s->square, .line = s->steps, .step = s->layer->heads * s->square};
}

static device_matrix turn(device_matrix m) {
    m.turned = true;
    return m;
}

/* Computes p (steps, steps) of head h = scale a b. */
static void make_square(const piece *s, float *p, uint32_t h, device_matrix a, device_matrix b,
                        float scale) {
    const device_matrix c = square_of(s, p, h);
    device_multiply(&(device_product){.a = a,
                                      .b = b,
                                      .c = p + h * s->square,
                                      .c_line = c.line,
                                      .c_step = c.step,
                                      .m = s->steps,
                                      .n = s->steps,
                                      .k = s->channels,
                                      .count = s->rows,
                                      .scale = scale});
}

/* Computes z (steps, channels) = a b, or adds it. `to`, `line` and `step` describe z as a
 * device_matrix. */
static void mix(const piece *s, device_matrix a, device_matrix b, float *to, size_t line,
                size_t step, bool add) {
    device_multiply(&(device_product){.a = a,
                                      .b = b,
                                      .c = to,
                                      .c_line = line,
                                      .c_step = step,
                                      .m = s->steps,
                                      .n = s->channels,
                                      .k = s->steps,
                                      .count = s->rows,
                                      .scale = 1,
                                      .add = add});
}

static void find_weights(const piece *s) {
    const size_t rows = (size_t)s->rows * s->layer->heads * s->steps;
    for (uint32_t h = 0; h < s->layer->heads; h++)
        make_square(s, s->p, h, part_of(s, 0, h), turn(part_of(s, 1, h)), scale_of(s));
    launch_softmax_rows(&(softmax_rows_args){s->p, rows, s->steps}, row_blocks(rows));
}

static void forward(const sl_layer_call *c) {
    for (uint32_t first = 0; first < c->rows; first += piece_rows(c->layer, c->rows)) {
        const piece s = piece_at(c, first);
        find_weights(&s);
        for (uint32_t h = 0; h < c->layer->heads; h++)
            mix(&s, square_of(&s, s.p, h), part_of(&s, 2, h),
                c->out + first * s.out + third(&s, 0, h), c->layer->out.channels, s.out, false);
    }
}

static void backward_piece(const sl_layer_call *c, uint32_t first) {
    const piece s = piece_at(c, first);
    const uint32_t heads = c->layer->heads;
    float *d_in = c->d_in + first * s.in;
    find_weights(&s);
    for (uint32_t h = 0; h < heads; h++) {
        const device_matrix dy = {.at = c->d_out + first * s.out + third(&s, 0, h),
                                  .line = c->layer->out.channels,
                                  .step = s.out};
        mix(&s, turn(square_of(&s, s.p, h)), dy, d_in + third(&s, 2, h), s.line, s.in, c->add_in);
        make_square(&s, s.dp, h, dy, turn(part_of(&s, 2, h)), 1);
    }
    const size_t lines = (size_t)s.rows * heads * s.steps;
    launch_softmax_gradient(&(softmax_gradient_args){s.dp, s.p, scale_of(&s), lines, s.steps},
                            row_blocks(lines));
    for (uint32_t h = 0; h < heads; h++) {
        mix(&s, square_of(&s, s.dp, h), part_of(&s, 1, h), d_in + third(&s, 0, h), s.line, s.in,
            c->add_in);
        mix(&s, turn(square_of(&s, s.dp, h)), part_of(&s, 0, h), d_in + third(&s, 1, h), s.line,
            s.in, c->add_in);
    }
}

static void backward(const sl_layer_call *c) {
    for (uint32_t first = 0; first < c->rows && c->d_in != NULL;
         first += piece_rows(c->layer, c->rows))
        backward_piece(c, first);
}

const sl_layer_ops attention_layer = {memory, forward, backward};
