/* kernels_text.h - kernels of embedding, LSTM, layer normalization, attention and GELU. See
 * layer_kernels.h; src/learner/layers has the formulas. */
#ifndef SL_KERNELS_TEXT_H
#define SL_KERNELS_TEXT_H

#include "gpu/block.h"
#include "gpu/kernels_dense.h"

enum {
    CODE_SLICE = 256,  /* positions in which one thread looks for a code */
    POSITION_LANES = 8 /* threads that share a position's channels */
};

/* ---- embedding ---- */

typedef struct embed_args {
    const float *x, *vectors, *places; /* places: (width, channels) or NULL */
    float *y;
    uint32_t width, channels;
} embed_args;

SL_SHARED void embed(const embed_args *a, size_t i) {
    const uint32_t k = (uint32_t)i % a->channels, position = (uint32_t)i / a->channels;
    const float v = a->vectors[(size_t)a->x[position] * a->channels + k];
    a->y[i] = a->places != NULL ? v + a->places[position % a->width * a->channels + k] : v;
}

/* Thread (g, s, k) sums channel k of d over the positions with code s among CODE_SLICE positions.
 */
typedef struct gather_codes_args {
    const float *x, *d;
    double *sums; /* (ceil(positions / CODE_SLICE), symbols, channels) */
    uint32_t positions, symbols, channels;
} gather_codes_args;

SL_SHARED void gather_codes(const gather_codes_args *a, size_t i) {
    const uint32_t k = (uint32_t)i % a->channels, s = (uint32_t)i / a->channels % a->symbols,
                   g = (uint32_t)i / (a->channels * a->symbols);
    const uint32_t end = least(a->positions, (g + 1) * CODE_SLICE);
    float sum = 0;
    for (uint32_t p = g * CODE_SLICE; p < end; p++)
        if ((uint32_t)a->x[p] == s)
            sum += a->d[(size_t)p * a->channels + k];
    a->sums[i] = (double)sum;
}

/* Thread (t, k) sums channel k of d at position t over all rows. */
typedef struct gather_positions_args {
    const float *d;
    float *g;
    uint32_t rows, size; /* size: width * channels */
} gather_positions_args;

SL_SHARED void gather_positions(const gather_positions_args *a, size_t i) {
    double sum = 0;
    SL_UNROLL(16)
    for (uint32_t row = 0; row < a->rows; row++)
        sum += (double)a->d[(size_t)row * a->size + i];
    a->g[i] = (float)sum;
}

/* ---- LSTM: one launch a step ----
 *
 * A block has LSTM_ROWS rows and LSTM_UNITS units. First thread (q, unit) multiplies gate q's
 * columns by all rows, so that a warp reads a row of the matrix together; then thread (row, unit)
 * has the sums of four gates and advances the state. One thread adds a product's terms, in order.
 */

enum { GATES = 4, LSTM_ROWS = 4, LSTM_UNITS = BLOCK_THREADS / GATES };

typedef struct lstm_args {
    float *gates;   /* (rows, steps, 4, n) */
    float *cells;   /* (rows, steps, n) */
    float *before;  /* (rows, steps, n) h of the step before */
    float *h;       /* (rows, steps, n); backward: d loss / d h from above */
    const float *u; /* (n, 4, n); backward: turned (4, n, n) */
    const float *b; /* (4, n) */
    float *carry;   /* backward: (rows, n) the next step's dc times its f */
    uint32_t rows, steps, n, t;
} lstm_args;

typedef struct lstm_products {
    float sums[LSTM_ROWS][GATES][LSTM_UNITS];
} lstm_products;

SL_SHARED uint32_t lstm_blocks(uint32_t rows, uint32_t n) {
    return (rows + LSTM_ROWS - 1) / LSTM_ROWS * ((n + LSTM_UNITS - 1) / LSTM_UNITS);
}

/* The block's first row and unit. */
SL_SHARED uint32_t lstm_row(const lstm_args *a, block_place at) {
    return at.block / ((a->n + LSTM_UNITS - 1) / LSTM_UNITS) * LSTM_ROWS;
}
SL_SHARED uint32_t lstm_unit(const lstm_args *a, block_place at) {
    return at.block % ((a->n + LSTM_UNITS - 1) / LSTM_UNITS) * LSTM_UNITS;
}

/* n elements of each row, from v + row * step on, by a column of a matrix. */
SL_SHARED void lstm_multiply(const lstm_args *a, lstm_products *m, block_place at, const float *v,
                             size_t step, const float *column, size_t line) {
    const uint32_t first = lstm_row(a, at), gate = at.thread / LSTM_UNITS,
                   unit = at.thread % LSTM_UNITS;
    const float *rows[LSTM_ROWS];
    float sums[LSTM_ROWS] = {0, 0, 0, 0};
    SL_UNROLL(4)
    for (uint32_t r = 0; r < LSTM_ROWS; r++)
        rows[r] = v + least(first + r, a->rows - 1) * step;
    SL_UNROLL(4)
    for (uint32_t j = 0; j < a->n; j++) {
        const float factor = read_one(column + j * line);
        SL_UNROLL(4)
        for (uint32_t r = 0; r < LSTM_ROWS; r++)
            sums[r] += factor * read_one(rows[r] + j);
    }
    SL_UNROLL(4)
    for (uint32_t r = 0; r < LSTM_ROWS; r++)
        m->sums[r][gate][unit] = sums[r];
}

SL_SHARED float logistic(float v) {
    return 1.0f / (1.0f + expf(-v));
}

/* Of one row and unit: sums (4 gates, LSTM_UNITS) of U h. */
SL_SHARED void lstm_forward_unit(const lstm_args *a, uint32_t row, uint32_t k, const float *sums) {
    const uint32_t n = a->n;
    const size_t position = (size_t)row * a->steps + a->t, at = position * n + k;
    float *gates = a->gates + GATES * position * n + k, z[GATES];
    SL_UNROLL(4)
    for (uint32_t q = 0; q < GATES; q++)
        z[q] =
            gates[q * (size_t)n] + (a->t > 0 ? sums[q * LSTM_UNITS] : 0) + a->b[q * (size_t)n + k];
    const float in = logistic(z[0]), forget = logistic(z[1]), g = tanhf(z[2]), out = logistic(z[3]);
    const float cell = in * g + (a->t > 0 ? forget * a->cells[at - n] : 0), h = out * tanhf(cell);
    gates[0] = in;
    gates[n] = forget;
    gates[2 * (size_t)n] = g;
    gates[3 * (size_t)n] = out;
    a->cells[at] = cell;
    a->h[at] = h;
    if (a->t == 0)
        a->before[at] = 0;
    if (a->t + 1 < a->steps)
        a->before[at + n] = h;
}

typedef lstm_args lstm_advance_args;
typedef lstm_products lstm_advance_memory;
enum { lstm_advance_PHASES = 2 };

SL_SHARED void lstm_advance(const lstm_advance_args *a, lstm_advance_memory *m, block_place at,
                            uint32_t phase) {
    const uint32_t major = at.thread / LSTM_UNITS, unit = at.thread % LSTM_UNITS,
                   row = lstm_row(a, at) + major, k = lstm_unit(a, at) + unit;
    const size_t n = a->n;
    if (k >= a->n)
        return;
    if (phase == 0 && a->t > 0)
        lstm_multiply(a, m, at, a->h + (a->t - 1) * n, a->steps * n, a->u + major * n + k,
                      GATES * n);
    else if (phase == 1 && row < a->rows)
        lstm_forward_unit(a, row, k, &m->sums[major][0][unit]);
}

/* sums: of the gates' gradients in the next step by U. */
SL_SHARED void lstm_backward_unit(const lstm_args *a, uint32_t row, uint32_t k, const float *sums) {
    const uint32_t n = a->n;
    const size_t position = (size_t)row * a->steps + a->t, at = position * n + k;
    float *gates = a->gates + GATES * position * n + k, *carry = a->carry + (size_t)row * n + k;
    const int is_last = a->t + 1 == a->steps;
    const float in = gates[0], forget = gates[n], g = gates[2 * (size_t)n],
                out = gates[3 * (size_t)n];
    float dh = 0;
    SL_UNROLL(4)
    for (uint32_t q = 0; q < GATES && !is_last; q++)
        dh += sums[q * LSTM_UNITS];
    dh += a->h[at];
    const float m = tanhf(a->cells[at]), dc = dh * out * (1 - m * m) + (is_last ? 0 : *carry);
    gates[0] = dc * g * in * (1 - in);
    gates[n] = a->t > 0 ? dc * a->cells[at - n] * forget * (1 - forget) : 0;
    gates[2 * (size_t)n] = dc * in * (1 - g * g);
    gates[3 * (size_t)n] = dh * m * out * (1 - out);
    *carry = dc * forget;
}

typedef lstm_args lstm_retreat_args;
typedef lstm_products lstm_retreat_memory;
enum { lstm_retreat_PHASES = 2 };

SL_SHARED void lstm_retreat(const lstm_retreat_args *a, lstm_retreat_memory *m, block_place at,
                            uint32_t phase) {
    const uint32_t major = at.thread / LSTM_UNITS, unit = at.thread % LSTM_UNITS,
                   row = lstm_row(a, at) + major, k = lstm_unit(a, at) + unit;
    const size_t n = a->n, after = ((size_t)(a->t + 1) * GATES + major) * n;
    if (k >= a->n)
        return;
    if (phase == 0 && a->t + 1 < a->steps)
        lstm_multiply(a, m, at, a->gates + after, GATES * a->steps * n, a->u + major * n * n + k,
                      n);
    else if (phase == 1 && row < a->rows)
        lstm_backward_unit(a, row, k, &m->sums[major][0][unit]);
}

/* Element i of the transpose (columns, lines). */
typedef struct transpose_args {
    const float *from; /* (lines, columns) */
    float *to;
    uint32_t lines, columns;
} transpose_args;

SL_SHARED void transpose(const transpose_args *a, size_t i) {
    const uint32_t column = (uint32_t)i / a->lines, line = (uint32_t)i % a->lines;
    a->to[i] = a->from[(size_t)line * a->columns + column];
}

/* ---- layer normalisation: threads (position, lane), then (position) ---- */

#define LAYER_NORM_EPSILON 1e-5

typedef struct position_args {
    const float *x, *d, *scale, *shift;
    float *y;      /* backward: d_in */
    float *saved;  /* (positions, 2) mean, 1/sqrt(variance + epsilon) */
    float *means;  /* (positions, 2) backward: of e, and of e u */
    double *lanes; /* (positions, POSITION_LANES, 2) */
    double *sums;  /* (ceil(positions / SLICE), 2, n) of d u, and of d */
    uint32_t positions, n;
    int add;
} position_args;

/* Sums of x - x_0 and of its square. */
typedef position_args position_lanes_args;

SL_SHARED void position_lanes(const position_lanes_args *a, size_t i) {
    const float *x = a->x + i / POSITION_LANES * a->n;
    double sum = 0, square = 0;
    for (uint32_t k = (uint32_t)(i % POSITION_LANES); k < a->n; k += POSITION_LANES) {
        const double v = (double)x[k] - (double)x[0];
        sum += v;
        square += v * v;
    }
    a->lanes[2 * i] = sum;
    a->lanes[2 * i + 1] = square;
}

SL_SHARED double lane_total(const double *lanes, int which) {
    double sum = 0;
    for (int l = 0; l < POSITION_LANES; l++)
        sum += lanes[2 * l + which];
    return sum;
}

typedef position_args position_moments_args;

SL_SHARED void position_moments(const position_moments_args *a, size_t i) {
    const double *lanes = a->lanes + 2 * POSITION_LANES * i;
    const double offset = lane_total(lanes, 0) / a->n,
                 spread = lane_total(lanes, 1) / a->n - offset * offset;
    a->saved[2 * i] = (float)(a->x[i * a->n] + offset);
    a->saved[2 * i + 1] = (float)(1 / sqrt((spread < 0 ? 0 : spread) + LAYER_NORM_EPSILON));
}

typedef position_args normalise_positions_args;

SL_SHARED void normalise_positions(const normalise_positions_args *a, size_t i) {
    const uint32_t k = (uint32_t)i % a->n, p = (uint32_t)i / a->n;
    a->y[i] = (a->x[i] - a->saved[2 * (size_t)p]) * a->saved[2 * (size_t)p + 1] * a->scale[k] +
              a->shift[k];
}

/* Sums of e = d s and of e u. */
typedef position_args position_products_args;

SL_SHARED void position_products(const position_products_args *a, size_t i) {
    const size_t p = i / POSITION_LANES;
    const float *x = a->x + p * a->n, *d = a->d + p * a->n, mean = a->saved[2 * p],
                inverse = a->saved[2 * p + 1];
    double sum = 0, product = 0;
    for (uint32_t k = (uint32_t)(i % POSITION_LANES); k < a->n; k += POSITION_LANES) {
        const float e = d[k] * a->scale[k];
        sum += (double)e;
        product += (double)e * (double)((x[k] - mean) * inverse);
    }
    a->lanes[2 * i] = sum;
    a->lanes[2 * i + 1] = product;
}

typedef position_args position_means_args;

SL_SHARED void position_means(const position_means_args *a, size_t i) {
    const double *lanes = a->lanes + 2 * POSITION_LANES * i;
    a->means[2 * i] = (float)(lane_total(lanes, 0) / a->n);
    a->means[2 * i + 1] = (float)(lane_total(lanes, 1) / a->n);
}

typedef position_args give_positions_args;

SL_SHARED void give_positions(const give_positions_args *a, size_t i) {
    const uint32_t k = (uint32_t)i % a->n;
    const size_t p = 2 * (size_t)((uint32_t)i / a->n);
    const float inverse = a->saved[p + 1], u = (a->x[i] - a->saved[p]) * inverse;
    const float v = (a->d[i] * a->scale[k] - a->means[p] - u * a->means[p + 1]) * inverse;
    a->y[i] = a->add ? a->y[i] + v : v;
}

/* Thread (g, k): sums of d u and of d over a slice of positions, channel k. */
typedef position_args take_positions_args;

SL_SHARED void take_positions(const take_positions_args *a, size_t i) {
    const uint32_t n = a->n, g = (uint32_t)i / n, k = (uint32_t)i % n,
                   end = least(a->positions, (g + 1) * SLICE);
    float sum = 0, product = 0;
    SL_UNROLL(8)
    for (uint32_t p = g * SLICE; p < end; p++) {
        const size_t at = (size_t)p * n + k;
        const float d = a->d[at];
        sum += d;
        product += d * ((a->x[at] - a->saved[2 * (size_t)p]) * a->saved[2 * (size_t)p + 1]);
    }
    a->sums[(size_t)g * 2 * n + k] = (double)product;
    a->sums[(size_t)g * 2 * n + n + k] = (double)sum;
}

/* ---- attention: row i of all heads' matrices is row t = i % positions of one ---- */

/* Softmax of the first t + 1 elements of p; the others become 0. */
typedef struct softmax_rows_args {
    float *p;
    size_t rows;
    uint32_t positions;
} softmax_rows_args;

typedef row_memory softmax_rows_memory;

enum { softmax_rows_PHASES = 3 };
SL_SHARED void softmax_rows(const softmax_rows_args *a, softmax_rows_memory *m, block_place at,
                            uint32_t phase) {
    const row_place r = row_at(at);
    const uint32_t count = (uint32_t)(r.row % a->positions) + 1;
    float *p = a->p + r.row * a->positions, sum = 0;
    if (r.row >= a->rows)
        return;
    switch (phase) {
    case 0:
        find_largest_of_row(m, r, p, count);
        break;
    case 1: {
        const float top = m->largest[largest_of_row(m, r)];
        for (uint32_t s = r.lane; s < count; s += ROW_LANES)
            sum += p[s] = expf(p[s] - top);
        m->sums[at.thread] = sum;
        break;
    }
    case 2: {
        const float inverse = 1 / sum_of_row(m, r);
        for (uint32_t s = r.lane; s < a->positions; s += ROW_LANES)
            p[s] = s < count ? p[s] * inverse : 0;
        break;
    }
    }
}

/* dp = p (dp - sum of p dp) scale. */
typedef struct softmax_gradient_args {
    float *dp;
    const float *p;
    float scale;
    size_t rows;
    uint32_t positions;
} softmax_gradient_args;

typedef row_memory softmax_gradient_memory;

enum { softmax_gradient_PHASES = 2 };
SL_SHARED void softmax_gradient(const softmax_gradient_args *a, softmax_gradient_memory *m,
                                block_place at, uint32_t phase) {
    const row_place r = row_at(at);
    const uint32_t count = (uint32_t)(r.row % a->positions) + 1;
    const float *p = a->p + r.row * a->positions;
    float *dp = a->dp + r.row * a->positions, sum = 0;
    if (r.row >= a->rows)
        return;
    if (phase == 0) {
        for (uint32_t s = r.lane; s < count; s += ROW_LANES)
            sum += p[s] * dp[s];
        m->sums[at.thread] = sum;
        return;
    }
    sum = sum_of_row(m, r);
    for (uint32_t s = r.lane; s < a->positions; s += ROW_LANES)
        dp[s] = s < count ? p[s] * (dp[s] - sum) * a->scale : 0;
}

/* ---- GELU ---- */

typedef struct gelu_args {
    const float *x, *d;
    float *y; /* backward: d_in */
    int add;
} gelu_args;

#define GELU_TWICE_ROOT 1.59576912f /* 2 sqrt(2/pi) */
#define GELU_CUBIC 0.044715f

typedef gelu_args gelu_value_args;

SL_SHARED void gelu_value(const gelu_value_args *a, size_t i) {
    const float x = a->x[i];
    a->y[i] = x * logistic(GELU_TWICE_ROOT * x * (1 + GELU_CUBIC * x * x));
}

typedef gelu_args gelu_slope_args;

SL_SHARED void gelu_slope(const gelu_slope_args *a, size_t i) {
    const float x = a->x[i], s = logistic(GELU_TWICE_ROOT * x * (1 + GELU_CUBIC * x * x));
    const float v =
        a->d[i] * (s + x * s * (1 - s) * GELU_TWICE_ROOT * (1 + 3 * GELU_CUBIC * x * x));
    a->y[i] = a->add ? a->y[i] + v : v;
}

/* By hand: clang-format moves a name to the next line each time that it runs. */
/* clang-format off */
#define SL_TEXT_KERNELS(X)                                                                         \
    X(embed) X(gather_codes) X(gather_positions) X(transpose)                                      \
    X(position_lanes) X(position_moments) X(normalise_positions) X(position_products)              \
    X(position_means) X(give_positions) X(take_positions) X(gelu_value) X(gelu_slope)
#define SL_TEXT_BLOCK_KERNELS(X) X(lstm_advance) X(lstm_retreat) X(softmax_rows) X(softmax_gradient)
/* clang-format on */

#endif
