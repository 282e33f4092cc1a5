/* robustness.c - what is left of the mixing when the worst single node is lost; see
 * starling/analysis.h. */
#include <math.h>
#include <stdlib.h>

#include "starling/analysis.h"
#include "topology/analysis/union.h"
#include "topology/spectrum/spectral.h"

static uint32_t renumber(uint32_t i, uint32_t lost) {
    return i - (i > lost);
}

/* The edges that are left, with weights: a node has kept for itself what it gave the lost one
 * (where only columns sum to 1: what that one gave it). */
static void list_kept(edge_list *out, const slot *p, bool by_column, uint32_t nodes,
                      uint32_t lost) {
    const side *kept = by_column ? &p->out : &p->in;
    for (uint32_t i = 0; i < nodes; i++) {
        double self = p->self[i];
        uint32_t to = renumber(i, lost);
        if (i == lost)
            continue;
        for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++)
            if (p->in.peers[e] != lost)
                sl_edge_list_push_weighted(out, renumber(p->in.peers[e], lost), to,
                                           p->in.weights[e]);
        for (uint64_t e = kept->start[i]; e < kept->start[i + 1]; e++)
            if (kept->peers[e] == lost)
                self += kept->weights[e];
        sl_edge_list_push_weighted(out, to, to, self);
    }
}

static int build_rest(graph *out, const graph *g, uint32_t lost, sl_error *error) {
    *out = (graph){.nodes = g->nodes - 1, .slots = calloc(g->period, sizeof *out->slots)};
    int result =
        out->slots != NULL ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for %u slots", g->period);
    for (; result == 0 && out->period < g->period; out->period++) {
        edge_list edges = {0};
        slot *built = &out->slots[out->period];
        list_kept(&edges, &g->slots[out->period], !g->stochastic.row, g->nodes, lost);
        result = sl_slot_build(built, &edges, out->nodes, error);
        sl_edge_list_close(&edges);
        if (result == 0)
            sl_slot_mirror_weights(built, out->nodes);
    }
    out->stochastic = result == 0 ? sl_graph_stochasticity(out) : out->stochastic;
    return result;
}

/* rho per round of what `lost` leaves. */
static int rho_without(double *rho, const graph *g, uint32_t lost, sl_error *error) {
    graph rest;
    sl_spectrum spectrum;
    bool connected = false;
    int result = build_rest(&rest, g, lost, error);
    if (result == 0)
        result = sl_graph_is_connected(&connected, &rest, error);
    if (result == 0 && !connected)
        *rho = 1;
    else if (result == 0 && (result = sl_graph_spectrum(&spectrum, &rest, NULL, error)) == 0)
        *rho = pow(spectrum.rho, 1. / g->period);
    sl_graph_close(&rest);
    return result;
}

/* Where all nodes are alike, so are their weights; of those that a solver or the links chose that
 * is not known. */
static bool follows_degrees(sl_weighting weighting) {
    return weighting != SL_WEIGHTING_FMMC && weighting != SL_WEIGHTING_FDLA &&
           weighting != SL_WEIGHTING_BANDWIDTH;
}

static int try_all(sl_node_loss *out, const sl_topology *t, sl_error *error) {
    sl_node_loss worst = {0};
    int result = 0;
    bool alike = sl_topology_is_alike(t) && follows_degrees(t->spec.weighting);
    uint32_t tried = alike ? 1 : t->graph.nodes;
    for (uint32_t i = 0; i < tried && result == 0 && worst.rho < 1; i++) {
        double rho = 0;
        result = rho_without(&rho, &t->graph, i, error);
        if (result == 0 && rho > worst.rho)
            worst = (sl_node_loss){rho, i};
    }
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
    else if (topology->graph.nodes > SL_LOSS_NODES_MAX)
        *out = (sl_node_loss){.rho = NAN};
    else if (topology->graph.nodes <= 2)
        *out = (sl_node_loss){0};
    else
        return try_all(out, topology, error);
    return 0;
}
