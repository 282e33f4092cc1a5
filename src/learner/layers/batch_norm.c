/* batch_norm.c - batch normalisation (Ioffe, Szegedy 2015), with the sum of a residual block and
 * its ReLU in the same pass.
 *
 *     y = relu?( s (x - m) / sqrt(v + epsilon) + t + shortcut? )
 *
 * m, v: mean and (biased) variance of a channel over batch and positions. Backward, with d = d loss
 * / d (y before relu), u = (x - m)/sqrt(v + epsilon) and n numbers a channel:
 *
 *     dt = sum d;  ds = sum d u;  dx = s/sqrt(v + epsilon) (d - dt/n - u ds/n);  d shortcut = d
 *
 * Sums run in float along a line of an image and in double over lines. For evaluation, mean and
 * variance are those of all collected batches together: m = E m_b, v = E(v_b + m_b^2) - m^2 (Wu,
 * Johnson 2021, section 3).
 */
#include "learner/layers/layer_cpu.h"

#include <math.h>

#include "learner/layers/simd.h"

#define EPSILON 1e-5

/* saved: m, then 1/sqrt(v + epsilon), of each channel. kept: the number of batches, then sums of
 * m_b and of v_b + m_b^2. scratch: two sums in double, or two factors, of each channel. */
static sl_layer_memory memory(const sl_layer *layer, uint32_t rows) {
    (void)rows;
    size_t channels = layer->out.channels;
    return (sl_layer_memory){
        .saved = 2 * channels, .kept = 1 + 2 * channels, .scratch = 4 * channels};
}

/* ---- lines: all passes run line by line, eight channels at a time ---- */

/* One line of an image in each of the vectors, at the first of the channels looked at. */
typedef struct line {
    uint32_t pixels, channels; /* of the line; floats from one pixel to the next */
    const float *x, *shortcut; /* shortcut: NULL where these channels have none */
    float *y, *d, *d_in, *d_shortcut;
    uint32_t shortcut_step;  /* floats */
    uint32_t shortcut_width; /* channels of these that the shortcut has, at most LANES */
} line;

static size_t lines_of(const sl_layer_call *c) {
    return (size_t)c->rows * c->layer->out.height;
}

/* Line `index` of the batch from channel `first` on. */
KERNEL line line_at(const sl_layer_call *c, size_t index, uint32_t first) {
    const sl_layer *l = c->layer;
    size_t at = index * l->out.width * l->out.channels + first;
    line r = {
        .pixels = l->out.width, .channels = l->out.channels, .x = c->in + at, .y = c->out + at};
    if (c->d_out != NULL) {
        r.d = c->d_out + at;
        r.d_in = c->d_in + at;
    }
    sl_shape s = c->shortcut_shape;
    if (c->shortcut == NULL || first >= s.channels)
        return r;
    uint32_t stride = s.height == l->out.height ? 1 : 2;
    size_t image = index / l->out.height, row = index % l->out.height;
    size_t from = ((image * s.height + row * stride) * s.width) * s.channels + first;
    r.shortcut = c->shortcut + from;
    r.d_shortcut = c->d_shortcut == NULL ? NULL : c->d_shortcut + from;
    r.shortcut_step = stride * s.channels;
    r.shortcut_width = s.channels - first < LANES ? s.channels - first : LANES;
    return r;
}

/* ---- forward ---- */

/* Adds the sums of x - shift and of its square along the line. */
KERNEL void add_moments(const line *r, const float *shift, double *sums, double *squares,
                        uint32_t width) {
    lanes zero = load_part(shift, width), sum = broadcast(0), square = broadcast(0);
    for (uint32_t p = 0; p < r->pixels; p++) {
        lanes v = load_part(r->x + (size_t)p * r->channels, width) - zero;
        sum += v;
        square += v * v;
    }
    for (uint32_t c = 0; c < width; c++) {
        sums[c] += sum[c];
        squares[c] += square[c];
    }
}

static void find_moments(const sl_layer_call *c, double *sums, double *squares) {
    uint32_t channels = c->layer->out.channels;
    for (size_t i = 0; i < lines_of(c); i++)
        for (uint32_t first = 0; first < channels; first += LANES) {
            line r = line_at(c, i, first);
            if (channels - first >= LANES)
                add_moments(&r, c->in + first, sums + first, squares + first, LANES);
            else
                add_moments(&r, c->in + first, sums + first, squares + first, channels - first);
        }
}

/* Writes mean and variance of the batch to `saved`. It subtracts the first pixel, so that a mean
 * far from 0 does not cancel digits of the variance. */
static void find_statistics(const sl_layer_call *c) {
    uint32_t channels = c->layer->out.channels;
    double *sums = (double *)(void *)c->scratch, *squares = sums + channels;
    double n = (double)lines_of(c) * c->layer->out.width;
    memset(sums, 0, 2 * channels * sizeof *sums);
    find_moments(c, sums, squares);
    for (uint32_t k = 0; k < channels; k++) {
        double offset = sums[k] / n, mean = c->in[k] + offset,
               variance = fmax(0, squares[k] / n - offset * offset);
        c->saved[k] = (float)mean;
        c->saved[channels + k] = (float)(1 / sqrt(variance + EPSILON));
        if (c->pass == SL_PASS_COLLECT) {
            c->kept[1 + k] += mean;
            c->kept[1 + channels + k] += variance + mean * mean;
        }
    }
    if (c->pass == SL_PASS_COLLECT)
        c->kept[0]++;
}

static void recall_statistics(const sl_layer_call *c) {
    uint32_t channels = c->layer->out.channels;
    double batches = fmax(1, c->kept[0]);
    for (uint32_t k = 0; k < channels; k++) {
        double mean = c->kept[1 + k] / batches,
               variance = fmax(0, c->kept[1 + channels + k] / batches - mean * mean);
        c->saved[k] = (float)mean;
        c->saved[channels + k] = (float)(1 / sqrt(variance + EPSILON));
    }
}

/* y = relu?(a x + b + shortcut) */
KERNEL void scale_line(const line *r, lanes a, lanes b, bool rectify, uint32_t width) {
    for (uint32_t p = 0; p < r->pixels; p++) {
        lanes v = a * load_part(r->x + (size_t)p * r->channels, width) + b;
        if (r->shortcut != NULL)
            v += load_part(r->shortcut + (size_t)p * r->shortcut_step, r->shortcut_width);
        store_part(r->y + (size_t)p * r->channels, rectify ? relu(v) : v, width);
    }
}

static void scale(const sl_layer_call *c, const float *a, const float *b) {
    uint32_t channels = c->layer->out.channels;
    for (size_t i = 0; i < lines_of(c); i++)
        for (uint32_t first = 0; first < channels; first += LANES) {
            line r = line_at(c, i, first);
            if (channels - first >= LANES && (r.shortcut == NULL || r.shortcut_width == LANES)) {
                r.shortcut_width = LANES;
                scale_line(&r, load(a + first), load(b + first), c->layer->relu, LANES);
            } else {
                uint32_t width = channels - first < LANES ? channels - first : LANES;
                scale_line(&r, load_part(a + first, width), load_part(b + first, width),
                           c->layer->relu, width);
            }
        }
}

static void forward(const sl_layer_call *c) {
    uint32_t channels = c->layer->out.channels;
    if (c->pass == SL_PASS_EVALUATE)
        recall_statistics(c);
    else
        find_statistics(c);
    float *a = c->scratch, *b = a + channels;
    for (uint32_t k = 0; k < channels; k++) {
        a[k] = c->w[k] * c->saved[channels + k];
        b[k] = c->w[channels + k] - a[k] * c->saved[k];
    }
    scale(c, a, b);
}

/* ---- backward ---- */

/* Applies ReLU's derivative to d, passes d to the shortcut, and adds up d and d (x - m). */
KERNEL void take_line(const line *r, lanes mean, bool rectify, bool add, double *sums,
                      double *products, uint32_t width) {
    lanes sum = broadcast(0), product = broadcast(0);
    for (uint32_t p = 0; p < r->pixels; p++) {
        size_t at = (size_t)p * r->channels;
        lanes d = load_part(r->d + at, width);
        if (rectify) {
            d = where_positive(d, load_part(r->y + at, width));
            store_part(r->d + at, d, width);
        }
        if (r->d_shortcut != NULL) {
            float *to = r->d_shortcut + (size_t)p * r->shortcut_step;
            store_part(to, add ? d + load_part(to, r->shortcut_width) : d, r->shortcut_width);
        }
        sum += d;
        product += d * (load_part(r->x + at, width) - mean);
    }
    for (uint32_t k = 0; k < width; k++) {
        sums[k] += sum[k];
        products[k] += product[k];
    }
}

static void take(const sl_layer_call *c, bool add, double *sums, double *products) {
    uint32_t channels = c->layer->out.channels;
    for (size_t i = 0; i < lines_of(c); i++)
        for (uint32_t first = 0; first < channels; first += LANES) {
            line r = line_at(c, i, first);
            if (channels - first >= LANES && (r.shortcut == NULL || r.shortcut_width == LANES)) {
                r.shortcut_width = LANES;
                take_line(&r, load(c->saved + first), c->layer->relu, add, sums + first,
                          products + first, LANES);
            } else {
                uint32_t width = channels - first < LANES ? channels - first : LANES;
                take_line(&r, load_part(c->saved + first, width), c->layer->relu, add, sums + first,
                          products + first, width);
            }
        }
}

/* d_in = a d + b x + e, or added. */
KERNEL void give_line(const line *r, lanes a, lanes b, lanes e, bool add, uint32_t width) {
    for (uint32_t p = 0; p < r->pixels; p++) {
        size_t at = (size_t)p * r->channels;
        lanes v = a * load_part(r->d + at, width) + (b * load_part(r->x + at, width) + e);
        store_part(r->d_in + at, add ? v + load_part(r->d_in + at, width) : v, width);
    }
}

static void give(const sl_layer_call *c, const float *a, const float *b, const float *e) {
    uint32_t channels = c->layer->out.channels;
    for (size_t i = 0; i < lines_of(c); i++)
        for (uint32_t first = 0; first < channels; first += LANES) {
            line r = line_at(c, i, first);
            uint32_t width = channels - first < LANES ? channels - first : LANES;
            if (width == LANES)
                give_line(&r, load(a + first), load(b + first), load(e + first), c->add_in, LANES);
            else
                give_line(&r, load_part(a + first, width), load_part(b + first, width),
                          load_part(e + first, width), c->add_in, width);
        }
}

static void backward(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    uint32_t channels = l->out.channels;
    double *sums = (double *)(void *)c->scratch, *products = sums + channels,
           n = (double)lines_of(c) * l->out.width;
    bool spread =
        c->d_shortcut != NULL && sl_shape_size(c->shortcut_shape) != sl_shape_size(l->out);
    if (spread && !c->add_shortcut) /* it has positions that nothing is written to */
        memset(c->d_shortcut, 0,
               c->rows * sl_shape_size(c->shortcut_shape) * sizeof *c->d_shortcut);
    memset(sums, 0, 2 * channels * sizeof *sums);
    take(c, c->add_shortcut || spread, sums, products);
    for (uint32_t k = 0; k < channels; k++) {
        c->g[k] = (float)(products[k] * c->saved[channels + k]);
        c->g[channels + k] = (float)sums[k];
    }
    if (c->d_in == NULL)
        return;
    float *a = c->scratch, *b = a + channels, *e = b + channels;
    for (uint32_t k = 0; k < channels; k++) {
        float inverse = c->saved[channels + k];
        a[k] = c->w[k] * inverse;
        b[k] = (float)(-(double)a[k] * inverse * c->g[k] / n);
        e[k] = (float)(-(double)a[k] * c->g[channels + k] / n) - b[k] * c->saved[k];
    }
    give(c, a, b, e);
}

SL_LAYER(batch_norm) = {.shape = sl_layer_keep_shape,
                        .tensors = sl_layer_affine_tensors,
                        .initial = sl_layer_affine_initial,
                        .widens_shortcut = true,
                        .ops = {memory, forward, backward}};
