/* krylov.h - a symmetric W as a sparse matrix, and the vectors that iterations with it keep.
 *
 * Sums run in eight fixed lanes, so that the same matrix gives the same digits whatever the
 * compiler makes of a loop.
 */
#ifndef SL_KRYLOV_H
#define SL_KRYLOV_H

#include "topology/graph/apply.h"
#include "topology/spectrum/spectral.h"

enum { SPARSE_AHEAD = 128 };

/* W of one symmetric slot, its nodes renumbered in the order of a breadth-first search, so that
 * neighbours are near in memory. */
typedef struct sparse {
    uint32_t nodes;
    uint32_t pieces; /* 1: connected */
    uint64_t edges;  /* both directions */
    uint64_t *start; /* (nodes + 1) */
    uint32_t *peers; /* (edges + SPARSE_AHEAD), the last ones 0: loops may look that far ahead */
    double *weights;
    double *self;    /* what the weights leave to 1 */
    uint32_t degree; /* of every node, or 0 */
    double even;     /* the weight of every edge, or NaN: then `weights` need not be read */
} sparse;

int sl_sparse_open(sparse *out, const graph *g); /* -1 without memory */
void sl_sparse_close(sparse *w);

/* Vectors of many megabytes that are read at random: in huge pages where there are any. NULL
 * without memory; free() frees. */
double *sl_vector_allocate(size_t count);
double sl_vector_dot(const double *x, const double *y, uint32_t n);
void sl_vector_add(double *y, double factor, const double *x, uint32_t n); /* y += factor x */
void sl_vector_scale(double *x, double factor, uint32_t n);

/* One of the two ends of the spectrum, where a gap is: B = I - W at the upper one, I + W at the
 * lower one. Written over the edges neither loses digits:
 *   x'(I - W)x = sum over edges w_ij (x_i - x_j)^2,   x'(I + W)x = sum over edges w_ij (x_i +
 *     x_j)^2 + 2 sum over nodes W_ii x_i^2.
 * The gaps are B's smallest eigenvalues, at the upper end without the constant vector's 0. */
typedef enum end { UPPER, LOWER } end;

/* y = B x - theta x; returns y'y. */
double sl_end_residual(const sparse *w, end which, double theta, const double *x, double *y);
/* x'Bx / x'x */
double sl_end_quotient(const sparse *w, end which, const double *x);

/* An eigenpair of B as far as it is known. */
typedef struct ritz {
    double value;      /* of B: a gap, from above */
    double residual;   /* ||B v - value v||, |v| = 1, computed for this very v */
    double separation; /* from the next value found; 0: not known */
} ritz;

/* Of `value`: the residual bounds its error, and the residual's square over the separation
 * estimates it (Kato, Temple). */
double sl_ritz_error(const ritz *r);

/* tridiagonal.c: eigenpair number `which` from below of the tridiagonal matrix; vector is (size) or
 * NULL. -1 without memory. */
int sl_tridiagonal_eigenpair(const double *diagonal, const double *beside, uint32_t size,
                             uint32_t which, double *value, double *vector);

#endif
