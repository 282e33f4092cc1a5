/* inverse.c - small gaps of symmetric W from a sparse Cholesky factor.
 *
 * A gap is the smallest eigenvalue of B = I - W (or I + W). Where gaps are small, as in large
 * grids, trees and clusters, Lanczos' recurrence on W would need thousands of steps, but these
 * graphs have small separators, B factorises cheaply (CHOLMOD: Chen, Davis, Hager, Rajamanickam
 * 2008), and the recurrence on B's inverse needs a dozen. I - W is singular: one node is held at 0,
 * and the mean is taken out of every solution, which makes the pseudo-inverse on the complement of
 * the constant vector.
 *
 * The factor only steers. Eigenvalue and residual come from products with B written over the edges,
 * so that a gap of 1e-12 has ten digits and more although the factor is worth only four of them.
 */
#include "topology/spectrum/inverse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
/* Only the modules that are under the LGPL: these three are GPL. Debian's library holds all; mind
 * this where you distribute binaries. */
#define NSUPERNODAL
#define NMODIFY
#define NMATRIXOPS
#include <suitesparse/cholmod.h>

enum { BASIS = 32, RESTARTS = 12 };
static const double relative_tolerance = 1e-11; /* of the gap */

struct factor {
    const sparse *w;
    end which;
    int size; /* rows of the matrix: at the upper end without the last node */
    double shift;
    cholmod_common common;
    cholmod_sparse *matrix; /* upper triangle */
    cholmod_factor *cholesky;
    cholmod_dense *x, *y, *e; /* of the last solution, to be used again */
};

static double diagonal(const factor *f, uint32_t i) {
    double sum = 0;
    for (uint64_t e = f->w->start[i]; e < f->w->start[i + 1]; e++)
        sum += f->w->weights[e];
    return f->which == UPPER ? sum : sum + 2 * f->w->self[i];
}

/* The upper triangle of B, column by column; the diagonal comes first in each. */
static void fill_matrix(factor *f) {
    int *start = f->matrix->p, *rows = f->matrix->i, at = 0;
    double *values = f->matrix->x;
    for (int j = 0; j < f->size; j++) {
        start[j] = at;
        rows[at] = j;
        values[at++] = diagonal(f, (uint32_t)j);
        for (uint64_t e = f->w->start[j]; e < f->w->start[j + 1]; e++)
            if (f->w->peers[e] < (uint32_t)j) {
                rows[at] = (int)f->w->peers[e];
                values[at++] = f->which == UPPER ? -f->w->weights[e] : f->w->weights[e];
            }
    }
    start[f->size] = at;
}

factor *sl_factor_open(const sparse *w, end which, factor_cost *cost) {
    factor *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    *f = (factor){.w = w, .which = which, .size = (int)w->nodes - (which == UPPER)};
    cholmod_start(&f->common);
    f->common.print = 0;
    f->common.supernodal = CHOLMOD_SIMPLICIAL;
    f->common.final_ll = 1; /* fails where the matrix is not positive definite */
    size_t n = (size_t)f->size;
    f->matrix = cholmod_allocate_sparse(n, n, n + w->edges / 2, 0, 1, 1, CHOLMOD_REAL, &f->common);
    f->x = cholmod_allocate_dense(n, 1, n, CHOLMOD_REAL, &f->common);
    if (f->matrix != NULL && f->x != NULL) {
        fill_matrix(f);
        f->cholesky = cholmod_analyze(f->matrix, &f->common);
    }
    if (f->cholesky == NULL) {
        sl_factor_close(&f);
        return NULL;
    }
    *cost = (factor_cost){f->common.lnz, f->common.fl};
    return f;
}

void sl_factor_close(factor **f) {
    if (*f == NULL)
        return;
    cholmod_common *c = &(*f)->common;
    cholmod_free_sparse(&(*f)->matrix, c);
    cholmod_free_factor(&(*f)->cholesky, c);
    cholmod_free_dense(&(*f)->x, c);
    cholmod_free_dense(&(*f)->y, c);
    cholmod_free_dense(&(*f)->e, c);
    cholmod_finish(c);
    free(*f);
    *f = NULL;
}

/* Factorises B - shift; false where that is not positive definite. */
static bool factor_shifted(factor *f, double shift) {
    double *values = f->matrix->x;
    const int *start = f->matrix->p;
    for (int j = 0; j < f->size; j++)
        values[start[j]] = diagonal(f, (uint32_t)j) - shift;
    f->shift = shift;
    return cholmod_factorize(f->matrix, f->cholesky, &f->common) && f->common.status == CHOLMOD_OK;
}

/* x := approximately (B - shift)^-1 b, on the complement of the constant vector at the upper end; b
 * may be x. */
static bool solve_once(factor *f, const double *b, double *x) {
    uint32_t n = f->w->nodes;
    cholmod_dense right = {.nrow = (size_t)f->size,
                           .ncol = 1,
                           .nzmax = (size_t)f->size,
                           .d = (size_t)f->size,
                           .x = (double *)b,
                           .xtype = CHOLMOD_REAL,
                           .dtype = CHOLMOD_DOUBLE};
    if (!cholmod_solve2(CHOLMOD_A, f->cholesky, &right, NULL, &f->x, NULL, &f->y, &f->e,
                        &f->common))
        return false;
    memcpy(x, f->x->x, (size_t)f->size * sizeof *x);
    if (f->which == UPPER) {
        x[n - 1] = 0;
        sl_vector_center(x, n);
    }
    return true;
}

/* The same with one step of refinement, whose residual is free of the factor's cancellation; b is
 * not x, spare is (nodes). */
static bool solve(factor *f, const double *b, double *x, double *spare) {
    uint32_t n = f->w->nodes;
    if (!solve_once(f, b, x))
        return false;
    sl_end_residual(f->w, f->which, f->shift, x, spare);
    for (uint32_t i = 0; i < n; i++)
        spare[i] = b[i] - spare[i];
    if (!solve_once(f, spare, spare))
        return false;
    sl_vector_add(x, 1, spare, n);
    return true;
}

/* ---- the recurrence, with full reorthogonalisation ---- */

typedef struct krylov {
    factor *f;
    double *basis[BASIS + 1], *spare; /* (nodes) each */
    double alpha[BASIS], beta[BASIS];
    uint32_t steps;
} krylov;

static bool krylov_open(krylov *k, factor *f) {
    *k = (krylov){.f = f, .spare = sl_vector_allocate(f->w->nodes)};
    bool complete = k->spare != NULL;
    for (int j = 0; j <= BASIS; j++)
        complete = (k->basis[j] = sl_vector_allocate(f->w->nodes)) != NULL && complete;
    return complete;
}

static void krylov_close(krylov *k) {
    for (int j = 0; j <= BASIS; j++)
        free(k->basis[j]);
    free(k->spare);
}

static double normalize(double *x, uint32_t n) {
    double length = sl_vector_length(x, n);
    if (length > 0)
        sl_vector_scale(x, 1 / length, n);
    return length;
}

/* Appends the next basis vector; false if a solution fails. */
static bool krylov_step(krylov *k) {
    uint32_t n = k->f->w->nodes, j = k->steps;
    double *next = k->basis[j + 1];
    if (!solve(k->f, k->basis[j], next, k->spare))
        return false;
    k->alpha[j] = 0;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i <= j; i++) {
            double along = sl_vector_dot(next, k->basis[i], n);
            sl_vector_add(next, -along, k->basis[i], n);
            k->alpha[j] += i == j ? along : 0;
        }
    k->beta[j] = normalize(next, n);
    k->steps++;
    return true;
}

static double gap_of(const factor *f, double inverse) {
    return f->shift + 1 / inverse;
}

/* One cycle from basis[0]: *vector becomes the best approximation in its Krylov space, *out what
 * that is worth. */
static bool cycle(krylov *k, ritz *out, double *vector) {
    double value = 0, next = 0, s[BASIS];
    uint32_t n = k->f->w->nodes;
    for (k->steps = 0; k->steps < BASIS;) {
        if (!krylov_step(k) ||
            sl_tridiagonal_eigenpair(k->alpha, k->beta, k->steps, k->steps - 1, &value, s) != 0)
            return false;
        if (k->beta[k->steps - 1] * fabs(s[k->steps - 1]) <= 1e-10 * value)
            break;
    }
    if (k->steps > 1 &&
        sl_tridiagonal_eigenpair(k->alpha, k->beta, k->steps, k->steps - 2, &next, NULL) != 0)
        return false;
    double *sum = k->basis[k->steps]; /* which the recurrence needs no more */
    memset(sum, 0, n * sizeof *sum);
    for (uint32_t j = 0; j < k->steps; j++)
        sl_vector_add(sum, s[j], k->basis[j], n);
    if (!solve(k->f, sum, vector,
               k->spare)) /* once more, against what the sum has left of other eigenvectors */
        return false;
    normalize(vector, n);
    out->value = sl_end_quotient(k->f->w, k->f->which, vector);
    out->residual = sqrt(sl_end_residual(k->f->w, k->f->which, out->value, vector, k->spare));
    out->separation = next > 0 ? gap_of(k->f, next) - out->value : 0;
    return true;
}

static bool is_good(const ritz *r, double tolerance) {
    return r->residual <= tolerance && sl_ritz_error(r) <= relative_tolerance * r->value;
}

/* Moves the shift to below the value sought, of which `guess` is an upper bound with about that
 * error; where the factor finds that this was not enough, further away, but not below a shift that
 * has served. */
static bool choose_shift(factor *f, double guess, double about) {
    double served = f->shift;
    if (f->which == LOWER && guess > SMALL_GAP)
        for (double distance = about + 1e-15; guess - distance > served; distance *= 8)
            if (factor_shifted(f, guess - distance))
                return true;
    return factor_shifted(f, served);
}

int sl_factor_lanczos(factor *f, double guess, double guess_residual, double tolerance, ritz *out,
                      double *vector, uint64_t *products) {
    krylov k;
    uint32_t n = f->w->nodes;
    int result = krylov_open(&k, f) ? 1 : -1;
    bool shifted = result == 1 && choose_shift(f, guess, guess_residual);
    if (shifted)
        sl_vector_random(vector, n, 1);
    double before = INFINITY;
    for (int restart = 0; shifted && restart < RESTARTS; restart++) {
        memcpy(k.basis[0], vector, n * sizeof *vector);
        result = cycle(&k, out, vector) ? 0 : -1;
        *products += 3ull * k.steps + 5; /* a solution costs about as much as a product */
        if (result != 0 || is_good(out, tolerance) || out->residual > 0.5 * before)
            break;
        before = out->residual;
        if (f->which == LOWER)
            shifted = choose_shift(
                f, out->value, 10 * sl_ritz_error(out)); /* an estimate, and a factor too many would
                                                         cost more than what it overestimates */
    }
    krylov_close(&k);
    return result;
}
