/* spectrum.c - the spectrum of a topology: a formula, else numbers (numeric.c). */
#include "topology/spectrum/spectral.h"

int sl_spectrum_compute(sl_spectrum *out, const sl_topology *topology,
                        const sl_spectrum_settings *settings, sl_error *error) {
    sl_spectrum_method method = settings != NULL ? settings->method : SL_SPECTRUM_AUTO;
    bool formula = method == SL_SPECTRUM_AUTO || method == SL_SPECTRUM_CLOSED_FORM;
    if (formula && topology->graph.nodes > 1 && sl_spectrum_closed_form(out, &topology->spec))
        return 0;
    if (method == SL_SPECTRUM_CLOSED_FORM && topology->graph.nodes > 1)
        return sl_fail(
            error, SL_EINVAL,
            "spectrum: there is no formula for this family with these parameters and weights");
    return sl_graph_spectrum(out, &topology->graph, settings, error);
}
