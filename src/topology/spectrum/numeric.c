/* numeric.c - which method computes the spectrum of rows. */
#include <cblas.h>
#include <string.h>

#include "topology/spectrum/spectral.h"

static const double refined_above = 1e-11; /* relative error of a gap */

/* LAPACK's errors are absolute: a small gap deserves better. */
static int refine(sl_spectrum *s, const graph *g, const sl_spectrum_settings *settings,
                  sl_error *error) {
    sl_spectrum better;
    int result = sl_spectrum_symmetric(&better, g, settings, error);
    if (result != 0 || better.gap_error >= s->gap_error)
        return result;
    better.multiplicity = s->multiplicity;
    better.method = SL_SPECTRUM_DENSE;
    *s = better;
    return 0;
}

static bool is_few(const graph *g, sl_spectrum_method method) {
    enum { ARPACK_NODES_MIN = 5 };
    return method == SL_SPECTRUM_AUTO      ? g->nodes <= SL_SPECTRUM_DENSE_NODES_MAX
           : method == SL_SPECTRUM_ARNOLDI ? g->nodes < ARPACK_NODES_MIN
                                           : false;
}

static int compute(sl_spectrum *out, const graph *g, const sl_spectrum_settings *settings,
                   sl_error *error) {
    sl_spectrum_method method = settings->method;
    bool symmetric = sl_graph_is_symmetric(g);
    if (method == SL_SPECTRUM_DENSE || is_few(g, method)) {
        int result = sl_spectrum_dense(out, g, error);
        if (result == 0 && symmetric && method == SL_SPECTRUM_AUTO &&
            out->gap_error > refined_above)
            result = refine(out, g, settings, error);
        return result;
    }
    if (symmetric && method != SL_SPECTRUM_ARNOLDI)
        return sl_spectrum_symmetric(out, g, settings, error);
    if (method == SL_SPECTRUM_LANCZOS || method == SL_SPECTRUM_INVERSE)
        return sl_fail(error, SL_EINVAL, "spectrum: the method '%s' is for one symmetric matrix",
                       sl_spectrum_method_name(method));
    return sl_spectrum_arnoldi(out, g, settings, error);
}

int sl_graph_spectrum(sl_spectrum *out, const graph *g, const sl_spectrum_settings *settings,
                      sl_error *error) {
    sl_spectrum_settings defaults;
    sl_spectrum_defaults(&defaults);
    if (g->nodes == 1) { /* agrees with itself at once */
        *out = sl_spectrum_from_gaps(1, 1, 1);
        return 0;
    }
    if (!g->stochastic.row && !g->stochastic.column)
        return sl_fail(error, SL_EINVAL,
                       "spectrum: rows sum to 1 in some slots and columns in others, so that no "
                       "average is kept; weigh all slots alike");
    int threads = openblas_get_num_threads(); /* sums in one order */
    openblas_set_num_threads(1);
    int result = compute(out, g, settings != NULL ? settings : &defaults, error);
    openblas_set_num_threads(threads);
    return result;
}

int sl_spectrum_eigenvalues(const sl_topology *topology, double *real, double *imaginary,
                            sl_error *error) {
    const graph *g = &topology->graph;
    uint32_t n = g->nodes;
    if (n > SL_SPECTRUM_DENSE_NODES_MAX)
        return sl_fail(error, SL_EINVAL,
                       "spectrum: all eigenvalues of %u nodes are too many; at most %u nodes", n,
                       SL_SPECTRUM_DENSE_NODES_MAX);
    bool symmetric = sl_graph_is_symmetric(g);
    if (!symmetric && imaginary == NULL)
        return sl_fail(
            error, SL_EINVAL,
            "spectrum: the matrix is not symmetric; its eigenvalues have imaginary parts");
    int result = n == 1 ? 0 : sl_spectrum_dense_eigenvalues(g, real, imaginary, error);
    if (result != 0)
        return result;
    for (uint32_t i = 0; symmetric && i < (n - 1) / 2; i++) { /* falling */
        double swap = real[i];
        real[i] = real[n - 2 - i];
        real[n - 2 - i] = swap;
    }
    memmove(real + 1, real, (n - 1) * sizeof *real);
    real[0] = 1;
    if (imaginary != NULL && symmetric)
        memset(imaginary, 0, n * sizeof *imaginary);
    else if (imaginary != NULL) {
        memmove(imaginary + 1, imaginary, (n - 1) * sizeof *imaginary);
        imaginary[0] = 0;
    }
    return 0;
}
