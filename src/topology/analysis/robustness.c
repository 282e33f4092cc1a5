/* robustness.c - what is left of the mixing when the worst single node is lost; see
 * starling/analysis.h. */
#include <math.h>
#include <stdlib.h>

#include "starling/analysis.h"
#include "starling/spectrum.h"
#include "topology/analysis/union.h"

static uint32_t renumber(uint32_t i, uint32_t lost) {
    return i - (i > lost);
}

/* The edges that are left, explicit: a node has kept for itself what it gave the lost one (where
 * only columns sum to 1: what that one gave it). */
static uint64_t edges_without(const slot *p, bool by_column, uint32_t nodes, uint32_t lost,
                              sl_edge *edges) {
    const side *kept = by_column ? &p->out : &p->in;
    uint64_t count = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        double self = p->self[i];
        uint32_t to = renumber(i, lost);
        for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1] && i != lost; e++)
            if (p->in.peers[e] != lost)
                edges[count++] = (sl_edge){renumber(p->in.peers[e], lost), to, p->in.weights[e]};
        for (uint64_t e = kept->start[i]; e < kept->start[i + 1]; e++)
            if (kept->peers[e] == lost)
                self += kept->weights[e];
        if (i != lost)
            edges[count++] = (sl_edge){to, to, self};
    }
    return count;
}

/* rho per round of what `lost` leaves. */
static int rho_without(double *rho, const sl_topology *t, uint32_t lost, sl_slot_spec *slots,
                       sl_edge *edges, sl_error *error) {
    sl_topology_spec spec;
    sl_topology_spec_defaults(&spec);
    spec.nodes = t->nodes - 1;
    spec.family = SL_FAMILY_EDGES;
    spec.weighting = SL_WEIGHTING_EXPLICIT;
    spec.slots = slots;
    spec.slot_count = t->period;
    spec.in_parts = true;
    for (uint32_t k = 0; k < t->period; k++) {
        slots[k] = (sl_slot_spec){
            edges, edges_without(&t->slots[k], !t->stochastic.row, t->nodes, lost, edges)};
        edges += t->slots[k].edges + t->nodes;
    }
    sl_topology *rest = NULL;
    sl_spectrum spectrum;
    int result = sl_topology_open(&rest, &spec, error);
    if (result == 0 && !sl_topology_is_connected(rest))
        *rho = 1;
    else if (result == 0 && (result = sl_spectrum_compute(&spectrum, rest, NULL, error)) == 0)
        *rho = pow(spectrum.rho, 1. / t->period);
    sl_topology_close(&rest);
    return result;
}

/* Where all nodes are alike, so are their weights; of those that a solver or the links chose that
 * is not known. */
static bool follows_degrees(sl_weighting weighting) {
    return weighting != SL_WEIGHTING_FMMC && weighting != SL_WEIGHTING_FDLA &&
           weighting != SL_WEIGHTING_BANDWIDTH;
}

static int try_all(sl_node_loss *out, const sl_topology *t, sl_error *error) {
    uint64_t edges = 0;
    for (uint32_t k = 0; k < t->period; k++)
        edges += t->slots[k].edges + t->nodes;
    sl_edge *kept = calloc(edges, sizeof *kept);
    sl_slot_spec *slots = calloc(t->period, sizeof *slots);
    int result =
        kept && slots ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for the loss of a node");
    sl_node_loss worst = {0};
    uint32_t tried = sl_topology_is_alike(t) && follows_degrees(t->spec.weighting) ? 1 : t->nodes;
    for (uint32_t i = 0; i < tried && result == 0 && worst.rho < 1; i++) {
        double rho = 0;
        result = rho_without(&rho, t, i, slots, kept, error);
        if (result == 0 && rho > worst.rho)
            worst = (sl_node_loss){rho, i};
    }
    free(kept);
    free(slots);
    if (result == 0)
        *out = worst;
    return result;
}

int sl_topology_worst_loss(sl_node_loss *out, const sl_topology *topology, sl_error *error) {
    union_graph g;
    uint32_t bridges, cut_nodes, first;
    int result = sl_union_open(&g, topology, error);
    if (result != 0)
        return result;
    result = sl_union_cuts(&g, &bridges, &cut_nodes, &first, error);
    sl_union_close(&g);
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
