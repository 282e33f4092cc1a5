/* spectrum.h - how fast a topology mixes: the second largest and the smallest eigenvalue of W, for
 * up to a billion nodes.
 *
 * Averaging with W shrinks the distance to consensus by rho a round, so the gap 1 - rho decides.
 * On large graphs the gap is tiny, and 1 - rho would cancel all digits. So gaps are computed from
 * the edge weights without that subtraction, and lambda_2 and rho follow from the gaps. Edge
 * weights count as exact, and the self-weights of a doubly stochastic W as what they leave to 1. */
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
    SL_SPECTRUM_INVERSE,     /* symmetric: Lanczos with a sparse Cholesky factor; for small gaps */
    SL_SPECTRUM_ARNOLDI      /* not symmetric: products with W only */
} sl_spectrum_method;

/* "closed form", "dense", ...; never NULL. */
SL_API const char *sl_spectrum_method_name(sl_spectrum_method method);

/* The spectrum of W, or of a schedule's product W(period) ... W(1). One node: lambda_2 = lambda_n
 * = rho = 0. Symmetric: of all eigenvalues but the 1 of the constant vector. */
typedef struct sl_spectrum {
    uint32_t nodes;
    bool symmetric;
    double lambda_2, lambda_n; /* second largest and smallest eigenvalue; NaN if not symmetric */
    double gap_lambda2;        /* 1 - lambda_2; NaN if not symmetric */
    double gap_lambda_n;       /* 1 + lambda_n; NaN if not symmetric */
    double rho;        /* max(|lambda_2|, |lambda_n|); not symmetric: the second largest modulus */
    double gap;        /* 1 - rho */
    double singular_2; /* ||W - J||_2, J = 11'/n: the worst factor of one round (period); rho if
                          symmetric */
    uint32_t multiplicity; /* of lambda_2 (not symmetric: eigenvalues of modulus rho); 0: not
                              determined */
    double residual;  /* ||Wv - lambda v|| with |v| = 1, or the rounding error: each of lambda_2 and
                         lambda_n is so close to an eigenvalue */
    double gap_error; /* estimate of the relative error of `gap` */
    bool converged;   /* false: `residual` is above the tolerance, or `gap_error` above 1e-3. Then
                         lambda_2 is a lower bound, lambda_n an upper bound */
    sl_spectrum_method method;
    uint64_t products; /* products with W that it took */
} sl_spectrum;

typedef struct sl_spectrum_settings {
    sl_spectrum_method method;
    double tolerance; /* on `residual`; default 1e-9 */
    double work_max; /* floating-point operations after which a search ends with its bounds; default
                        3e11, a minute or two */
    const sl_watch *watch; /* default NULL. Of products with W, not of a factor or of LAPACK */
} sl_spectrum_settings;

SL_API void sl_spectrum_defaults(sl_spectrum_settings *settings);

/* The spectrum by formula, without building the graph: for any number of nodes. False, with *out
 * untouched, if family, parameters and weights have no formula. */
SL_API bool sl_spectrum_closed_form(sl_spectrum *out, const sl_topology_spec *spec);

/* Likewise the properties of W. It is symmetric, so rows and columns sum to 1. It is nonnegative,
 * unless best-constant meets very unequal degrees. */
SL_API bool sl_stochasticity_closed_form(sl_stochasticity *out, const sl_topology_spec *spec);

/* settings may be NULL. Reaching a limit is no error: see `converged`. SL_EINVAL if the method
 * does not suit the matrix. */
SL_API int sl_spectrum_compute(sl_spectrum *out, const sl_topology *topology,
                               const sl_spectrum_settings *settings, sl_error *error);

/* Does averaging converge? *rho: the long-run factor of one period on the distance to agreement,
 * which is the second largest modulus of W(period) ... W(1). If only columns sum to 1 (push-sum):
 * the factor of the weights on the way to their limit. 1 or more: averaging does not converge;
 * refuse to train. NaN: below 1, proven without computing it, as for connected topologies with
 * nonnegative weights and positive self-weights. Otherwise computed to about 1e-9, in a second or
 * two at most; beyond that, the largest value found. */
SL_API int sl_topology_contraction(const sl_topology *topology, double *rho, sl_error *error);

/* All eigenvalues, by descending real part (symmetric) or modulus. real and imaginary are (nodes);
 * imaginary may be NULL if W is symmetric. SL_EINVAL above SL_SPECTRUM_DENSE_NODES_MAX nodes. */
SL_API int sl_spectrum_eigenvalues(const sl_topology *topology, double *real, double *imaginary,
                                   sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
