/* below.c - is an eigenvalue of W clearly below a bound?
 *
 * What is taken by default hangs on the answer, so it is the same on every machine: plain sums in a
 * fixed order, a fixed number of them. v <- v - S v of S = (W + W')/2 turns towards the eigenvector
 * of its smallest eigenvalue, and v'S v/v'v never is below that.
 */
#include "topology/spectrum/spectral.h"

#include <stdlib.h>

#include "topology/graph/apply.h"

enum { STEPS = 100 };
static const double clearly = 1e-6; /* beyond any rounding */

/* v'S v/v'v; v becomes v - S v, of length 1. */
static double step(const slot *p, uint32_t nodes, double *v, double *out, double *back) {
    double mixed = 0, whole = 0;
    sl_slot_apply(p, nodes, v, out);
    sl_slot_apply_transposed(p, nodes, v, back);
    for (uint32_t i = 0; i < nodes; i++) {
        const double s = (out[i] + back[i]) / 2;
        mixed += v[i] * s;
        whole += v[i] * v[i];
        v[i] -= s;
    }
    const double length = sl_vector_length(v, nodes);
    for (uint32_t i = 0; i < nodes && length > 0; i++)
        v[i] /= length;
    return whole > 0 ? mixed / whole : 0;
}

int sl_graph_is_below(bool *below, const graph *g, double bound, sl_error *error) {
    double *memory = calloc(3 * (size_t)g->nodes, sizeof *memory);
    if (memory == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", g->nodes);
    double *v = memory, *out = v + g->nodes, *back = out + g->nodes;
    *below = false;
    for (uint32_t k = 0; k < g->period && !*below; k++) {
        sl_vector_random(v, g->nodes, k);
        for (int i = 0; i < STEPS && !*below; i++)
            *below = step(&g->slots[k], g->nodes, v, out, back) < bound - clearly;
    }
    free(memory);
    return 0;
}
