/* rows.c - asking an opened topology for its rows; see starling/graph.h. */
#include <math.h>
#include <stdio.h>

#include "topology/graph/graph.h"

void sl_topology_spec_defaults(sl_topology_spec *spec) {
    *spec = (sl_topology_spec){
        .family = SL_FAMILY_RING, .weighting = SL_WEIGHTING_METROPOLIS, .seed = 1};
}

static const slot *slot_of(const sl_topology *t, uint64_t round) {
    return &t->graph.slots[(round - 1) % t->graph.period];
}

static sl_row row_of(const slot *p, const side *s, uint32_t rank) {
    uint64_t start = s->start[rank];
    return (sl_row){(uint32_t)(s->start[rank + 1] - start), s->peers + start, s->weights + start,
                    p->self[rank]};
}

sl_row sl_topology_in(const sl_topology *topology, uint64_t round, uint32_t rank) {
    const slot *p = slot_of(topology, round);
    return row_of(p, &p->in, rank);
}

sl_row sl_topology_out(const sl_topology *topology, uint64_t round, uint32_t rank) {
    const slot *p = slot_of(topology, round);
    return row_of(p, &p->out, rank);
}

uint32_t sl_topology_nodes(const sl_topology *topology) {
    return topology->graph.nodes;
}

const sl_topology_spec *sl_topology_description(const sl_topology *topology) {
    return &topology->spec;
}

uint32_t sl_topology_period(const sl_topology *topology) {
    return topology->graph.period;
}

uint32_t sl_topology_window(const sl_topology *topology) {
    return topology->window;
}

uint64_t sl_topology_hash(const sl_topology *topology) {
    return topology->hash;
}

uint32_t sl_topology_peers(const sl_topology *topology, uint32_t rank, const uint32_t **peers) {
    *peers = topology->peers + topology->peers_start[rank];
    return (uint32_t)(topology->peers_start[rank + 1] - topology->peers_start[rank]);
}

uint32_t sl_common_divisor(uint32_t a, uint32_t b) {
    return b == 0 ? a : sl_common_divisor(b, a % b);
}

bool sl_weighting_is_solved(sl_weighting weighting) {
    return weighting == SL_WEIGHTING_BEST_CONSTANT || weighting == SL_WEIGHTING_FMMC ||
           weighting == SL_WEIGHTING_FDLA;
}

sl_stochasticity sl_topology_stochasticity(const sl_topology *topology) {
    return topology->graph.stochastic;
}

bool sl_topology_mended(char *out, size_t room, const sl_topology *topology) {
    double off = 0;
    for (uint32_t k = 0; k < topology->graph.period; k++)
        off = fmax(off, topology->graph.slots[k].mended);
    snprintf(out, room,
             "sums of weights miss 1, or W_ij and W_ji differ, by up to %.2g, as rounded numbers "
             "do: each node's own weight takes the rest",
             off);
    return off > 0;
}

bool sl_topology_optimum(sl_optimum *out, const sl_topology *topology) {
    const sl_topology_spec *s = &topology->spec;
    bool known = (s->weighting == SL_WEIGHTING_FMMC || s->weighting == SL_WEIGHTING_FDLA) &&
                 !s->lazy && topology->graph.period == 1 && topology->graph.slots[0].connected;
    if (known)
        *out = topology->graph.slots[0].optimum;
    return known;
}
