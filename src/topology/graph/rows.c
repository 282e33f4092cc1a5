/* rows.c - asking an opened topology for its rows; see starling/graph.h. */
#include <math.h>
#include <stdio.h>

#include "topology/graph/graph.h"

#include <assert.h>
#include <stdlib.h>

void sl_topology_spec_defaults(sl_topology_spec *spec) {
    *spec = (sl_topology_spec){
        .family = SL_FAMILY_RING, .weighting = SL_WEIGHTING_METROPOLIS, .seed = 1};
}

static const slot *slot_of(const sl_topology *t, uint64_t round) {
    assert(!sl_topology_is_endless(t) || round <= t->graph.period);
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

bool sl_topology_is_endless(const sl_topology *topology) {
    return topology->endless.nodes > 0;
}

uint32_t sl_topology_degree_max(const sl_topology *topology) {
    return topology->endless.degree;
}

/* The place of a member; SL_NODES_MAX: it is none. */
static uint32_t member_place(const sl_topology *t, uint32_t rank) {
    uint32_t low = 0, high = t->endless.nodes;
    if (t->members == NULL)
        return rank;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (t->members[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->endless.nodes && t->members[low] == rank ? low : SL_NODES_MAX;
}

int sl_topology_meet_all(sl_topology *t, sl_error *error) {
    const uint32_t n = t->endless.nodes;
    uint32_t *peers = malloc(((size_t)n * (n - 1) + 1) * sizeof *peers);
    if (peers == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for the peers of %u nodes", n);
    uint64_t at = 0;
    for (uint32_t i = 0; i < t->graph.nodes; i++) {
        const bool is_member = member_place(t, i) != SL_NODES_MAX;
        t->peers_start[i] = at;
        for (uint32_t k = 0; is_member && k < n; k++) {
            const uint32_t other = t->members != NULL ? t->members[k] : k;
            if (other != i)
                peers[at++] = other;
        }
    }
    t->peers_start[t->graph.nodes] = at;
    free(t->peers);
    t->peers = peers;
    return 0;
}

sl_row sl_topology_row(const sl_topology *topology, uint64_t round, uint32_t rank, uint32_t *peers,
                       double *weights) {
    const sl_topology *t = topology;
    const uint32_t place = member_place(t, rank);
    assert(sl_topology_is_endless(t));
    if (place == SL_NODES_MAX)
        return (sl_row){.self = 1};
    const bool lazy = t->endless.lazy;
    const double weight = 1.0 / (t->endless.degree + 1.0);
    sl_row row = {.count = sl_endless_peers(&t->endless, round, place, peers),
                  .peers = peers,
                  .weights = weights};
    double given = 0;
    for (uint32_t k = 0; k < row.count; k++) {
        peers[k] = t->members != NULL ? t->members[peers[k]] : peers[k];
        weights[k] = lazy ? weight / 2 : weight;
        given += weight;
    }
    row.self = lazy ? (1 + (1 - given)) / 2 : 1 - given;
    return row;
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
