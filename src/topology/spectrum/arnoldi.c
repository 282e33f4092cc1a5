/* arnoldi.c - the second largest modulus of large matrices that are not symmetric, and ||M - J||_2:
 * ARPACK.
 *
 * M is W, or the product over a schedule's period. Where columns sum to 1 it maps vectors of mean 0
 * to vectors of mean 0, and its eigenvalues there are all but the 1; where only rows do, this holds
 * of its transpose, which has the same eigenvalues. There the modulus sought is the largest: the
 * implicitly restarted Arnoldi method (Lehoucq, Sorensen, Yang, "ARPACK Users' Guide", 1998). ||M -
 * J||_2 is the root of the largest eigenvalue of (M - J)'(M - J), by the Lanczos method of the same
 * library.
 *
 * Matrices that average exactly after some rounds are nilpotent there, which no eigenvalue method
 * can tell from small moduli: rounding moves the eigenvalues of a Jordan block of m rows by the
 * m-th root of 1e-16. They are recognised by what they do to a random vector.
 */
#include <arpack.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/graph/apply.h"
#include "topology/spectrum/spectral.h"

enum { BASIS = 40 };
static const double zero_below =
    1e-10; /* of a random vector's length, in one step: the last one of a nilpotent matrix */

typedef struct map {
    const graph *g;
    bool transposed;
    double *from, *to; /* (nodes) */
    uint64_t products, products_max;
} map;

static bool map_open(map *m, const graph *g, double work_max) {
    double operations = 0;
    for (uint32_t k = 0; k < g->period; k++)
        operations += 2.0 * (double)g->slots[k].edges + 2.0 * g->nodes;
    operations += 4.0 * BASIS * g->nodes; /* orthogonalisation */
    *m = (map){.g = g,
               .transposed = !g->stochastic.column,
               .products_max = (uint64_t)fmin(1e9, work_max / operations) + BASIS};
    m->from = malloc(g->nodes * sizeof *m->from);
    m->to = malloc(g->nodes * sizeof *m->to);
    return m->from != NULL && m->to != NULL;
}

static void map_close(map *m) {
    free(m->from);
    free(m->to);
}

/* y = M x, or M' x, slot by slot; y may be x. */
static void multiply(map *m, bool transposed, const double *x, double *y) {
    uint32_t n = m->g->nodes, period = m->g->period;
    memcpy(m->from, x, n * sizeof *x);
    for (uint32_t k = 0; k < period; k++) {
        const slot *p = &m->g->slots[transposed ? period - 1 - k : k];
        if (transposed)
            sl_slot_apply_transposed(p, n, m->from, m->to);
        else
            sl_slot_apply(p, n, m->from, m->to);
        double *swap = m->from;
        m->from = m->to;
        m->to = swap;
    }
    memcpy(y, m->from, n * sizeof *y);
    m->products++;
}

/* On vectors of mean 0. */
static void multiply_centered(map *m, const double *x, double *y) {
    multiply(m, m->transposed, x, y);
    sl_vector_center(y, m->g->nodes);
}

/* (M - J)'(M - J) */
static void multiply_squared(map *m, const double *x, double *y) {
    uint32_t n = m->g->nodes;
    for (int back = 0; back <= 1; back++) {
        const double *start = back ? y : x;
        double mean = 0;
        for (uint32_t i = 0; i < n; i++)
            mean += start[i] / n;
        multiply(m, back, start, y);
        for (uint32_t i = 0; i < n; i++)
            y[i] -= mean;
    }
}

/* ---- ARPACK ---- */

typedef struct extreme {
    double value, residual; /* a modulus, or an eigenvalue; the library's estimate of ||Av - lambda
                               v||, |v| = 1 */
} extreme;

typedef struct arpack {
    a_int size, basis, length, steps[11], at[14], info;
    double *start, *vectors, *work, *small; /* (size), (size, basis), (3 size), (length) */
} arpack;

static bool arpack_open(arpack *a, uint32_t nodes, uint64_t restarts) {
    *a = (arpack){.size = (a_int)nodes,
                  .basis = nodes < BASIS ? (a_int)nodes : BASIS,
                  .steps = {1, 0, (a_int)fmin(1e9, (double)restarts), 1, 0, 0, 1},
                  .info = 1};
    size_t n = nodes, k = (size_t)a->basis;
    a->length = (a_int)(3 * k * k + 8 * k);
    a->start = malloc(n * sizeof *a->start);
    a->vectors = malloc(n * k * sizeof *a->vectors);
    a->work = calloc(3 * n, sizeof *a->work);
    a->small = calloc((size_t)a->length, sizeof *a->small);
    return a->start && a->vectors && a->work && a->small;
}

static void arpack_close(arpack *a) {
    free(a->start);
    free(a->vectors);
    free(a->work);
    free(a->small);
}

/* The library asks for products, one after the other. */
static void arpack_run(arpack *a, map *m, bool symmetric, double tolerance) {
    sl_vector_random(a->start, m->g->nodes, 2);
    memset(a->work, 0, 3 * (size_t)a->size * sizeof *a->work);
    for (a_int request = 0;;) {
        if (symmetric)
            dsaupd_c(&request, "I", a->size, "LA", 1, tolerance, a->start, a->basis, a->vectors,
                     a->size, a->steps, a->at, a->work, a->small, a->length, &a->info);
        else
            dnaupd_c(&request, "I", a->size, "LM", 2, tolerance, a->start, a->basis, a->vectors,
                     a->size, a->steps, a->at, a->work, a->small, a->length, &a->info);
        if (request != 1 && request != -1)
            return;
        (symmetric ? multiply_squared : multiply_centered)(m, a->work + a->at[0] - 1,
                                                           a->work + a->at[1] - 1);
    }
}

/* The largest of the Ritz values. */
static extreme arpack_extreme(const arpack *a, bool symmetric) {
    const double *real = a->small + a->at[5] - 1, *imaginary = a->small + a->at[6] - 1,
                 *bounds = a->small + a->at[symmetric ? 6 : 7] - 1;
    extreme found = {0};
    for (a_int k = 0; k < a->basis; k++) {
        double value = symmetric ? real[k] : hypot(real[k], imaginary[k]);
        if (value > found.value)
            found = (extreme){value, fabs(bounds[k])};
    }
    return found;
}

/* A start that the map takes to nothing ends the library's work with an error. */
static bool is_zero(map *m, bool symmetric, double *x, double *y) {
    sl_vector_random(x, m->g->nodes, 2);
    (symmetric ? multiply_squared : multiply_centered)(m, x, y);
    return sl_vector_length(y, m->g->nodes) <= DBL_EPSILON * DBL_EPSILON * m->g->nodes;
}

static int find_extreme(map *m, bool symmetric, double tolerance, extreme *out) {
    arpack a;
    bool allocated = arpack_open(&a, m->g->nodes, m->products_max / BASIS + 1);
    if (allocated && is_zero(m, symmetric, a.work, a.vectors)) {
        *out = (extreme){0};
        a.info = 0;
    } else if (allocated) {
        arpack_run(&a, m, symmetric, tolerance);
        *out = arpack_extreme(&a, symmetric);
    }
    int info = allocated ? a.info : -1;
    arpack_close(&a);
    return info < 0 ? -1 : 0; /* 1: the limit; the values are those reached by then */
}

/* ---- exact averaging ---- */

bool sl_spectrum_averages_exactly(const graph *g) {
    map m;
    uint32_t n = g->nodes, steps = 4;
    for (uint32_t rest = n; rest > 0; rest /= 2)
        steps += 2;
    double *x = malloc(n * sizeof *x), length = 1;
    bool allocated = map_open(&m, g, 0) && x != NULL;
    if (allocated)
        sl_vector_random(x, n, 3);
    for (uint32_t k = 0; allocated && k < steps && length > zero_below; k++) {
        multiply_centered(&m, x, x);
        length = sl_vector_length(x, n);
        for (uint32_t i = 0; i < n; i++)
            x[i] /= length;
    }
    free(x);
    map_close(&m);
    return allocated && length <= zero_below;
}

int sl_spectrum_singular_2(double *value, const graph *g, double work_max) {
    map m;
    extreme square = {0};
    int result = map_open(&m, g, work_max) ? find_extreme(&m, true, 1e-12, &square) : -1;
    map_close(&m);
    if (result == 0)
        *value = sqrt(square.value);
    return result;
}

int sl_spectrum_arnoldi(sl_spectrum *out, const graph *g, const sl_spectrum_settings *settings,
                        sl_error *error) {
    map m;
    extreme modulus = {0};
    double singular_2 = 0;
    bool exact = sl_spectrum_averages_exactly(g);
    int result = map_open(&m, g, settings->work_max) ? 0 : -1;
    if (result == 0 && !exact)
        result = find_extreme(&m, false, settings->tolerance / 2, &modulus);
    if (result == 0)
        result = sl_spectrum_singular_2(&singular_2, g, settings->work_max);
    map_close(&m);
    if (result != 0)
        return sl_fail(error, SL_ENOMEM, "spectrum: ARPACK could not work on vectors of %u nodes",
                       g->nodes);
    *out = sl_spectrum_of_modulus(g->nodes, modulus.value, singular_2);
    out->residual = fmax(modulus.residual, 4 * DBL_EPSILON * sqrt(g->nodes) * fmax(1, singular_2));
    out->gap_error = out->residual / fabs(out->gap);
    out->converged = out->residual <= settings->tolerance && out->gap_error <= GAP_ERROR_MAX;
    out->method = SL_SPECTRUM_ARNOLDI;
    out->products = m.products;
    return 0;
}
