/* spectral.h - what the files behind starling/spectrum.h share. */
#ifndef SL_SPECTRAL_H
#define SL_SPECTRAL_H

#include "starling/spectrum.h"
#include "topology/graph/graph.h"

#define GAP_ERROR_MAX 1e-3 /* relative: a gap beyond it counts as not found */

/* The symmetric spectrum that two gaps stand for: lambda_2, lambda_n, rho, gap, singular_2. */
sl_spectrum sl_spectrum_from_gaps(uint32_t nodes, double gap_lambda2, double gap_lambda_n);
/* That of a matrix that is not symmetric. */
sl_spectrum sl_spectrum_of_modulus(uint32_t nodes, double rho, double singular_2);

/* Eigenvalues that are 0 up to rounding are 0. */
void sl_spectrum_round(sl_spectrum *s, double rounding);

/* below.c: is an eigenvalue of a slot's (W + W')/2 below the bound? A few products decide: of what
 * is only just below, perhaps not. */
int sl_graph_is_below(bool *below, const graph *g, double bound, sl_error *error);

/* circulant.c: of the Laplacian of a connected circulant graph of at least 2 nodes, offsets 1 ..
 * nodes/2: the smallest eigenvalue above 0, how often it stands, and how far the largest is below
 * twice the degree. False if it cannot be told quickly. */
bool sl_spectrum_circulant_extremes(const uint32_t *offsets, uint32_t count, uint32_t nodes,
                                    double *lambda_2, uint32_t *multiplicity, double *lack);

/* numeric.c: of a period's rows, by what sl_spectrum_compute takes where there is no formula;
 * settings may be NULL. */
int sl_graph_spectrum(sl_spectrum *out, const graph *g, const sl_spectrum_settings *settings,
                      sl_error *error);

/* ---- dense.c ---- */

/* All eigenvalues but the 1 of the constant vector: (nodes - 1), symmetric ascending, else by
 * falling modulus. imaginary may be NULL if symmetric. */
int sl_spectrum_dense_eigenvalues(const graph *g, double *real, double *imaginary, sl_error *error);
int sl_spectrum_dense(sl_spectrum *out, const graph *g, sl_error *error);

/* ---- symmetric.c ---- */

/* By iterations with sparse matrices; settings->method is SL_SPECTRUM_AUTO, _LANCZOS or _INVERSE.
 */
int sl_spectrum_symmetric(sl_spectrum *out, const graph *g, const sl_spectrum_settings *settings,
                          sl_error *error);

/* ---- arnoldi.c ---- */

/* By iterations with sparse matrices, whether symmetric or not. */
int sl_spectrum_arnoldi(sl_spectrum *out, const graph *g, const sl_spectrum_settings *settings,
                        sl_error *error);
/* ||M - J||_2; -1 without memory. */
int sl_spectrum_singular_2(double *value, const graph *g, double work_max);
/* Some power of M, about 2 log2 n at most, averages up to rounding: all eigenvalues but the 1 are
 * 0. */
bool sl_spectrum_averages_exactly(const graph *g);

#endif
