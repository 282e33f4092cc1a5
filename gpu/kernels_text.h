/* kernels_text.h - kernels of embedding, LSTM, layer normalization, attention and GELU. See
 * layer_kernels.h; src/learner/layers has the formulas. */
#ifndef SL_KERNELS_TEXT_H
#define SL_KERNELS_TEXT_H

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

/* ---- LSTM: thread (row, k) of one step ---- */

typedef struct lstm_args {
    float *gates;       /* (rows, steps, 4, n) */
    float *cells;       /* (rows, steps, n) */
    float *before;      /* (rows, steps, n) h of the step before */
    float *h;           /* (rows, steps, n); backward: d loss / d h from above */
    const float *b;     /* (4, n) */
    const float *state; /* backward: (rows, n) the next step's contribution to dh */
    float *carry;       /* backward: (rows, n) the next step's dc times its f */
    uint32_t steps, n, t;
} lstm_args;

SL_SHARED float logistic(float v) {
    return 1.0f / (1.0f + expf(-v));
}

typedef lstm_args lstm_advance_args;

SL_SHARED void lstm_advance(const lstm_advance_args *a, size_t i) {
    const uint32_t n = a->n, k = (uint32_t)i % n;
    const size_t position = (size_t)((uint32_t)i / n) * a->steps + a->t, at = position * n + k;
    float *gates = a->gates + 4 * position * n + k;
    const float in = logistic(gates[0] + a->b[k]), forget = logistic(gates[n] + a->b[n + k]);
    const float g = tanhf(gates[2 * (size_t)n] + a->b[2 * (size_t)n + k]),
                out = logistic(gates[3 * (size_t)n] + a->b[3 * (size_t)n + k]);
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

typedef lstm_args lstm_retreat_args;

SL_SHARED void lstm_retreat(const lstm_retreat_args *a, size_t i) {
    const uint32_t n = a->n, k = (uint32_t)i % n;
    const size_t position = (size_t)((uint32_t)i / n) * a->steps + a->t, at = position * n + k;
    const int is_last = a->t + 1 == a->steps;
    float *gates = a->gates + 4 * position * n + k;
    const float in = gates[0], forget = gates[n], g = gates[2 * (size_t)n],
                out = gates[3 * (size_t)n];
    const float m = tanhf(a->cells[at]), dh = a->h[at] + (is_last ? 0 : a->state[i]);
    const float dc = dh * out * (1 - m * m) + (is_last ? 0 : a->carry[i]);
    gates[0] = dc * g * in * (1 - in);
    gates[n] = a->t > 0 ? dc * a->cells[at - n] * forget * (1 - forget) : 0;
    gates[2 * (size_t)n] = dc * in * (1 - g * g);
    gates[3 * (size_t)n] = dh * m * out * (1 - out);
    a->carry[i] = dc * forget;
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

/* ---- attention: thread i has row t = i % positions of one head's matrix ---- */

/* Softmax of the first t + 1 elements of p; the others become 0. */
typedef struct softmax_rows_args {
    float *p;
    uint32_t positions;
} softmax_rows_args;

SL_SHARED void softmax_rows(const softmax_rows_args *a, size_t i) {
    float *p = a->p + i * a->positions;
    const uint32_t t = (uint32_t)(i % a->positions);
    float top = p[0], sum = 0;
    for (uint32_t s = 1; s <= t; s++)
        top = p[s] > top ? p[s] : top;
    for (uint32_t s = 0; s <= t; s++)
        sum += p[s] = expf(p[s] - top);
    const float inverse = 1 / sum;
    for (uint32_t s = 0; s < a->positions; s++)
        p[s] = s <= t ? p[s] * inverse : 0;
}

/* dp = p (dp - sum of p dp) scale. */
typedef struct softmax_gradient_args {
    float *dp;
    const float *p;
    float scale;
    uint32_t positions;
} softmax_gradient_args;

SL_SHARED void softmax_gradient(const softmax_gradient_args *a, size_t i) {
    const float *p = a->p + i * a->positions;
    float *dp = a->dp + i * a->positions, sum = 0;
    const uint32_t t = (uint32_t)(i % a->positions);
    for (uint32_t s = 0; s <= t; s++)
        sum += p[s] * dp[s];
    for (uint32_t s = 0; s < a->positions; s++)
        dp[s] = s <= t ? p[s] * (dp[s] - sum) * a->scale : 0;
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
    X(embed) X(gather_codes) X(gather_positions) X(lstm_advance) X(lstm_retreat)                   \
    X(position_lanes) X(position_moments) X(normalise_positions) X(position_products)              \
    X(position_means) X(give_positions) X(take_positions) X(softmax_rows) X(softmax_gradient)      \
    X(gelu_value) X(gelu_slope)
/* clang-format on */

#endif
