/* kernels_image.h - kernels of pooling and batch normalization. See layer_kernels.h.
 *
 * Activations have shape (rows, height, width, channels), channels contiguous. A thread of an
 * elementwise kernel has `span` neighbouring channels: four if the channel count is divisible by
 * four, else one. */
#ifndef SL_KERNELS_IMAGE_H
#define SL_KERNELS_IMAGE_H

#include "gpu/block.h"
#include "gpu/kernels_convolution.h"

/* ---- pools: thread i has number i of y, or of d_in ---- */

typedef struct pool_args {
    const float *x;
    float *y;
    const float *d_out;
    float *d_in;
    sliding s;
    int add;
} pool_args;

/* The first element of output i's window. */
SL_SHARED const float *window_of(const pool_args *a, uint32_t i) {
    const sliding s = a->s;
    const uint32_t c = i % s.channels, pixel = i / s.channels, q = pixel % s.out_width,
                   p = pixel / s.out_width % s.out_height;
    const uint32_t row = pixel / (s.out_width * s.out_height);
    return a->x +
           ((size_t)(row * s.in_height + p * s.stride) * s.in_width + q * s.stride) * s.channels +
           c;
}

typedef pool_args pool_largest_args;

SL_SHARED void pool_largest(const pool_largest_args *a, size_t i) {
    const float *from = window_of(a, (uint32_t)i);
    float best = *from;
    for (uint32_t r = 0; r < a->s.window_height; r++)
        for (uint32_t t = 0; t < a->s.window_width; t++) {
            const float v = from[((size_t)r * a->s.in_width + t) * a->s.channels];
            best = v <= best || best != best ? best : v; /* keeps NaN, so that divergence shows */
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

/* Is element `at` the first of the window's largest elements? */
SL_SHARED int is_first_largest(const pool_args *a, const float *window, uint32_t at,
                               float largest) {
    for (uint32_t t = 0; t < at; t++)
        if (window[((size_t)(t / a->s.window_width) * a->s.in_width + t % a->s.window_width) *
                   a->s.channels] == largest)
            return 0;
    return 1;
}

typedef pool_args give_to_largest_args;

SL_SHARED void give_to_largest(const give_to_largest_args *a, size_t i) {
    const sliding s = a->s;
    const uint32_t c = (uint32_t)i % s.channels, pixel = (uint32_t)i / s.channels,
                   x = pixel % s.in_width, y = pixel / s.in_width % s.in_height;
    const uint32_t row = pixel / (s.in_width * s.in_height);
    const cover down = cover_of(y, s.window_height, s.stride, 0, s.out_height),
                right = cover_of(x, s.window_width, s.stride, 0, s.out_width);
    float sum = 0;
    for (uint32_t p = down.first; p < down.end; p++)
        for (uint32_t q = right.first; q < right.end; q++) {
            const size_t out =
                ((size_t)(row * s.out_height + p) * s.out_width + q) * s.channels + c;
            const uint32_t at = (y - p * s.stride) * s.window_width + x - q * s.stride;
            if (a->x[i] == a->y[out] &&
                is_first_largest(a, window_of(a, (uint32_t)out), at, a->y[out]))
                sum += a->d_out[out];
        }
    a->d_in[i] = a->add ? a->d_in[i] + sum : sum;
}

typedef pool_args give_to_all_args;

SL_SHARED void give_to_all(const give_to_all_args *a, size_t i) {
    const sliding s = a->s;
    const uint32_t c = (uint32_t)i % s.channels, pixel = (uint32_t)i / s.channels,
                   x = pixel % s.in_width, y = pixel / s.in_width % s.in_height;
    const uint32_t row = pixel / (s.in_width * s.in_height);
    const cover down = cover_of(y, s.window_height, s.stride, 0, s.out_height),
                right = cover_of(x, s.window_width, s.stride, 0, s.out_width);
    const float share = 1.0f / ((float)s.window_height * (float)s.window_width);
    float sum = 0;
    for (uint32_t p = down.first; p < down.end; p++)
        for (uint32_t q = right.first; q < right.end; q++)
            sum += a->d_out[((size_t)(row * s.out_height + p) * s.out_width + q) * s.channels + c] *
                   share;
    a->d_in[i] = a->add ? a->d_in[i] + sum : sum;
}

/* ---- batch normalisation; the formulas stand in learner/batch_norm.c ---- */

#define BATCH_NORM_EPSILON 1e-5

/* Two sums over the rows of each column, in one launch. A block has up to BLOCK_THREADS columns,
 * and of each some slices of SLICE rows, one a line of threads; it adds up its slices. The block
 * that ends last adds up what all have. The order of a sum follows from the shapes. */
typedef struct columns_of {
    uint32_t rows, columns;
    double *groups; /* (groups, 2, columns) */
    uint32_t *came; /* 0 before and after a launch */
} columns_of;

typedef struct columns_memory {
    double sums[2][BLOCK_THREADS];
    uint32_t is_last;
} columns_memory;

typedef struct columns_plan {
    uint32_t width, lines, chunks, groups; /* chunks of `width` columns, groups of `lines` slices */
} columns_plan;

SL_SHARED columns_plan columns_plan_of(uint32_t rows, uint32_t columns) {
    columns_plan p;
    p.width = least(columns, BLOCK_THREADS);
    p.lines = BLOCK_THREADS / p.width;
    p.chunks = (columns + p.width - 1) / p.width;
    p.groups = ((rows + SLICE - 1) / SLICE + p.lines - 1) / p.lines;
    return p;
}

/* What a thread sums: rows [from, end), none if they are equal, of a column. */
typedef struct columns_share {
    uint32_t column, from, end;
} columns_share;

SL_SHARED columns_share columns_share_of(const columns_of *c, block_place at) {
    const columns_plan p = columns_plan_of(c->rows, c->columns);
    const uint32_t line = at.thread / p.width, slice = at.block / p.chunks * p.lines + line;
    columns_share s;
    s.column = at.block % p.chunks * p.width + at.thread % p.width;
    s.from = line < p.lines && s.column < c->columns ? least(c->rows, slice * SLICE) : c->rows;
    s.end = least(c->rows, s.from + SLICE);
    return s;
}

/* The sums of the block's lines, for a thread of the first line. */
SL_SHARED double columns_lines(const columns_memory *m, const columns_plan *p, block_place at,
                               int which) {
    double sum = 0;
    for (uint32_t l = 0; l < p->lines; l++)
        sum += m->sums[which][l * p->width + at.thread];
    return sum;
}

/* Groups first, first + step, ... of a column. */
SL_SHARED double columns_groups(const columns_of *c, const columns_plan *p, uint32_t column,
                                int which, uint32_t first, uint32_t step) {
    double sum = 0;
    SL_UNROLL(8)
    for (uint32_t g = first; g < p->groups; g += step)
        sum += block_read(&c->groups[((size_t)g * 2 + (uint32_t)which) * c->columns + column]);
    return sum;
}

/* The phases between a kernel's first, in which each thread writes its sums, and its last. */
enum { COLUMNS_LAST = 4 };
SL_SHARED void columns_fold(const columns_of *c, columns_memory *m, block_place at,
                            uint32_t phase) {
    const columns_plan p = columns_plan_of(c->rows, c->columns);
    const columns_share s = columns_share_of(c, at);
    if (phase == 1 && at.thread < p.width && s.column < c->columns) {
        for (int which = 0; which < 2; which++)
            c->groups[((size_t)(at.block / p.chunks) * 2 + (uint32_t)which) * c->columns +
                      s.column] = columns_lines(m, &p, at, which);
        block_publish();
    } else if (phase == 2 && at.thread == 0) {
        m->is_last = block_number(c->came) == at.blocks - 1;
    } else if (phase == 3 && m->is_last && p.chunks == 1 && at.thread < p.lines * p.width) {
        for (int which = 0; which < 2; which++)
            m->sums[which][at.thread] =
                columns_groups(c, &p, s.column, which, at.thread / p.width, p.lines);
    }
}

/* In the last phase: does this thread settle columns? It has at.thread and every width-th. */
SL_SHARED int columns_settles(const columns_of *c, const columns_memory *m, block_place at) {
    if (m->is_last && at.thread == 0)
        *c->came = 0;
    return m->is_last && at.thread < columns_plan_of(c->rows, c->columns).width;
}

SL_SHARED double columns_total(const columns_of *c, const columns_memory *m, block_place at,
                               uint32_t column, int which) {
    const columns_plan p = columns_plan_of(c->rows, c->columns);
    return p.chunks == 1 ? columns_lines(m, &p, at, which)
                         : columns_groups(c, &p, column, which, 0, 1);
}

/* The mean of each channel and 1/sqrt(variance + epsilon), from sums of x - x[0, k] and of its
 * square: subtracting the first element keeps the variance accurate if the mean is far from 0. */
typedef struct find_moments_args {
    const float *x; /* (positions, channels) */
    columns_of c;
    float *saved; /* (2, channels) */
    double *kept; /* number of batches, sums of m_b and of v_b + m_b^2; NULL: not collected */
} find_moments_args;
typedef columns_memory find_moments_memory;

SL_SHARED void sum_moments(const find_moments_args *a, columns_memory *m, block_place at) {
    const columns_share s = columns_share_of(&a->c, at);
    const size_t channels = a->c.columns;
    const float zero = s.from < s.end ? a->x[s.column] : 0;
    float sum = 0, square = 0;
    SL_UNROLL(16)
    for (uint32_t p = s.from; p < s.end; p++) {
        const float v = a->x[p * channels + s.column] - zero;
        sum += v;
        square += v * v;
    }
    m->sums[0][at.thread] = (double)sum;
    m->sums[1][at.thread] = (double)square;
}

SL_SHARED void settle_moments(const find_moments_args *a, uint32_t i, double sum, double square) {
    const uint32_t channels = a->c.columns;
    const double offset = sum / a->c.rows, mean = a->x[i] + offset,
                 spread = square / a->c.rows - offset * offset;
    const double variance = spread < 0 ? 0 : spread;
    a->saved[i] = (float)mean;
    a->saved[channels + i] = (float)(1 / sqrt(variance + BATCH_NORM_EPSILON));
    if (a->kept == NULL)
        return;
    if (i == 0)
        a->kept[0] += 1;
    a->kept[1 + i] += mean;
    a->kept[1 + channels + i] += variance + mean * mean;
}

enum { find_moments_PHASES = COLUMNS_LAST + 1 };
SL_SHARED void find_moments(const find_moments_args *a, find_moments_memory *m, block_place at,
                            uint32_t phase) {
    if (phase == 0)
        sum_moments(a, m, at);
    else if (phase < COLUMNS_LAST)
        columns_fold(&a->c, m, at, phase);
    else if (columns_settles(&a->c, m, at))
        for (uint32_t i = at.thread; i < a->c.columns; i += BLOCK_THREADS)
            settle_moments(a, i, columns_total(&a->c, m, at, i, 0),
                           columns_total(&a->c, m, at, i, 1));
}

/* The same for channel i over all collected batches. */
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

/* The layout of a shortcut. It may have fewer channels, and `stride` times the output's height and
 * width. */
typedef struct detour {
    uint32_t height, width;                             /* of the output */
    uint32_t from_height, from_width, channels, stride; /* of the shortcut */
} detour;

/* The offset of output position p, channel 0. */
SL_SHARED size_t detour_of(const detour *d, uint32_t p) {
    const uint32_t column = p % d->width, line = p / d->width % d->height,
                   row = p / (d->width * d->height);
    return ((size_t)(row * d->from_height + line * d->stride) * d->from_width +
            (size_t)column * d->stride) *
           d->channels;
}

/* y = relu?(s (x - m) / sqrt(v + epsilon) + t + shortcut?), of `span` channels. */
typedef struct normalise_args {
    const float *x, *scale, *shift, *saved, *shortcut; /* shortcut: or NULL */
    float *y;
    uint32_t channels, span; /* span: 4 only if it divides the shortcut's channels too */
    detour from;
    int relu;
} normalise_args;

SL_SHARED void normalise(const normalise_args *a, size_t i) {
    const uint32_t spans = a->channels / a->span, k = (uint32_t)i % spans * a->span;
    const int has_shortcut = a->shortcut != NULL && k < a->from.channels;
    four v = read_span(a->x + i * a->span, a->span), more = {{0, 0, 0, 0}};
    if (has_shortcut)
        more = read_span(a->shortcut + detour_of(&a->from, (uint32_t)i / spans) + k, a->span);
    SL_UNROLL(4)
    for (uint32_t e = 0; e < FOUR; e++) {
        const uint32_t channel = e < a->span ? k + e : k;
        const float factor =
            read_one(a->scale + channel) * read_one(a->saved + a->channels + channel);
        v.v[e] = factor * v.v[e] +
                 (read_one(a->shift + channel) - factor * read_one(a->saved + channel));
        if (has_shortcut)
            v.v[e] += more.v[e];
        if (a->relu)
            v.v[e] = rectified(v.v[e]);
    }
    write_span(a->y + i * a->span, v, a->span);
}

/* Sets d to 0 where y <= 0 and adds it to the shortcut. From sums of d (x - m) and of d, each
 * channel's gradients, and the factors of dx = a d + b x + e. */
typedef struct take_normalised_args {
    const float *x, *y, *saved, *scale; /* y: NULL without relu */
    float *d, *d_shortcut;
    columns_of c;
    float *g;       /* (2, channels) */
    float *factors; /* (3, channels) */
    detour from;
    int add_shortcut;
} take_normalised_args;
typedef columns_memory take_normalised_memory;

SL_SHARED void sum_normalised(const take_normalised_args *a, columns_memory *m, block_place at) {
    const columns_share s = columns_share_of(&a->c, at);
    const uint32_t channels = a->c.columns, k = s.column;
    const float mean = s.from < s.end ? a->saved[k] : 0;
    float sum = 0, product = 0;
    for (uint32_t first = s.from; first < s.end; first += BATCH) {
        float d[BATCH], x[BATCH];
        SL_UNROLL(8)
        for (uint32_t b = 0; b < BATCH; b++) {
            const size_t place = (size_t)least(first + b, s.end - 1) * channels + k;
            d[b] = a->y == NULL || read_one(a->y + place) > 0 ? a->d[place] : 0;
            x[b] = read_one(a->x + place);
        }
        SL_UNROLL(8)
        for (uint32_t b = 0; b < BATCH; b++) {
            const uint32_t p = first + b;
            if (p >= s.end)
                continue;
            if (a->y != NULL)
                a->d[(size_t)p * channels + k] = d[b];
            if (a->d_shortcut != NULL && k < a->from.channels) {
                float *to = a->d_shortcut + detour_of(&a->from, p) + k;
                *to = a->add_shortcut ? *to + d[b] : d[b];
            }
            sum += d[b];
            product += d[b] * (x[b] - mean);
        }
    }
    m->sums[0][at.thread] = (double)product;
    m->sums[1][at.thread] = (double)sum;
}

SL_SHARED void settle_factors(const take_normalised_args *a, uint32_t i, double product,
                              double sum) {
    const uint32_t channels = a->c.columns, positions = a->c.rows;
    const float inverse = a->saved[channels + i], slope = a->scale[i] * inverse,
                by_scale = (float)(product * inverse), by_shift = (float)sum;
    const float by_x = (float)(-(double)slope * inverse * by_scale / positions);
    a->g[i] = by_scale;
    a->g[channels + i] = by_shift;
    a->factors[i] = slope;
    a->factors[channels + i] = by_x;
    a->factors[2 * channels + i] =
        (float)(-(double)slope * by_shift / positions) - by_x * a->saved[i];
}

enum { take_normalised_PHASES = COLUMNS_LAST + 1 };
SL_SHARED void take_normalised(const take_normalised_args *a, take_normalised_memory *m,
                               block_place at, uint32_t phase) {
    if (phase == 0)
        sum_normalised(a, m, at);
    else if (phase < COLUMNS_LAST)
        columns_fold(&a->c, m, at, phase);
    else if (columns_settles(&a->c, m, at))
        for (uint32_t i = at.thread; i < a->c.columns; i += BLOCK_THREADS)
            settle_factors(a, i, columns_total(&a->c, m, at, i, 0),
                           columns_total(&a->c, m, at, i, 1));
}

/* dx of `span` channels. */
typedef struct give_normalised_args {
    const float *x, *d, *factors;
    float *d_in;
    uint32_t channels, span;
    int add;
} give_normalised_args;

SL_SHARED void give_normalised(const give_normalised_args *a, size_t i) {
    const uint32_t k = (uint32_t)i % (a->channels / a->span) * a->span;
    float *to = a->d_in + i * a->span;
    const four x = read_span(a->x + i * a->span, a->span),
               d = read_span(a->d + i * a->span, a->span);
    four v = {{0, 0, 0, 0}};
    SL_UNROLL(4)
    for (uint32_t e = 0; e < FOUR; e++) {
        const float *factors = a->factors + (e < a->span ? k + e : k);
        v.v[e] = read_one(factors) * d.v[e] + (read_one(factors + a->channels) * x.v[e] +
                                               read_one(factors + 2 * (size_t)a->channels));
        if (a->add && e < a->span)
            v.v[e] = to[e] + v.v[e];
    }
    write_span(to, v, a->span);
}

/* By hand: clang-format moves a name to the next line each time that it runs. */
/* clang-format off */
#define SL_IMAGE_KERNELS(X)                                                                        \
    X(pool_largest) X(pool_mean) X(give_to_largest) X(give_to_all)                                 \
    X(recall_moments) X(normalise) X(give_normalised)
#define SL_IMAGE_BLOCK_KERNELS(X) X(find_moments) X(take_normalised)
/* clang-format on */

#endif
