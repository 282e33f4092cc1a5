/* spectrum.c - the spectrum of a topology: a formula, else numbers (numeric.c). */
#include <math.h>

#include "topology/spectrum/spectral.h"

/* In place of a product of its first rounds, which would say little of the others: the factor of as
 * many rounds by its root mean square over all such graphs. */
static void of_endless(sl_spectrum *out, const sl_topology *t) {
    const double factor = pow(sl_endless_mean_square(&t->endless), t->graph.period / 2.0);
    *out = (sl_spectrum){.nodes = t->graph.nodes,
                         .lambda_2 = NAN,
                         .lambda_n = NAN,
                         .gap_lambda2 = NAN,
                         .gap_lambda_n = NAN,
                         .rho = factor,
                         .gap = 1 - factor,
                         .singular_2 = factor,
                         .converged = true,
                         .method = SL_SPECTRUM_CLOSED_FORM};
}

int sl_spectrum_compute(sl_spectrum *out, const sl_topology *topology,
                        const sl_spectrum_settings *settings, sl_error *error) {
    sl_spectrum_method method = settings != NULL ? settings->method : SL_SPECTRUM_AUTO;
    if (sl_topology_is_endless(topology)) {
        of_endless(out, topology);
        return 0;
    }
    bool formula = method == SL_SPECTRUM_AUTO || method == SL_SPECTRUM_CLOSED_FORM;
    if (formula && topology->graph.nodes > 1 && sl_spectrum_closed_form(out, &topology->spec))
        return 0;
    if (method == SL_SPECTRUM_CLOSED_FORM && topology->graph.nodes > 1)
        return sl_fail(
            error, SL_EINVAL,
            "spectrum: there is no formula for this family with these parameters and weights");
    return sl_graph_spectrum(out, &topology->graph, settings, error);
}
