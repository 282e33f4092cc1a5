/* kernels_vector.h - vectors: weighted sums, a step of SGD, and sums over a vector in the order of
 * element/sum.h; see kernels.h. */
#ifndef SL_GPU_KERNELS_VECTOR_H
#define SL_GPU_KERNELS_VECTOR_H

#include "element/adam.h"
#include "element/sum.h"
#include "gpu/block.h"
#include "gpu/thread.h"

/* out = [out +] weights[0] in[0] + weights[1] in[1] + ..., in that order. */
typedef struct combine_four_args {
    float *out;
    const float *in[INPUTS];
    float weights[INPUTS];
    uint32_t k;
    int adds, aligned;
    size_t count;
} combine_four_args;

SL_SHARED void combine_four(const combine_four_args *a, size_t i) {
    const size_t from = FOUR * i, n = smaller(a->count - from, FOUR);
    if (a->aligned && n == FOUR) {
        four sum = {{0, 0, 0, 0}};
        if (a->adds)
            sum = *(const four *)(a->out + from);
        for (uint32_t j = 0; j < a->k; j += TOGETHER) {
            four next[TOGETHER] = {{{0, 0, 0, 0}}};
            SL_UNROLL(4)
            for (uint32_t t = 0; t < TOGETHER; t++)
                if (j + t < a->k)
                    next[t] = *(const four *)(a->in[j + t] + from);
            SL_UNROLL(4)
            for (uint32_t t = 0; t < TOGETHER; t++)
                for (int e = 0; e < FOUR && j + t < a->k; e++) {
                    const float product = a->weights[j + t] * next[t].v[e];
                    sum.v[e] = a->adds || j + t > 0 ? sum.v[e] + product : product;
                }
        }
        *(four *)(a->out + from) = sum;
        return;
    }
    for (size_t e = from; e < from + n; e++) {
        float total = a->adds ? a->out[e] : a->weights[0] * a->in[0][e];
        for (uint32_t j = a->adds ? 0 : 1; j < a->k; j++)
            total = total + a->weights[j] * a->in[j][e];
        a->out[e] = total;
    }
}

typedef struct step_four_args {
    float *x;
    const float *x_decay, *g;
    float *m;
    sl_sgd sgd;
    size_t count;
    int aligned;
} step_four_args;

/* Updates x and m of one element; m only with momentum. */
SL_SHARED void step_one(const sl_sgd *s, int has_momentum, float *x, float x_decay, float g,
                        float *m) {
    float direction = g + s->weight_decay * x_decay;
    if (has_momentum) {
        *m = s->momentum * *m + direction;
        direction = s->nesterov ? direction + s->momentum * *m : *m;
    }
    *x -= s->learning_rate * direction;
}

SL_SHARED void step_four(const step_four_args *a, size_t i) {
    const size_t from = FOUR * i, end = from + smaller(a->count - from, FOUR);
    const int has_momentum = a->m != NULL;
    if (a->aligned && end - from == FOUR) {
        const four decay = *(const four *)(a->x_decay + from), g = *(const four *)(a->g + from);
        four x = *(const four *)(a->x + from), m = has_momentum ? *(const four *)(a->m + from) : x;
        for (int e = 0; e < FOUR; e++)
            step_one(&a->sgd, has_momentum, &x.v[e], decay.v[e], g.v[e], &m.v[e]);
        *(four *)(a->x + from) = x;
        if (has_momentum)
            *(four *)(a->m + from) = m;
        return;
    }
    for (size_t e = from; e < end; e++) {
        float m = has_momentum ? a->m[e] : 0;
        step_one(&a->sgd, has_momentum, &a->x[e], a->x_decay[e], a->g[e], &m);
        if (has_momentum)
            a->m[e] = m;
    }
}

/* Adam's direction of one element. */
typedef struct adam_one_args {
    float *g;
    const float *x;
    float *m, *v;
    sl_adam adam;
} adam_one_args;

SL_SHARED void adam_one(const adam_one_args *a, size_t i) {
    a->g[i] = adam_element(&a->adam, a->g[i], a->x[i], &a->m[i], &a->v[i]);
}

typedef struct fill_four_args {
    float *v;
    float value;
    size_t count;
    int aligned;
} fill_four_args;

SL_SHARED void fill_four(const fill_four_args *a, size_t i) {
    const size_t from = FOUR * i, end = from + smaller(a->count - from, FOUR);
    if (a->aligned && end - from == FOUR) {
        const four all = {{a->value, a->value, a->value, a->value}};
        *(four *)(a->v + from) = all;
        return;
    }
    for (size_t e = from; e < end; e++)
        a->v[e] = a->value;
}

typedef struct keep_one_args {
    float *v;
    const float *kept;
} keep_one_args;

SL_SHARED void keep_one(const keep_one_args *a, size_t i) {
    if (a->kept[i] == 0)
        a->v[i] = 0;
}

/* ---- sums, in the order of element/sum.h ---- */

/* A block has BLOCK_TILES tiles: a thread for each lane, and then one for each tile. */
enum { BLOCK_TILES = BLOCK_THREADS / SUM_LANES };

/* Sums of (x - y)^2; y may be NULL. Sums are of `each` elements, the last of fewer: its last tiles
 * may be empty. */
typedef struct tile_sums_args {
    const float *x, *y;
    double *out;                    /* (sums, tiles) */
    size_t count, each, tiles, all; /* all: of all sums */
} tile_sums_args;

typedef struct tile_sums_memory {
    double lanes[BLOCK_THREADS];
} tile_sums_memory;

SL_SHARED double distance_of_lane(const tile_sums_args *a, size_t tile, size_t lane) {
    const size_t sum_number = quotient(tile, a->tiles), first = sum_number * a->each,
                 start = first + (tile - sum_number * a->tiles) * SUM_TILE,
                 end = smaller(start + SUM_TILE, smaller(first + a->each, a->count));
    double sum = 0;
    SL_UNROLL(16)
    for (size_t e = start + lane; e < end; e += SUM_LANES) {
        const double difference = a->y != NULL ? (double)a->x[e] - a->y[e] : (double)a->x[e];
        sum += difference * difference;
    }
    return sum;
}

enum { tile_sums_PHASES = 2 };
SL_SHARED void tile_sums(const tile_sums_args *a, tile_sums_memory *m, block_place at,
                         uint32_t phase) {
    const size_t first = (size_t)at.block * BLOCK_TILES, tile = first + at.thread / SUM_LANES;
    if (phase == 0)
        m->lanes[at.thread] = tile < a->all ? distance_of_lane(a, tile, at.thread % SUM_LANES) : 0;
    else if (at.thread < BLOCK_TILES && first + at.thread < a->all)
        a->out[first + at.thread] = sum_lanes(m->lanes + at.thread * SUM_LANES);
}

/* Thread i computes fold i % folds of sum i / folds. */
typedef struct fold_tiles_args {
    const double *sums; /* (sums, tiles) */
    double *out;        /* (sums, folds) */
    size_t tiles, folds;
} fold_tiles_args;

SL_SHARED void fold_tiles(const fold_tiles_args *a, size_t i) {
    const double *sums = a->sums + i / a->folds * a->tiles;
    double sum = 0;
    SL_UNROLL(4)
    for (size_t t = i % a->folds; t < a->tiles; t += SUM_FOLDS)
        sum += sums[t];
    a->out[i] = sum;
}

typedef struct sum_of_folds_args {
    const double *folds; /* (sums, count) */
    double *out;         /* (sums) */
    size_t count;
} sum_of_folds_args;

SL_SHARED void sum_of_folds(const sum_of_folds_args *a, size_t i) {
    a->out[i] = sum_in_order(a->folds + i * a->count, a->count);
}

#endif
