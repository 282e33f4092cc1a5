/* spectral.c - what all methods share: their names and settings, and a spectrum of what one found;
 * see spectral.h. */
#include <math.h>

#include "topology/spectrum/spectral.h"

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

sl_spectrum sl_spectrum_from_gaps(uint32_t nodes, double gap_lambda2, double gap_lambda_n) {
    sl_spectrum s = {
        .nodes = nodes,
        .symmetric = true,
        .lambda_2 = 1 - gap_lambda2,
        .lambda_n = gap_lambda_n - 1,
        .gap_lambda2 = gap_lambda2,
        .gap_lambda_n = gap_lambda_n,
        .gap = fmin(gap_lambda2, gap_lambda_n),
        .converged = true,
    };
    s.rho = s.singular_2 = fmax(fabs(s.lambda_2), fabs(s.lambda_n));
    return s;
}

sl_spectrum sl_spectrum_of_modulus(uint32_t nodes, double rho, double singular_2) {
    return (sl_spectrum){
        .nodes = nodes,
        .lambda_2 = NAN,
        .lambda_n = NAN,
        .gap_lambda2 = NAN,
        .gap_lambda_n = NAN,
        .rho = rho,
        .gap = 1 - rho,
        .singular_2 = singular_2,
        .converged = true,
    };
}

static void vanish(double *value, double rounding) {
    if (fabs(*value) <= rounding)
        *value = 0;
}

void sl_spectrum_round(sl_spectrum *s, double rounding) {
    vanish(&s->lambda_2, rounding);
    vanish(&s->lambda_n, rounding);
    vanish(&s->rho, rounding);
    vanish(&s->singular_2, rounding);
}
