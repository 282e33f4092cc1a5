/* kernels_convolution.h - kernels of convolution. Layouts and spans: see kernels_image.h. */
#ifndef SL_KERNELS_CONVOLUTION_H
#define SL_KERNELS_CONVOLUTION_H

#include "gpu/kernels_dense.h"

/* A sliding window: heights and widths of input and output, channels of both. */
typedef struct sliding {
    uint32_t in_height, in_width, out_height, out_width, channels;
    uint32_t window_height, window_width, stride, padding;
} sliding;

/* In one direction, the output positions [first, end) whose window covers input position `at`. */
typedef struct cover {
    uint32_t first, end;
} cover;

SL_SHARED cover cover_of(uint32_t at, uint32_t window, uint32_t stride, uint32_t padding,
                         uint32_t places) {
    const uint32_t padded = at + padding;
    cover c;
    c.first = padded < window ? 0 : (padded - window) / stride + 1;
    c.end = least(places, padded / stride + 1);
    return c;
}

/* ---- convolution: windows as the rows of a matrix, and back ---- */

typedef struct unfold_args {
    const float *x;
    float *columns; /* (windows, window_height window_width channels) */
    sliding s;
    uint32_t span, first; /* the first window's position among all of x */
} unfold_args;

/* Thread i has `span` channels of one window. */
SL_SHARED void unfold(const unfold_args *a, size_t i) {
    const sliding s = a->s;
    const uint32_t spans = s.channels / a->span, c = (uint32_t)i % spans * a->span,
                   window = (uint32_t)i / spans, pixel = a->first + window;
    const uint32_t q = pixel % s.out_width, p = pixel / s.out_width % s.out_height,
                   row = pixel / (s.out_width * s.out_height);
    const uint32_t top = p * s.stride - s.padding,
                   left = q * s.stride -
                          s.padding; /* wraps around to a large number left of the edge */
    const float *from = a->x + (size_t)row * s.in_height * s.in_width * s.channels + c;
    float *to = a->columns + (size_t)window * s.window_height * s.window_width * s.channels + c;
    for (uint32_t y = top; y != top + s.window_height; y++) {
        SL_UNROLL(3)
        for (uint32_t x = left; x != left + s.window_width; x++, to += s.channels) {
            four v = {{0, 0, 0, 0}};
            if (y < s.in_height && x < s.in_width)
                v = read_span(from + ((size_t)y * s.in_width + x) * s.channels, a->span);
            write_span(to, v, a->span);
        }
    }
}

/* The adjoint of unfold: each element of x is the sum over the windows that cover it. */
typedef struct fold_args {
    float *x;
    const float *columns;
    sliding s;
    uint32_t span;
    int add;
} fold_args;

SL_SHARED void fold(const fold_args *a, size_t i) {
    const sliding s = a->s;
    const uint32_t spans = s.channels / a->span, c = (uint32_t)i % spans * a->span,
                   pixel = (uint32_t)i / spans;
    const uint32_t x = pixel % s.in_width, y = pixel / s.in_width % s.in_height,
                   row = pixel / (s.in_width * s.in_height);
    const cover down = cover_of(y, s.window_height, s.stride, s.padding, s.out_height);
    const cover right = cover_of(x, s.window_width, s.stride, s.padding, s.out_width);
    const size_t depth = (size_t)s.window_height * s.window_width * s.channels;
    float *to = a->x + i * a->span;
    four sum = {{0, 0, 0, 0}};
    for (uint32_t p = down.first; p < down.end; p++) {
        SL_UNROLL(3)
        for (uint32_t q = right.first; q < right.end; q++) {
            const uint32_t tap =
                (y + s.padding - p * s.stride) * s.window_width + x + s.padding - q * s.stride;
            const float *from = a->columns +
                                ((size_t)(row * s.out_height + p) * s.out_width + q) * depth +
                                (size_t)tap * s.channels + c;
            const four v = read_span(from, a->span);
            for (int e = 0; e < FOUR; e++)
                sum.v[e] += v.v[e];
        }
    }
    for (uint32_t e = 0; e < FOUR; e++)
        if (a->add && e < a->span)
            sum.v[e] = to[e] + sum.v[e];
    write_span(to, sum, a->span);
}

/* ---- convolution of few channels, without windows ----
 *
 * A product of so few columns leaves most of cuBLAS's tile empty, and windows move more bytes than
 * it needs. So a thread sums four channels of STRIP neighbours on a line, in order. */

enum {
    STRIP = 4,
    BACK_STRIP = 2, /* so that sums and what they read fit 64 registers */
    NARROW = 32     /* channels at most */
};
#define NOWHERE UINT32_MAX

typedef struct convolve_args {
    const float *from; /* x, or d_out */
    const float *w;    /* (window_height, window_width, s.channels, outputs) */
    float *to;         /* y, or d_in */
    sliding s;
    uint32_t outputs; /* channels of y */
    uint32_t span;    /* channels of x that convolve reads at once */
    int add;
} convolve_args;

/* What a thread has: channels from `channel` on, of the positions from `left` on in a line. */
typedef struct strip {
    uint32_t channel, left, line, row;
} strip;

SL_SHARED strip strip_of(uint32_t i, uint32_t length, uint32_t channels, uint32_t width,
                         uint32_t height) {
    const uint32_t groups = channels / FOUR, strips = (width + length - 1) / length,
                   place = i / groups;
    strip t;
    t.channel = i % groups * FOUR;
    t.left = place % strips * length;
    t.line = place / strips % height;
    t.row = place / strips / height;
    return t;
}

SL_SHARED four read_place(const convolve_args *a, uint32_t place, uint32_t channel, uint32_t span) {
    const four none = {{0, 0, 0, 0}};
    return place == NOWHERE ? none : read_span(a->from + (place + channel), span);
}

/* Adds one tap's products. */
SL_SHARED void convolve_tap(const convolve_args *a, uint32_t w, const uint32_t place[STRIP],
                            four sum[STRIP]) {
    SL_UNROLL(1)
    for (uint32_t c = 0; c < a->s.channels; c += a->span) {
        four x[STRIP];
        SL_UNROLL(4)
        for (uint32_t j = 0; j < STRIP; j++)
            x[j] = read_place(a, place[j], c, a->span);
        SL_UNROLL(4)
        for (uint32_t e = 0; e < FOUR; e++) {
            if (e >= a->span)
                continue;
            const four by = read_span(a->w + (w + (c + e) * a->outputs), FOUR);
            SL_UNROLL(16)
            for (uint32_t n = 0; n < STRIP * FOUR; n++)
                sum[n / FOUR].v[n % FOUR] += x[n / FOUR].v[e] * by.v[n % FOUR];
        }
    }
}

SL_SHARED void convolve(const convolve_args *a, size_t i) {
    const sliding s = a->s;
    const strip t = strip_of((uint32_t)i, STRIP, a->outputs, s.out_width, s.out_height);
    four sum[STRIP] = {{{0, 0, 0, 0}}};
    for (uint32_t u = 0; u < s.window_height; u++) {
        const uint32_t y = t.line * s.stride + u - s.padding; /* wraps around above the edge */
        const uint32_t from = (t.row * s.in_height + y) * s.in_width;
        for (uint32_t v = 0; v < s.window_width && y < s.in_height; v++) {
            uint32_t place[STRIP];
            SL_UNROLL(4)
            for (uint32_t j = 0; j < STRIP; j++) {
                const uint32_t x = (t.left + j) * s.stride + v - s.padding;
                place[j] = x < s.in_width ? (from + x) * s.channels : NOWHERE;
            }
            convolve_tap(a, (u * s.window_width + v) * s.channels * a->outputs + t.channel, place,
                         sum);
        }
    }
    float *to =
        a->to + (size_t)(t.row * s.out_height + t.line) * s.out_width * a->outputs + t.channel;
    SL_UNROLL(4)
    for (uint32_t j = 0; j < STRIP; j++)
        if (t.left + j < s.out_width)
            write_span(to + (size_t)(t.left + j) * a->outputs, sum[j], FOUR);
}

/* The adjoint of convolve: d_in of d_out. */
typedef convolve_args convolve_back_args;

SL_SHARED void convolve_back_tap(const convolve_args *a, uint32_t w,
                                 const uint32_t place[BACK_STRIP], four sum[BACK_STRIP]) {
    SL_UNROLL(1)
    for (uint32_t k = 0; k < a->outputs; k += FOUR) {
        four d[BACK_STRIP];
        SL_UNROLL(2)
        for (uint32_t j = 0; j < BACK_STRIP; j++)
            d[j] = read_place(a, place[j], k, FOUR);
        SL_UNROLL(4)
        for (uint32_t c = 0; c < FOUR; c++) {
            const four by = read_span(a->w + (w + c * a->outputs + k), FOUR);
            SL_UNROLL(8)
            for (uint32_t n = 0; n < BACK_STRIP * FOUR; n++)
                sum[n / FOUR].v[c] += d[n / FOUR].v[n % FOUR] * by.v[n % FOUR];
        }
    }
}

SL_SHARED void convolve_back(const convolve_back_args *a, size_t i) {
    const sliding s = a->s;
    const strip t = strip_of((uint32_t)i, BACK_STRIP, s.channels, s.in_width, s.in_height);
    const cover down = cover_of(t.line, s.window_height, s.stride, s.padding, s.out_height);
    four sum[BACK_STRIP] = {{{0, 0, 0, 0}}};
    for (uint32_t p = down.first; p < down.end; p++) {
        const uint32_t u = t.line + s.padding - p * s.stride;
        const uint32_t from = (t.row * s.out_height + p) * s.out_width;
        for (uint32_t v = 0; v < s.window_width; v++) {
            uint32_t place[BACK_STRIP];
            SL_UNROLL(2)
            for (uint32_t j = 0; j < BACK_STRIP; j++) {
                const uint32_t x = t.left + j + s.padding - v, q = x / s.stride;
                place[j] = q < s.out_width && q * s.stride == x ? (from + q) * a->outputs : NOWHERE;
            }
            convolve_back_tap(a, ((u * s.window_width + v) * s.channels + t.channel) * a->outputs,
                              place, sum);
        }
    }
    float *to =
        a->to + (size_t)(t.row * s.in_height + t.line) * s.in_width * s.channels + t.channel;
    SL_UNROLL(2)
    for (uint32_t j = 0; j < BACK_STRIP; j++) {
        if (t.left + j >= s.in_width)
            continue;
        float *at = to + (size_t)(t.left + j) * s.channels;
        SL_UNROLL(4)
        for (uint32_t c = 0; c < FOUR; c++)
            if (a->add)
                sum[j].v[c] = at[c] + sum[j].v[c];
        write_span(at, sum[j], FOUR);
    }
}

/* By hand: clang-format moves a name to the next line each time that it runs. */
/* clang-format off */
#define SL_CONVOLUTION_KERNELS(X)                                                                  \
    X(unfold) X(fold) X(convolve) X(convolve_back)
/* clang-format on */

#endif
