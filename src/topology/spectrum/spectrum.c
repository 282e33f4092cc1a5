/* spectrum.c - the spectrum of a topology: a formula, else numbers (numeric.c). */
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
