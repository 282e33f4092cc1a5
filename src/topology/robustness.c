/* robustness.c - what is left of the mixing when the worst single node is lost; see starling/analysis.h. */
#include <math.h>
#include <stdlib.h>

#include "starling/analysis.h"
#include "starling/spectrum.h"
#include "topology/union.h"

/* The edges that are left, explicit, without own weights: a row (push-sum: a column) that is completed to 1 has kept the lost node's weight for itself. */
static uint64_t edges_without(const phase *p, uint32_t nodes, uint32_t lost, sl_edge *edges) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < nodes; i++)
        for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++) {
            uint32_t j = p->in.peers[e];
            if (i != lost && j != lost)
                edges[count++] = (sl_edge){j - (j > lost), i - (i > lost), p->in.weights[e]};
        }
    return count;
}

/* rho per round of what `lost` leaves. */
static int rho_without(double *rho, const sl_topology *t, uint32_t lost, sl_phase_spec *phases, sl_edge *edges, sl_error *error) {
    sl_topology_spec spec;
    sl_topology_spec_defaults(&spec);
    spec.nodes = t->nodes - 1;
    spec.family = SL_FAMILY_EDGES;
    spec.weighting = SL_WEIGHTING_EXPLICIT;
    spec.self_completes_column = !t->stochastic.row;
    spec.phases = phases;
    spec.phase_count = t->period;
    spec.in_parts = true;
    for (uint32_t k = 0; k < t->period; k++) {
        phases[k] = (sl_phase_spec){edges, edges_without(&t->phases[k], t->nodes, lost, edges)};
        edges += t->phases[k].edges;
    }
    sl_topology *rest = NULL;
    sl_spectrum spectrum;
    int result = sl_topology_open(&rest, &spec, error);
    if (result == 0 && !topology_is_connected(rest))
        *rho = 1;
    else if (result == 0 && (result = sl_spectrum_compute(&spectrum, rest, NULL, error)) == 0)
        *rho = pow(spectrum.rho, 1. / t->period);
    sl_topology_close(&rest);
    return result;
}

static int try_all(sl_node_loss *out, const sl_topology *t, sl_error *error) {
    uint64_t edges = 0;
    for (uint32_t k = 0; k < t->period; k++)
        edges += t->phases[k].edges;
    sl_edge *kept = calloc(edges + 1, sizeof *kept);
    sl_phase_spec *phases = calloc(t->period, sizeof *phases);
    int result = kept && phases ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for the loss of a node");
    sl_node_loss worst = {0};
    uint32_t tried = topology_is_alike(t) ? 1 : t->nodes;
    for (uint32_t i = 0; i < tried && result == 0 && worst.rho < 1; i++) {
        double rho = 0;
        result = rho_without(&rho, t, i, phases, kept, error);
        if (result == 0 && rho > worst.rho)
            worst = (sl_node_loss){rho, i};
    }
    free(kept);
    free(phases);
    if (result == 0)
        *out = worst;
    return result;
}

int sl_topology_worst_loss(sl_node_loss *out, const sl_topology *topology, sl_error *error) {
    union_graph g;
    uint32_t bridges, cut_nodes, first;
    int result = union_open(&g, topology, error);
    if (result != 0)
        return result;
    result = find_cuts(&g, &bridges, &cut_nodes, &first, error);
    union_close(&g);
    if (result != 0)
        return result;
    if (cut_nodes > 0)
        *out = (sl_node_loss){1, first};
    else if (topology->nodes > SL_LOSS_NODES_MAX)
        *out = (sl_node_loss){.rho = NAN};
    else if (topology->nodes <= 2)
        *out = (sl_node_loss){0};
    else
        return try_all(out, topology, error);
    return 0;
}
