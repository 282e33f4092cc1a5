/* contraction.c - does averaging with a topology's weights converge?
 *
 * Most topologies need no computation. M is the product of a period's slots.
 * - No weight is negative and every node keeps a part of its own: M is a stochastic matrix with a
 *   positive diagonal whose graph holds all edges, so that it is primitive if the graph is strongly
 *   connected, and rho < 1 (Perron, Frobenius).
 * - No weight is negative, one slot: rho < 1 if the lengths of all cycles have no common divisor;
 *   otherwise the values go round for ever, and rho = 1.
 * - Weights of an optimization: symmetric, and in each component of a slot all eigenvalues but one
 *   are in (-1, 1). |W x| = |x| then says that x is constant on each component, and over a period
 *   whose slots together are connected, that x is constant.
 */
#include <math.h>
#include <stdlib.h>

#include "topology/spectrum/spectral.h"

static const double vanishing = 1e-12; /* a gap that is 0 up to rounding */
static const double work_max = 2e9;    /* a second or two */
enum { DENSE_NODES_MAX = 128 };        /* above, iterations are faster than LAPACK */

static bool keeps_own(const graph *g) {
    for (uint32_t k = 0; k < g->period; k++)
        for (uint32_t i = 0; i < g->nodes; i++)
            if (g->slots[k].self[i] <= SL_STOCHASTIC_TOLERANCE)
                return false;
    return true;
}

/* Of the lengths of all cycles of a strongly connected slot: the divisor common to all
 * level(i) + 1 - level(j), for levels of a search from node 0. 0 without memory. */
static uint32_t cycle_divisor(const slot *s, uint32_t nodes) {
    uint32_t *level = calloc(nodes, sizeof *level), *queue = calloc(nodes, sizeof *queue);
    uint32_t count = 1, divisor = 0;
    bool allocated = level != NULL && queue != NULL;
    if (allocated)
        level[0] = 1;
    for (uint32_t done = 0; allocated && done < count; done++) {
        uint32_t i = queue[done];
        if (s->self[i] > SL_STOCHASTIC_TOLERANCE)
            divisor = 1;
        for (uint64_t e = s->in.start[i]; e < s->in.start[i + 1]; e++) {
            uint32_t j = s->in.peers[e];
            if (level[j] == 0) {
                level[j] = level[i] + 1;
                queue[count++] = j;
            }
            uint32_t reached = level[i] + 1;
            divisor = sl_common_divisor(divisor, reached > level[j] ? reached - level[j]
                                                                    : level[j] - reached);
        }
    }
    free(level);
    free(queue);
    return divisor;
}

static int compute(double *rho, const graph *g, sl_error *error) {
    sl_spectrum_settings settings;
    sl_spectrum_defaults(&settings);
    settings.work_max = work_max;
    settings.method = g->nodes <= DENSE_NODES_MAX ? SL_SPECTRUM_DENSE
                      : sl_graph_is_symmetric(g)  ? SL_SPECTRUM_LANCZOS
                                                  : SL_SPECTRUM_ARNOLDI;
    sl_spectrum s;
    int result = sl_graph_spectrum(&s, g, &settings, error);
    if (result == 0)
        *rho = fabs(s.gap) <= vanishing ? 1 : s.rho;
    return result;
}

int sl_topology_contraction(const sl_topology *topology, double *rho, sl_error *error) {
    const graph *g = &topology->graph;
    bool connected, signless = g->stochastic.nonnegative;
    int result = sl_graph_is_connected(&connected, g, error);
    *rho = NAN;
    if (result != 0)
        return result;
    if (!g->stochastic.row && !g->stochastic.column)
        return sl_fail(error, SL_EINVAL,
                       "weights: rows sum to 1 in some slots and columns in others, so that no "
                       "average is kept; weigh all slots alike");
    if (g->nodes == 1 || (connected && (sl_weighting_is_solved(topology->spec.weighting) ||
                                        (signless && keeps_own(g)))))
        return 0;
    if (!connected && signless) {
        *rho = 1;
        return 0;
    }
    if (!signless || g->period > 1)
        return compute(rho, g, error);
    uint32_t divisor = cycle_divisor(&g->slots[0], g->nodes);
    if (divisor == 0)
        return sl_fail(error, SL_ENOMEM, "out of memory for the cycles of %u nodes", g->nodes);
    if (divisor > 1)
        *rho = 1;
    return 0;
}
