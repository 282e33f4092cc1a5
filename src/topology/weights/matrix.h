/* matrix.h - the little dense linear algebra whose results become part of a topology, and so must
 * be the same bits on every machine: LAPACK's are not. Matrices are row-major; sums are in order,
 * and vectorised along rows only. */
#ifndef SL_MATRIX_H
#define SL_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

/* a (n, n), of which the upper triangle counts, becomes U with A = U'U; false if A is not positive
 * definite. */
bool sl_matrix_cholesky(double *a, size_t n);
/* inverse (n, n) = (U'U)^-1, both triangles; work (n, n). */
void sl_matrix_invert(double *inverse, const double *u, double *work, size_t n);
/* out = a b; all (n, n) and apart. */
void sl_matrix_multiply(double *out, const double *a, const double *b, size_t n);
/* x (n) becomes (U'U)^-1 x. */
void sl_matrix_solve(const double *u, double *x, size_t n);
/* Eigenvalues of the symmetric a (n, n), which is lost, by falling modulus, and their vectors as
 * columns; for small n. */
void sl_matrix_eigen(double *values, double *vectors, double *a, size_t n);

#endif
