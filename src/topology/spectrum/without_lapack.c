/* without_lapack.c - in place of numeric.c in the core of libstarling, which has no LAPACK.
 *
 * Formulas still serve, and most topologies need no number to be known to converge.
 */
#include "topology/spectrum/spectral.h"

int sl_graph_spectrum(sl_spectrum *out, const graph *g, const sl_spectrum_settings *settings,
                      sl_error *error) {
    (void)settings;
    if (g->nodes > 1)
        return sl_fail(error, SL_EINVAL,
                       "spectrum: the eigenvalues of %u nodes with these weights need LAPACK, and "
                       "this is libstarling's core, which has none; install libstarling0",
                       g->nodes);
    *out = sl_spectrum_from_gaps(1, 1, 1);
    return 0;
}
