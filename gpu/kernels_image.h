/* kernels_image.h - kernels of convolution, pools and batch normalisation. See layer_kernels.h.
 *
 * Activations lie (rows, height, width, channels), channels fastest. A thread of an element-wise kernel has `span` neighbouring channels: four where
 * that divides them, else one.
 */
#ifndef SL_KERNELS_IMAGE_H
#define SL_KERNELS_IMAGE_H

#include "gpu/kernels_dense.h"

/* A window that slides over the input; `height` and `width` of in and out, channels of in. */
typedef struct sliding {
    uint32_t in_height, in_width, out_height, out_width, channels;
    uint32_t window_height, window_width, stride, padding;
} sliding;

/* The output places whose window covers position `at` of the input, in one direction: [first, end). */
typedef struct cover {
    uint32_t first, end;
} cover;

SL_SHARED cover cover_of(uint32_t at, uint32_t window, uint32_t stride, uint32_t padding, uint32_t places) {
    const uint32_t padded = at + padding;
    cover c;
    c.first = padded < window ? 0 : (padded - window) / stride + 1;
    c.end = least(places, padded / stride + 1);
    return c;
}

/* ---- convolution: windows as the rows of a matrix, and back ---- */

typedef struct unfold_args {
    const float *x;
    float *columns; /* (rows out_height out_width, window_height window_width channels) */
    sliding s;
    uint32_t span;
} unfold_args;

SL_SHARED void unfold(const unfold_args *a, size_t i) {
    const sliding s = a->s;
    const uint32_t spans = s.channels / a->span, c = (uint32_t)i % spans * a->span, tap = (uint32_t)i / spans;
    const uint32_t taps = s.window_height * s.window_width, t = tap % taps, pixel = tap / taps;
    const uint32_t q = pixel % s.out_width, p = pixel / s.out_width % s.out_height, row = pixel / (s.out_width * s.out_height);
    /* Beyond the edge on either side: too large a number. */
    const uint32_t y = p * s.stride + t / s.window_width - s.padding, x = q * s.stride + t % s.window_width - s.padding;
    float *to = a->columns + i * a->span;
    const int inside = y < s.in_height && x < s.in_width;
    const float *from = a->x + ((size_t)(row * s.in_height + (inside ? y : 0)) * s.in_width + (inside ? x : 0)) * s.channels + c;
    for (uint32_t e = 0; e < a->span; e++)
        to[e] = inside ? from[e] : 0;
}

/* Each number of x gets what unfold made of it: a sum over the windows that cover it. */
typedef struct fold_args {
    float *x;
    const float *columns;
    sliding s;
    uint32_t span;
    int add;
} fold_args;

SL_SHARED void fold(const fold_args *a, size_t i) {
    const sliding s = a->s;
    const uint32_t spans = s.channels / a->span, c = (uint32_t)i % spans * a->span, pixel = (uint32_t)i / spans;
    const uint32_t x = pixel % s.in_width, y = pixel / s.in_width % s.in_height, row = pixel / (s.in_width * s.in_height);
    const cover down = cover_of(y, s.window_height, s.stride, s.padding, s.out_height);
    const cover right = cover_of(x, s.window_width, s.stride, s.padding, s.out_width);
    const size_t depth = (size_t)s.window_height * s.window_width * s.channels;
    float sums[4] = {0, 0, 0, 0};
    for (uint32_t p = down.first; p < down.end; p++)
        for (uint32_t q = right.first; q < right.end; q++) {
            const uint32_t tap = (y + s.padding - p * s.stride) * s.window_width + x + s.padding - q * s.stride;
            const float *from = a->columns + ((size_t)(row * s.out_height + p) * s.out_width + q) * depth + (size_t)tap * s.channels + c;
            for (uint32_t e = 0; e < a->span; e++)
                sums[e] += from[e];
        }
    float *to = a->x + i * a->span;
    for (uint32_t e = 0; e < a->span; e++)
        to[e] = a->add ? to[e] + sums[e] : sums[e];
}

/* ---- pools: thread i has number i of y, or of d_in ---- */

typedef struct pool_args {
    const float *x;
    float *y;
    const float *d_out;
    float *d_in;
    sliding s;
    int add;
} pool_args;

/* The first number of output i's window. */
SL_SHARED const float *window_of(const pool_args *a, uint32_t i) {
    const sliding s = a->s;
    const uint32_t c = i % s.channels, pixel = i / s.channels, q = pixel % s.out_width, p = pixel / s.out_width % s.out_height;
    const uint32_t row = pixel / (s.out_width * s.out_height);
    return a->x + ((size_t)(row * s.in_height + p * s.stride) * s.in_width + q * s.stride) * s.channels + c;
}

typedef pool_args pool_largest_args;

SL_SHARED void pool_largest(const pool_largest_args *a, size_t i) {
    const float *from = window_of(a, (uint32_t)i);
    float best = *from;
    for (uint32_t r = 0; r < a->s.window_height; r++)
        for (uint32_t t = 0; t < a->s.window_width; t++) {
            const float v = from[((size_t)r * a->s.in_width + t) * a->s.channels];
            best = v <= best || best != best ? best : v; /* a NaN stays, so that divergence shows */
        }
    a->y[i] = best;
}

typedef pool_args pool_mean_args;

SL_SHARED void pool_mean(const pool_mean_args *a, size_t i) {
    const float *from = window_of(a, (uint32_t)i);
    float sum = 0;
    for (uint32_t r = 0; r < a->s.window_height; r++)
        for (uint32_t t = 0; t < a->s.window_width; t++)
            sum += from[((size_t)r * a->s.in_width + t) * a->s.channels];
    a->y[i] = sum * (1.0f / ((float)a->s.window_height * (float)a->s.window_width));
}

/* Is tap `at` the first of the window's numbers that are equal to its largest? */
SL_SHARED int is_first_largest(const pool_args *a, const float *window, uint32_t at, float largest) {
    for (uint32_t t = 0; t < at; t++)
        if (window[((size_t)(t / a->s.window_width) * a->s.in_width + t % a->s.window_width) * a->s.channels] == largest)
            return 0;
    return 1;
}

typedef pool_args give_to_largest_args;

SL_SHARED void give_to_largest(const give_to_largest_args *a, size_t i) {
    const sliding s = a->s;
    const uint32_t c = (uint32_t)i % s.channels, pixel = (uint32_t)i / s.channels, x = pixel % s.in_width, y = pixel / s.in_width % s.in_height;
    const uint32_t row = pixel / (s.in_width * s.in_height);
    const cover down = cover_of(y, s.window_height, s.stride, 0, s.out_height), right = cover_of(x, s.window_width, s.stride, 0, s.out_width);
    float sum = 0;
    for (uint32_t p = down.first; p < down.end; p++)
        for (uint32_t q = right.first; q < right.end; q++) {
            const size_t out = ((size_t)(row * s.out_height + p) * s.out_width + q) * s.channels + c;
            const uint32_t at = (y - p * s.stride) * s.window_width + x - q * s.stride;
            if (a->x[i] == a->y[out] && is_first_largest(a, window_of(a, (uint32_t)out), at, a->y[out]))
                sum += a->d_out[out];
        }
    a->d_in[i] = a->add ? a->d_in[i] + sum : sum;
}

typedef pool_args give_to_all_args;

SL_SHARED void give_to_all(const give_to_all_args *a, size_t i) {
    const sliding s = a->s;
    const uint32_t c = (uint32_t)i % s.channels, pixel = (uint32_t)i / s.channels, x = pixel % s.in_width, y = pixel / s.in_width % s.in_height;
    const uint32_t row = pixel / (s.in_width * s.in_height);
    const cover down = cover_of(y, s.window_height, s.stride, 0, s.out_height), right = cover_of(x, s.window_width, s.stride, 0, s.out_width);
    const float share = 1.0f / ((float)s.window_height * (float)s.window_width);
    float sum = 0;
    for (uint32_t p = down.first; p < down.end; p++)
        for (uint32_t q = right.first; q < right.end; q++)
            sum += a->d_out[((size_t)(row * s.out_height + p) * s.out_width + q) * s.channels + c] * share;
    a->d_in[i] = a->add ? a->d_in[i] + sum : sum;
}

/* ---- batch normalisation; the formulas stand in learner/batch_norm.c ---- */

#define BATCH_NORM_EPSILON 1e-5

/* Thread (g, k): sums of x - x[0, k] and of its square, over a slice of the positions of channel k. The first number is subtracted so that a mean
 * far from 0 costs no digits of the variance. */
typedef struct add_moments_args {
    const float *x; /* (positions, channels) */
    double *sums;   /* (ceil(positions / SLICE), 2, channels) */
    uint32_t positions, channels;
} add_moments_args;

SL_SHARED void add_moments(const add_moments_args *a, size_t i) {
    const uint32_t g = (uint32_t)i / a->channels, k = (uint32_t)i % a->channels, end = least(a->positions, (g + 1) * SLICE);
    const float zero = a->x[k];
    float sum = 0, square = 0;
    for (uint32_t p = g * SLICE; p < end; p++) {
        const float v = a->x[(size_t)p * a->channels + k] - zero;
        sum += v;
        square += v * v;
    }
    a->sums[(size_t)g * 2 * a->channels + k] = (double)sum;
    a->sums[(size_t)g * 2 * a->channels + a->channels + k] = (double)square;
}

/* Channel i's mean and 1/sqrt(variance + epsilon). */
typedef struct settle_moments_args {
    const float *x;
    const double *sums; /* (2, channels) */
    float *saved;       /* (2, channels) */
    double *kept;       /* batches, then sums of m_b and of v_b + m_b^2; NULL: not collected */
    uint32_t positions, channels;
} settle_moments_args;

SL_SHARED void settle_moments(const settle_moments_args *a, size_t i) {
    const double offset = a->sums[i] / a->positions, mean = a->x[i] + offset, spread = a->sums[a->channels + i] / a->positions - offset * offset;
    const double variance = spread < 0 ? 0 : spread;
    a->saved[i] = (float)mean;
    a->saved[a->channels + i] = (float)(1 / sqrt(variance + BATCH_NORM_EPSILON));
    if (a->kept == NULL)
        return;
    if (i == 0)
        a->kept[0] += 1;
    a->kept[1 + i] += mean;
    a->kept[1 + a->channels + i] += variance + mean * mean;
}

/* Channel i's, of all collected batches together. */
typedef struct recall_moments_args {
    const double *kept;
    float *saved;
    uint32_t channels;
} recall_moments_args;

SL_SHARED void recall_moments(const recall_moments_args *a, size_t i) {
    const double batches = a->kept[0] < 1 ? 1 : a->kept[0], mean = a->kept[1 + i] / batches;
    const double spread = a->kept[1 + a->channels + i] / batches - mean * mean;
    a->saved[i] = (float)mean;
    a->saved[a->channels + i] = (float)(1 / sqrt((spread < 0 ? 0 : spread) + BATCH_NORM_EPSILON));
}

/* Where a shortcut's numbers lie: it may have fewer channels, and `stride` times the output's height and width. */
typedef struct detour {
    uint32_t height, width;                    /* of the output */
    uint32_t from_height, from_width, channels, stride; /* of the shortcut */
} detour;

/* Of output position p, channel 0. */
SL_SHARED size_t detour_of(const detour *d, uint32_t p) {
    const uint32_t column = p % d->width, line = p / d->width % d->height, row = p / (d->width * d->height);
    return ((size_t)(row * d->from_height + line * d->stride) * d->from_width + (size_t)column * d->stride) * d->channels;
}

/* y = relu?(s (x - m) / sqrt(v + epsilon) + t + shortcut?) */
typedef struct normalise_args {
    const float *x, *scale, *shift, *saved, *shortcut; /* shortcut: or NULL */
    float *y;
    uint32_t channels;
    detour from;
    int relu;
} normalise_args;

SL_SHARED void normalise(const normalise_args *a, size_t i) {
    const uint32_t k = (uint32_t)i % a->channels;
    const float factor = a->scale[k] * a->saved[a->channels + k];
    float v = factor * a->x[i] + (a->shift[k] - factor * a->saved[k]);
    if (a->shortcut != NULL && k < a->from.channels)
        v += a->shortcut[detour_of(&a->from, (uint32_t)i / a->channels) + k];
    a->y[i] = a->relu ? rectified(v) : v;
}

/* d counts, and stays, only where y > 0; it goes into the shortcut; thread (g, k) sums d and d (x - m) over a slice of channel k. */
typedef struct take_normalised_args {
    const float *x, *y, *saved; /* y: NULL without relu */
    float *d, *d_shortcut;
    double *sums; /* (ceil(positions / SLICE), 2, channels): of d (x - m), of d */
    uint32_t positions, channels;
    detour from;
    int add_shortcut;
} take_normalised_args;

SL_SHARED void take_normalised(const take_normalised_args *a, size_t i) {
    const uint32_t channels = a->channels, g = (uint32_t)i / channels, k = (uint32_t)i % channels, end = least(a->positions, (g + 1) * SLICE);
    const float mean = a->saved[k];
    float sum = 0, product = 0;
    for (uint32_t p = g * SLICE; p < end; p++) {
        const size_t at = (size_t)p * channels + k;
        float d = a->d[at];
        if (a->y != NULL)
            a->d[at] = d = a->y[at] > 0 ? d : 0;
        if (a->d_shortcut != NULL && k < a->from.channels) {
            float *to = a->d_shortcut + detour_of(&a->from, p) + k;
            *to = a->add_shortcut ? *to + d : d;
        }
        sum += d;
        product += d * (a->x[at] - mean);
    }
    a->sums[(size_t)g * 2 * channels + k] = (double)product;
    a->sums[(size_t)g * 2 * channels + channels + k] = (double)sum;
}

/* Channel i's gradients, and the factors of dx = a d + b x + e. */
typedef struct settle_factors_args {
    const double *sums; /* (2, channels) */
    const float *scale, *saved;
    float *g;       /* (2, channels) */
    float *factors; /* (3, channels) */
    uint32_t positions, channels;
} settle_factors_args;

SL_SHARED void settle_factors(const settle_factors_args *a, size_t i) {
    const float inverse = a->saved[a->channels + i], slope = a->scale[i] * inverse;
    a->g[i] = (float)(a->sums[i] * inverse);
    a->g[a->channels + i] = (float)a->sums[a->channels + i];
    const float by_x = (float)(-(double)slope * inverse * a->g[i] / a->positions);
    a->factors[i] = slope;
    a->factors[a->channels + i] = by_x;
    a->factors[2 * a->channels + i] = (float)(-(double)slope * a->g[a->channels + i] / a->positions) - by_x * a->saved[i];
}

typedef struct give_normalised_args {
    const float *x, *d, *factors;
    float *d_in;
    uint32_t channels;
    int add;
} give_normalised_args;

SL_SHARED void give_normalised(const give_normalised_args *a, size_t i) {
    const uint32_t k = (uint32_t)i % a->channels;
    const float v = a->factors[k] * a->d[i] + (a->factors[a->channels + k] * a->x[i] + a->factors[2 * a->channels + k]);
    a->d_in[i] = a->add ? a->d_in[i] + v : v;
}

#endif
