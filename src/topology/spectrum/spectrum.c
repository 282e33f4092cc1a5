/* spectrum.c - which method computes the spectrum of a topology, and the short report of `starling
 * check`. */
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/analysis/union.h"
#include "topology/spectrum/spectral.h"

static const double refined_above = 1e-11; /* relative error of a gap */

const char *sl_spectrum_method_name(sl_spectrum_method method) {
    switch (method) {
    case SL_SPECTRUM_AUTO:
        return "automatic";
    case SL_SPECTRUM_CLOSED_FORM:
        return "closed form";
    case SL_SPECTRUM_DENSE:
        return "dense";
    case SL_SPECTRUM_LANCZOS:
        return "Lanczos";
    case SL_SPECTRUM_INVERSE:
        return "inverse Lanczos";
    case SL_SPECTRUM_ARNOLDI:
        return "Arnoldi";
    }
    return "?";
}

void sl_spectrum_defaults(sl_spectrum_settings *settings) {
    *settings = (sl_spectrum_settings){.tolerance = 1e-9, .work_max = 3e11};
}

/* LAPACK's errors are absolute: a small gap deserves better. */
static int refine(sl_spectrum *s, const sl_topology *t, const sl_spectrum_settings *settings,
                  sl_error *error) {
    sl_spectrum better;
    int result = sl_spectrum_symmetric(&better, t, settings, error);
    if (result != 0 || better.gap_error >= s->gap_error)
        return result;
    better.multiplicity = s->multiplicity;
    better.method = SL_SPECTRUM_DENSE;
    *s = better;
    return 0;
}

static int compute(sl_spectrum *out, const sl_topology *t, const sl_spectrum_settings *settings,
                   sl_error *error) {
    if (settings->method == SL_SPECTRUM_CLOSED_FORM || settings->method == SL_SPECTRUM_AUTO) {
        if (sl_spectrum_closed_form(out, &t->spec))
            return 0;
        if (settings->method == SL_SPECTRUM_CLOSED_FORM)
            return sl_fail(
                error, SL_EINVAL,
                "spectrum: there is no formula for this family with these parameters and weights");
    }
    bool symmetric = sl_topology_is_symmetric(t),
         few = t->nodes <= (settings->method == SL_SPECTRUM_AUTO ? SL_SPECTRUM_DENSE_NODES_MAX
                                                                 : 4); /* ARPACK needs more */
    if (settings->method == SL_SPECTRUM_DENSE ||
        ((settings->method == SL_SPECTRUM_AUTO || settings->method == SL_SPECTRUM_ARNOLDI) &&
         few)) {
        int result = sl_spectrum_dense(out, t, error);
        if (result == 0 && symmetric && settings->method == SL_SPECTRUM_AUTO &&
            out->gap_error > refined_above)
            result = refine(out, t, settings, error);
        return result;
    }
    if (symmetric && settings->method != SL_SPECTRUM_ARNOLDI)
        return sl_spectrum_symmetric(out, t, settings, error);
    if (settings->method == SL_SPECTRUM_LANCZOS || settings->method == SL_SPECTRUM_INVERSE)
        return sl_fail(error, SL_EINVAL, "spectrum: the method '%s' is for one symmetric matrix",
                       sl_spectrum_method_name(settings->method));
    return sl_spectrum_arnoldi(out, t, settings, error);
}

int sl_spectrum_compute(sl_spectrum *out, const sl_topology *topology,
                        const sl_spectrum_settings *settings, sl_error *error) {
    sl_spectrum_settings defaults;
    sl_spectrum_defaults(&defaults);
    if (topology->nodes == 1) { /* agrees with itself at once */
        *out = sl_spectrum_from_gaps(1, 1, 1);
        return 0;
    }
    if (!topology->stochastic.row && !topology->stochastic.column)
        return sl_fail(error, SL_EINVAL,
                       "spectrum: rows sum to 1 in some slots and columns in others, so that no "
                       "average is kept; weigh all slots alike");
    int threads = openblas_get_num_threads(); /* sums in one order */
    openblas_set_num_threads(1);
    int result = compute(out, topology, settings != NULL ? settings : &defaults, error);
    openblas_set_num_threads(threads);
    return result;
}

int sl_spectrum_eigenvalues(const sl_topology *topology, double *real, double *imaginary,
                            sl_error *error) {
    uint32_t n = topology->nodes;
    if (n > SL_SPECTRUM_DENSE_NODES_MAX)
        return sl_fail(error, SL_EINVAL,
                       "spectrum: all eigenvalues of %u nodes are too many; at most %u nodes", n,
                       SL_SPECTRUM_DENSE_NODES_MAX);
    bool symmetric = sl_topology_is_symmetric(topology);
    if (!symmetric && imaginary == NULL)
        return sl_fail(
            error, SL_EINVAL,
            "spectrum: the matrix is not symmetric; its eigenvalues have imaginary parts");
    int result = n == 1 ? 0 : sl_spectrum_dense_eigenvalues(topology, real, imaginary, error);
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

int sl_topology_analyse(const sl_topology *topology, sl_topology_report *out, sl_error *error) {
    sl_structure degrees = {0};
    sl_topology_degrees(&degrees, topology);
    sl_topology_report r = {
        .nodes = topology->nodes,
        .period = topology->period,
        .edges = degrees.edges,
        .degree_min = degrees.degree_min,
        .degree_max = degrees.degree_max,
        .degree_mean = degrees.degree_mean,
        .connected = sl_topology_is_connected(topology),
        .stochastic = topology->stochastic,
    };
    sl_spectrum s;
    int result = sl_spectrum_compute(&s, topology, NULL, error);
    if (result != 0)
        return result;
    r.spectrum_known = s.converged;
    r.lambda_2 = s.lambda_2;
    r.lambda_n = s.lambda_n;
    r.rho = s.rho;
    r.gap = s.gap;
    *out = r;
    return 0;
}
