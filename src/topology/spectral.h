/* spectral.h - what the files behind starling/spectrum.h share. */
#ifndef SL_SPECTRAL_H
#define SL_SPECTRAL_H

#include "starling/spectrum.h"
#include "topology/graph.h"

/* The symmetric spectrum that two gaps stand for: lambda_2, lambda_n, rho, gap, singular_2. */
sl_spectrum spectrum_from_gaps(uint32_t nodes, double gap_lambda2, double gap_lambda_n);

/* ---- dense.c ---- */

/* All eigenvalues but the 1 of the constant vector: (nodes - 1), symmetric ascending, else by falling modulus. imaginary is NULL if symmetric;
 * singular_2 only if not symmetric. */
int dense_eigenvalues(const sl_topology *t, double *real, double *imaginary, double *singular_2, sl_error *error);
/* One period of a topology is a symmetric matrix. */
bool topology_is_symmetric(const sl_topology *t);
int dense_spectrum(sl_spectrum *out, const sl_topology *t, sl_error *error);

/* ---- symmetric.c ---- */

/* By iterations with sparse matrices; settings->method is SL_SPECTRUM_AUTO, _LANCZOS or _INVERSE. */
int symmetric_spectrum(sl_spectrum *out, const sl_topology *t, const sl_spectrum_settings *settings, sl_error *error);

#endif
