/* kernels_dense.h - kernels that most layers use (sums over rows, bias, ReLU, shortcuts), and the
 * loss. See layer_kernels.h. */
#ifndef SL_KERNELS_DENSE_H
#define SL_KERNELS_DENSE_H

#include <math.h>

#include "gpu/kernels.h"

enum {
    SLICE = 64,
    BATCH = 8 /* rows that a thread loads before it stores one */
};

SL_SHARED uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* max(0, v). Keeps NaN, so that divergence shows. */
SL_SHARED float rectified(float v) {
    return v < 0 ? 0 : v;
}

/* Thread (g, k) sums rows [SLICE g, SLICE (g + 1)) of column k. */
typedef struct add_rows_args {
    const double *in; /* (rows, columns) */
    double *out;      /* (ceil(rows / SLICE), columns) */
    float *rounded;   /* the same in single precision, or NULL */
    uint32_t rows, columns;
} add_rows_args;

SL_SHARED void add_rows(const add_rows_args *a, size_t i) {
    const uint32_t columns = a->columns, g = (uint32_t)i / columns, k = (uint32_t)i % columns,
                   end = least(a->rows, (g + 1) * SLICE);
    double sum = 0;
    SL_UNROLL(16)
    for (uint32_t row = g * SLICE; row < end; row++)
        sum += a->in[(size_t)row * columns + k];
    a->out[i] = sum;
    if (a->rounded != NULL)
        a->rounded[i] = (float)sum;
}

/* Element i of the sum of `count` products of `size` elements. */
typedef struct add_products_args {
    const float *in; /* (count, size) */
    float *out;
    uint32_t count, size;
} add_products_args;

SL_SHARED void add_products(const add_products_args *a, size_t i) {
    double sum = 0;
    SL_UNROLL(8)
    for (uint32_t p = 0; p < a->count; p++)
        sum += (double)a->in[(size_t)p * a->size + i];
    a->out[i] = (float)sum;
}

/* y = relu?(y + shortcut? + bias?), elementwise. */
typedef struct finish_rows_args {
    float *y;
    const float *shortcut, *bias; /* or NULL; bias (columns) */
    uint32_t columns;
    int relu;
} finish_rows_args;

SL_SHARED void finish_rows(const finish_rows_args *a, size_t i) {
    float v = a->y[i];
    if (a->shortcut != NULL)
        v += a->shortcut[i];
    if (a->bias != NULL)
        v += a->bias[(uint32_t)i % a->columns];
    a->y[i] = a->relu ? rectified(v) : v;
}

/* Sets d to 0 where y <= 0, adds it to the shortcut, and sums it: thread (g, k) sums a slice of
 * column k. */
typedef struct take_rows_args {
    float *d;          /* (rows, columns) */
    const float *y;    /* NULL: no relu */
    float *d_shortcut; /* or NULL */
    int add_shortcut;
    double *sums; /* (ceil(rows / SLICE), columns), or NULL */
    uint32_t rows, columns;
} take_rows_args;

SL_SHARED void take_rows(const take_rows_args *a, size_t i) {
    const uint32_t columns = a->columns, g = (uint32_t)i / columns, k = (uint32_t)i % columns,
                   end = least(a->rows, (g + 1) * SLICE);
    float sum = 0;
    for (uint32_t first = g * SLICE; first < end; first += BATCH) {
        float d[BATCH];
        SL_UNROLL(8)
        for (uint32_t b = 0; b < BATCH; b++) {
            const size_t at = (size_t)least(first + b, end - 1) * columns + k;
            d[b] = a->y == NULL || read_one(a->y + at) > 0 ? a->d[at] : 0;
        }
        SL_UNROLL(8)
        for (uint32_t b = 0; b < BATCH; b++) {
            const size_t at = (size_t)(first + b) * columns + k;
            if (first + b >= end)
                continue;
            if (a->y != NULL)
                a->d[at] = d[b];
            if (a->d_shortcut != NULL)
                a->d_shortcut[at] = a->add_shortcut ? a->d_shortcut[at] + d[b] : d[b];
            sum += d[b];
        }
    }
    if (a->sums != NULL)
        a->sums[i] = (double)sum;
}

/* Softmax and cross-entropy of row i: the loss, and whether the largest output is the label's.
 * Never overflows. */
typedef struct find_loss_args {
    float *z; /* (rows, classes); overwritten by (softmax - onehot) / rows if `gradient` */
    const uint16_t *labels;
    double *found; /* (rows, 2) */
    uint32_t rows, classes;
    int gradient;
} find_loss_args;

SL_SHARED void find_loss(const find_loss_args *a, size_t i) {
    float *z = a->z + i * a->classes;
    const uint32_t label = a->labels[i];
    uint32_t best = 0;
    for (uint32_t k = 1; k < a->classes; k++)
        best = z[k] > z[best] ? k : best;
    const float top = z[best], at_label = z[label];
    float sum = 0;
    for (uint32_t k = 0; k < a->classes; k++)
        sum += expf(z[k] - top);
    a->found[2 * i] = log((double)sum) - ((double)at_label - (double)top);
    a->found[2 * i + 1] = best == label;
    if (!a->gradient)
        return;
    const float scale = 1.0f / (sum * (float)a->rows);
    for (uint32_t k = 0; k < a->classes; k++)
        z[k] = expf(z[k] - top) * scale - (k == label ? 1.0f / (float)a->rows : 0);
}

/* By hand: clang-format moves a name to the next line each time that it runs. */
/* clang-format off */
#define SL_DENSE_KERNELS(X)                                                                        \
    X(add_rows) X(add_products) X(finish_rows) X(take_rows) X(find_loss)
/* clang-format on */

#endif
