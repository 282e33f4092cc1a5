/* spectrum.h - how fast a topology mixes: the second largest and the smallest eigenvalue of W, for
 * one node or a billion.
 *
 * Averaging with W alone shrinks the distance to consensus by rho a round, so that 1 - rho is what
 * decides; on large graphs it is so small that computing rho first and subtracting it from 1 would
 * leave no digit. The gaps here are therefore computed from the edges' weights without that
 * subtraction, and lambda_2 and rho from the gaps. Edge weights are taken as exact, and a node's
 * own weight of a doubly stochastic W as what they leave to 1.
 */
#ifndef STARLING_SPECTRUM_H
#define STARLING_SPECTRUM_H

#include "starling/api.h"
#include "starling/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_SPECTRUM_DENSE_NODES_MAX 2000u /* up to here all eigenvalues, by LAPACK */

typedef enum sl_spectrum_method {
    SL_SPECTRUM_AUTO,        /* the first below that serves */
    SL_SPECTRUM_CLOSED_FORM, /* a formula in the family's parameters */
    SL_SPECTRUM_DENSE,       /* LAPACK on the n x n matrix */
    SL_SPECTRUM_LANCZOS,     /* symmetric: products with W only */
    SL_SPECTRUM_INVERSE, /* symmetric: Lanczos with a sparse Cholesky factor of what a gap belongs
                            to: small gaps */
    SL_SPECTRUM_ARNOLDI  /* not symmetric: products with W only */
} sl_spectrum_method;

/* "closed form", "dense", ...; never NULL. */
SL_API const char *sl_spectrum_method_name(sl_spectrum_method method);

/* Of W, or of the product W(period) ... W(1) of a schedule. One node: lambda_2 = lambda_n = rho =
 * 0. Symmetric: all but the eigenvalue 1 of the constant vector counts. */
typedef struct sl_spectrum {
    uint32_t nodes;
    bool symmetric;
    double lambda_2, lambda_n; /* second largest and smallest eigenvalue; NaN if not symmetric */
    double gap_lambda2;        /* 1 - lambda_2; NaN if not symmetric */
    double gap_lambda_n;       /* 1 + lambda_n; NaN if not symmetric */
    double rho;        /* max(|lambda_2|, |lambda_n|); not symmetric: the second largest modulus */
    double gap;        /* 1 - rho */
    double singular_2; /* ||W - J||_2, J = 11'/n: the most that one round (period) can leave; rho if
                          symmetric */
    uint32_t multiplicity; /* of lambda_2 (not symmetric: eigenvalues of modulus rho); 0: not
                              determined */
    double residual;  /* an eigenvalue lies within this of each of lambda_2 and lambda_n: ||Wv -
                         lambda v|| with |v| = 1, or the rounding error */
    double gap_error; /* estimate of the relative error of `gap` */
    bool converged; /* false: `residual` is above the tolerance or `gap_error` above 1e-3; lambda_2
                       is then at least, and lambda_n at most, as given */
    sl_spectrum_method method;
    uint64_t products; /* products with W that it took */
} sl_spectrum;

typedef struct sl_spectrum_settings {
    sl_spectrum_method method;
    double tolerance; /* on `residual`; default 1e-9 */
    double work_max;  /* multiplications and additions after which a search ends with the bounds
                         reached so far; default 3e11, a minute or two */
} sl_spectrum_settings;

SL_API void sl_spectrum_defaults(sl_spectrum_settings *settings);

/* The spectrum of a family by formula, without building the graph: any number of nodes. True if
 * there is a formula for this family, its parameters and its weights; false leaves *out untouched.
 */
SL_API bool sl_spectrum_closed_form(sl_spectrum *out, const sl_topology_spec *spec);

/* The same for what kind of matrix W is: symmetric, so that rows and columns sum to 1; nonnegative
 * unless the weights are best-constant on a graph of very unequal degrees. */
SL_API bool sl_stochasticity_closed_form(sl_stochasticity *out, const sl_topology_spec *spec);

/* settings may be NULL. A search that its limits end is no error: see `converged`. SL_EINVAL if the
 * method does not suit the matrix. */
SL_API int sl_spectrum_compute(sl_spectrum *out, const sl_topology *topology,
                               const sl_spectrum_settings *settings, sl_error *error);

/* Does averaging converge? *rho is the factor by which one period of the topology shrinks the
 * distance from agreement in the long run: the second largest modulus of W(period) ... W(1), and
 * where only columns sum to 1 (push-sum), the factor by which the weights approach their limit.
 * 1 or more: the values never come together; refuse to train. NaN: less than 1, proven without
 * computing it, as for all connected topologies whose weights are not negative and leave each node
 * a part of its own. Otherwise computed, to about 1e-9, in a second or two at most; where that does
 * not suffice, the largest value found so far. */
SL_API int sl_topology_contraction(const sl_topology *topology, double *rho, sl_error *error);

/* All eigenvalues, largest real part (symmetric) or modulus first; real and imaginary are (nodes),
 * imaginary may be NULL if W is symmetric. SL_EINVAL above SL_SPECTRUM_DENSE_NODES_MAX nodes. */
SL_API int sl_spectrum_eigenvalues(const sl_topology *topology, double *real, double *imaginary,
                                   sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
