/* kernels_dense.h - kernels that most layers use (sums over rows, bias, ReLU, shortcuts), and the
 * loss. See layer_kernels.h. */
#ifndef SL_KERNELS_DENSE_H
#define SL_KERNELS_DENSE_H

#include <math.h>

#include "gpu/block.h"
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

/* ---- rows of which a few threads of a block share each: neighbours read neighbours ---- */

enum { ROW_LANES = 8, BLOCK_ROWS = BLOCK_THREADS / ROW_LANES };

typedef struct row_place {
    size_t row;
    uint32_t lane, first; /* first: the thread of the row's lane 0 */
} row_place;

SL_SHARED row_place row_at(block_place at) {
    const uint32_t lane = at.thread % ROW_LANES;
    return (row_place){(size_t)at.block * BLOCK_ROWS + at.thread / ROW_LANES, lane,
                       at.thread - lane};
}

typedef struct row_memory {
    float largest[BLOCK_THREADS], sums[BLOCK_THREADS];
    uint32_t places[BLOCK_THREADS]; /* of the largest; the lowest of equal ones */
} row_memory;

/* The largest of the lane's share of z (count); every row has an element for lane 0. */
SL_SHARED void find_largest_of_row(row_memory *m, row_place r, const float *z, uint32_t count) {
    uint32_t best = r.lane < count ? r.lane : 0;
    for (uint32_t k = best + ROW_LANES; k < count; k += ROW_LANES)
        best = z[k] > z[best] ? k : best;
    m->largest[r.first + r.lane] = z[best];
    m->places[r.first + r.lane] = best;
}

/* The lane that has it. */
SL_SHARED uint32_t largest_of_row(const row_memory *m, row_place r) {
    uint32_t best = r.first;
    for (uint32_t l = r.first + 1; l < r.first + ROW_LANES; l++)
        if (m->largest[l] > m->largest[best] ||
            (m->largest[l] == m->largest[best] && m->places[l] < m->places[best]))
            best = l;
    return best;
}

static inline uint32_t row_blocks(size_t rows) {
    return (uint32_t)((rows + BLOCK_ROWS - 1) / BLOCK_ROWS);
}

SL_SHARED float sum_of_row(const row_memory *m, row_place r) {
    float sum = 0;
    for (uint32_t l = 0; l < ROW_LANES; l++)
        sum += m->sums[r.first + l];
    return sum;
}

/* Softmax and cross-entropy of a row: the loss, and whether the largest output is the label's.
 * Never overflows. */
typedef struct find_loss_args {
    float *z; /* (rows, classes); overwritten by (softmax - onehot) / rows if `gradient` */
    const uint16_t *labels;
    double *found; /* (rows, 2) */
    uint32_t rows, classes;
    int gradient;
} find_loss_args;

typedef row_memory find_loss_memory;

/* By the lane that has the label's output, which may overwrite it next. */
SL_SHARED void put_loss(const find_loss_args *a, const row_memory *m, row_place r, float sum) {
    const uint32_t best = largest_of_row(m, r), label = a->labels[r.row];
    const float at_label = a->z[r.row * a->classes + label];
    a->found[2 * r.row] = log((double)sum) - ((double)at_label - (double)m->largest[best]);
    a->found[2 * r.row + 1] = m->places[best] == label;
}

SL_SHARED void put_loss_gradient(const find_loss_args *a, const row_memory *m, row_place r,
                                 float sum) {
    const float top = m->largest[largest_of_row(m, r)], scale = 1.0f / (sum * (float)a->rows);
    const uint32_t label = a->labels[r.row];
    float *z = a->z + r.row * a->classes;
    for (uint32_t k = r.lane; k < a->classes; k += ROW_LANES)
        z[k] = expf(z[k] - top) * scale - (k == label ? 1.0f / (float)a->rows : 0);
}

enum { find_loss_PHASES = 3 };
SL_SHARED void find_loss(const find_loss_args *a, find_loss_memory *m, block_place at,
                         uint32_t phase) {
    const row_place r = row_at(at);
    const float *z = a->z + r.row * a->classes;
    float sum = 0;
    if (r.row >= a->rows)
        return;
    switch (phase) {
    case 0:
        find_largest_of_row(m, r, z, a->classes);
        break;
    case 1: {
        const float top = m->largest[largest_of_row(m, r)];
        for (uint32_t k = r.lane; k < a->classes; k += ROW_LANES)
            sum += expf(z[k] - top);
        m->sums[at.thread] = sum;
        break;
    }
    case 2:
        sum = sum_of_row(m, r);
        if (a->labels[r.row] % ROW_LANES == r.lane)
            put_loss(a, m, r, sum);
        if (a->gradient)
            put_loss_gradient(a, m, r, sum);
        break;
    }
}

/* By hand: clang-format moves a name to the next line each time that it runs. */
/* clang-format off */
#define SL_DENSE_KERNELS(X)                                                                        \
    X(add_rows) X(add_products) X(finish_rows) X(take_rows)
#define SL_DENSE_BLOCK_KERNELS(X) X(find_loss)
/* clang-format on */

#endif
