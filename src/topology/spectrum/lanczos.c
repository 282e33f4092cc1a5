/* lanczos.c - both ends of the spectrum of a large symmetric W from products with W alone.
 *
 * Lanczos' recurrence with the constant vector taken out and without reorthogonalisation: three
 * terms, two vectors, and although orthogonality goes, the extreme values of the tridiagonal matrix
 * converge as if it stayed (Paige, "Accuracy and effectiveness of the Lanczos algorithm for the
 * symmetric eigenproblem", 1980). What it says of its own convergence is not taken on trust: the
 * recurrence runs a second time, which gives the same numbers, to add up the two eigenvectors, and
 * the residuals reported are those of these vectors. An end is settled at the step at which it
 * converges, before copies of it appear in the tridiagonal matrix.
 */
#include "topology/spectrum/lanczos.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/watch.h"

enum { LANES = 8, CHECK_EVERY = 20 };
static const double exhausted = 1e-13; /* |next vector| below which the Krylov space is complete */
static const double share_of_gap = 1e-3; /* a residual has to be below this share of the gap: else
                                            one within 1e-9 may be another eigenvalue's */

static bool recurrence_open(recurrence *r, const sparse *w) {
    *r = (recurrence){.w = w,
                      .v = sl_vector_allocate(w->nodes),
                      .last = sl_vector_allocate(w->nodes),
                      .norm = 1,
                      .last_norm = 1};
    if (r->v == NULL || r->last == NULL)
        return false;
    sl_vector_random(r->v, w->nodes, 0);
    memset(r->last, 0, w->nodes * sizeof *r->last);
    return true;
}

static void recurrence_close(recurrence *r) {
    free(r->v);
    free(r->last);
}

/* What the second run knows of a step beforehand. */
typedef struct replay {
    double alpha, mean;
    double now[2], before[2]; /* by `end`: of q_k and of q_(k-1) in the eigenvectors */
    bool adds; /* both, to the eigenvectors: every other step, so that these are read and written
                  half as often */
    double **vectors;
} replay;

/* last = W q_k - beta q_(k-1); returns its product with q_k, and its sum over nodes in *total. In
 * the second run: last = beta_(k+1) q_(k+1), and the eigenvectors grow, all in one sweep. Most of a
 * step goes by in this loop, which is bound by how many reads of v it has under way: hence the
 * prefetch. It is compiled once for each degree that regular graphs commonly have (0: any), and for
 * equal weights. */
__attribute__((always_inline)) static inline double multiply_rows(recurrence *r, uint32_t degree,
                                                                  bool even, const replay *again,
                                                                  bool adds, double *total) {
    const sparse *w = r->w;
    const uint32_t *peer = w->peers;
    const double *v = r->v, *weight = w->weights, *self = w->self, scale = 1 / r->norm,
                 back = r->norm / r->last_norm;
    const double edge = w->even,
                 kept = w->self[0]; /* by every node, where degrees and weights are equal */
    double *last = r->last, dot = 0, added = 0, *upper = NULL, *lower = NULL, now[2] = {0},
           before[2] = {0};
    if (adds) {
        upper = again->vectors[UPPER];
        lower = again->vectors[LOWER];
        for (end which = UPPER; which <= LOWER; which++) {
            now[which] = again->now[which] * scale;
            before[which] = again->before[which] / r->last_norm;
        }
    }
    for (uint32_t i = 0; i < w->nodes; i++) {
        const uint32_t *stop = degree > 0 ? peer + degree : w->peers + w->start[i + 1];
        double sum = 0;
        for (; peer < stop; peer++) {
            __builtin_prefetch(&v[peer[SPARSE_AHEAD]], 0, 2);
            sum += even ? v[*peer] : *weight++ * v[*peer];
        }
        double y =
            scale * ((even ? edge * sum : sum) + (even && degree > 0 ? kept : self[i]) * v[i]) -
            back * last[i];
        if (adds) {
            upper[i] += now[UPPER] * v[i] + before[UPPER] * last[i];
            lower[i] += now[LOWER] * v[i] + before[LOWER] * last[i];
        }
        if (again != NULL) {
            last[i] = y - again->alpha * scale * v[i] - again->mean;
        } else {
            last[i] = y;
            dot += y * v[i];
            added += y;
        }
    }
    *total = added;
    return scale * dot;
}

/* The three kinds of step. */
__attribute__((always_inline)) static inline double
multiply_kind(recurrence *r, uint32_t degree, bool even, const replay *again, double *total) {
    if (again == NULL)
        return multiply_rows(r, degree, even, NULL, false, total);
    return again->adds ? multiply_rows(r, degree, even, again, true, total)
                       : multiply_rows(r, degree, even, again, false, total);
}

static double multiply(recurrence *r, const replay *again, double *total) {
    if (isnan(r->w->even))
        return multiply_kind(r, 0, false, again, total);
    switch (r->w->degree) {
    case 3:
        return multiply_kind(r, 3, true, again, total);
    case 4:
        return multiply_kind(r, 4, true, again, total);
    case 6:
        return multiply_kind(r, 6, true, again, total);
    default:
        return multiply_kind(r, 0, true, again, total);
    }
}

/* last -= alpha q_k + mean; returns its length, and its sum in *sum: no more than rounding, but
 * unless that is known and taken out in the next step, it can grow from step to step. */
static double subtract(recurrence *r, double alpha, double mean, double *sum) {
    double squares[LANES] = {0}, sums[LANES] = {0}, factor = alpha * (1 / r->norm);
    uint32_t n = r->w->nodes, i = 0;
    for (; i + LANES <= n; i += LANES)
        for (uint32_t k = 0; k < LANES; k++) {
            double y = r->last[i + k] - factor * r->v[i + k] - mean;
            r->last[i + k] = y;
            squares[k] += y * y;
            sums[k] += y;
        }
    for (; i < n; i++) {
        double y = r->last[i] - factor * r->v[i] - mean;
        r->last[i] = y;
        squares[i % LANES] += y * y;
        sums[i % LANES] += y;
    }
    double square = 0;
    *sum = 0;
    for (uint32_t k = 0; k < LANES; k++) {
        square += squares[k];
        *sum += sums[k];
    }
    return sqrt(square);
}

static void advance(recurrence *r, double beta) {
    double *swap = r->v;
    r->v = r->last;
    r->last = swap;
    r->last_norm = r->norm;
    r->norm = beta;
}

static void recurrence_step(recurrence *r, double *alpha, double *beta, double *mean) {
    double total;
    *alpha = multiply(r, NULL, &total);
    *mean = (total - *alpha * (1 / r->norm) * r->sum) / r->w->nodes;
    *beta = subtract(r, *alpha, *mean, &r->sum);
    advance(r, *beta);
}

/* ---- the tridiagonal matrix ---- */

static bool make_room(lanczos *l) {
    if (l->steps < l->room)
        return true;
    uint32_t room = l->room ? 2 * l->room : 256;
    double **const columns[] = {&l->alpha, &l->beta, &l->means};
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
        double *larger = realloc(*columns[k], room * sizeof *larger);
        if (larger == NULL)
            return false;
        *columns[k] = larger;
    }
    l->room = room;
    return true;
}

/* A residual that is small enough. */
static double goal_of(const settled *s, double tolerance) {
    return fmin(tolerance, share_of_gap * fabs(s->gap));
}

/* Looks at one end of the tridiagonal matrix; settles it once |beta s_k|, the residual in exact
 * arithmetic, is small enough. */
static int examine(lanczos *l, end which, double tolerance) {
    settled *s = &l->ends[which];
    double *coefficients = realloc(s->coefficients, l->steps * sizeof *coefficients), value,
           next = 0;
    if (coefficients == NULL)
        return -1;
    s->coefficients = coefficients;
    if (sl_tridiagonal_eigenpair(l->alpha, l->beta, l->steps, which == UPPER ? l->steps - 1 : 0,
                                 &value, coefficients) != 0)
        return -1;
    s->steps = l->steps;
    s->gap = which == UPPER ? 1 - value : 1 + value;
    s->estimate = l->beta[l->steps - 1] * fabs(coefficients[l->steps - 1]);
    if (l->steps > 1 &&
        sl_tridiagonal_eigenpair(l->alpha, l->beta, l->steps, which == UPPER ? l->steps - 2 : 1,
                                 &next, NULL) != 0)
        return -1;
    s->separation = l->steps > 1 ? fabs(value - next) : 0;
    s->converged = s->estimate <= goal_of(s, tolerance) || l->beta[l->steps - 1] <= exhausted;
    return 0;
}

static int examine_ends(lanczos *l, double tolerance) {
    for (end which = UPPER; which <= LOWER; which++)
        if (!l->ends[which].converged && examine(l, which, tolerance) != 0)
            return -1;
    return 0;
}

static bool is_open_below(const lanczos *l, double gap) {
    return (!l->ends[UPPER].converged && l->ends[UPPER].gap < gap) ||
           (!l->ends[LOWER].converged && l->ends[LOWER].gap < gap);
}

/* Residuals fall by about equal factors. */
static void tell(lanczos *l, double tolerance, uint32_t steps_max) {
    double share = 1;
    for (end which = UPPER; which <= LOWER; which++)
        if (!l->ends[which].converged)
            share = fmin(share, sl_watch_fallen(l->ends[which].estimate,
                                                goal_of(&l->ends[which], tolerance)));
    l->told = fmax(l->told, fmax(share, (double)l->steps / steps_max));
    sl_watch_tell(l->watch, l->told);
}

int sl_lanczos_open(lanczos *l, const sparse *w, const sl_watch *watch) {
    *l = (lanczos){.now = {.w = w}, .watch = watch};
    return recurrence_open(&l->now, w) ? 0 : -1;
}

int sl_lanczos_run(lanczos *l, double tolerance, uint32_t steps_max, uint32_t patience,
                   double small) {
    while (l->steps < steps_max && !(l->ends[UPPER].converged && l->ends[LOWER].converged)) {
        if (!make_room(l))
            return -1;
        recurrence_step(&l->now, &l->alpha[l->steps], &l->beta[l->steps], &l->means[l->steps]);
        l->steps++;
        bool last = l->steps == steps_max || l->beta[l->steps - 1] <= tolerance;
        const bool looks = last || l->steps % CHECK_EVERY == 0;
        if (looks && examine_ends(l, tolerance) != 0)
            return -1;
        if (looks)
            tell(l, tolerance, steps_max);
        if (l->steps >= patience && is_open_below(l, small))
            return 0;
    }
    return 0;
}

void sl_lanczos_close(lanczos *l) {
    recurrence_close(&l->now);
    free(l->alpha);
    free(l->beta);
    free(l->means);
    free(l->ends[UPPER].coefficients);
    free(l->ends[LOWER].coefficients);
}

/* ---- the eigenvectors ---- */

static double coefficient(const settled *s, uint32_t k) {
    return k < s->steps ? s->coefficients[k] : 0;
}

int sl_lanczos_vectors(const lanczos *l, double *vectors[2]) {
    recurrence r;
    int result = recurrence_open(&r, l->now.w) ? 0 : -1;
    for (end which = UPPER; which <= LOWER; which++)
        memset(vectors[which], 0, l->now.w->nodes * sizeof(double));
    for (uint32_t k = 0; result == 0 && k < l->steps; k++) {
        replay again = {.alpha = l->alpha[k],
                        .mean = l->means[k],
                        .adds = k % 2 == 1 || k + 1 == l->steps,
                        .vectors = vectors};
        double none;
        for (end which = UPPER; which <= LOWER; which++) {
            again.now[which] = coefficient(&l->ends[which], k);
            again.before[which] =
                k % 2 == 1 ? coefficient(&l->ends[which], k - 1) : 0; /* else in it already */
        }
        multiply(&r, &again, &none);
        advance(&r, l->beta[k]);
    }
    recurrence_close(&r);
    return result;
}
