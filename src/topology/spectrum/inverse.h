/* inverse.h - small gaps from a sparse Cholesky factor; see inverse.c. */
#ifndef SL_INVERSE_H
#define SL_INVERSE_H

#include "topology/spectrum/krylov.h"

#define SMALL_GAP 1e-3 /* below, a factor is a good way to go */

/* B - shift of one end, ordered and factorised symbolically: enough to know what numbers will cost.
 */
typedef struct factor factor;

typedef struct factor_cost {
    double entries, operations;
} factor_cost;

/* NULL without memory (or if even the ordering is beyond the library's integers). */
factor *sl_factor_open(const sparse *w, end which, factor_cost *cost);
void sl_factor_close(factor **f);

/* The smallest eigenvalue of B, at the upper end but for the constant vector's. `guess` is an upper
 * bound of it that Lanczos has found, with that residual: at the lower end, where it is not small,
 * a shift to just below it speeds things up. *vector (nodes) is overwritten by the eigenvector.
 * Adds the products and solutions that it took to *products. 0; 1 where B is not positive definite,
 * which is not for this method; -1 without memory. */
int sl_factor_lanczos(factor *f, double guess, double guess_residual, double tolerance, ritz *out,
                      double *vector, uint64_t *products);

#endif
