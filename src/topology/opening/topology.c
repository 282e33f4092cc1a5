/* topology.c - opening a topology and asking it for rows; see starling/topology.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "starling/topology.h"
#include "topology/family/family.h"
#include "topology/links/links.h"
#include "topology/weights/optimal.h"

static const uint64_t attempts_max = 100; /* at a connected random graph */

/* ---- explicit edges ---- */

static int push_listed(edge_list *list, const sl_topology_spec *spec, const sl_edge *e,
                       sl_error *error) {
    if (e->from >= spec->nodes || e->to >= spec->nodes)
        return sl_fail(error, SL_EINVAL, "edges: edge [%u, %u] names a node that is not in 0..%u",
                       e->from, e->to, spec->nodes - 1);
    bool weighted = spec->weighting == SL_WEIGHTING_EXPLICIT;
    if (e->from == e->to && !weighted)
        return sl_fail(
            error, SL_EINVAL,
            "edges: self-loop [%u, %u] has no weight; leave it out (every node keeps a weight for "
            "itself) or give every edge a weight",
            e->from, e->to);
    if (weighted)
        sl_edge_list_push_weighted(list, e->from, e->to, e->weight);
    else if (spec->directed)
        sl_edge_list_push(list, e->from, e->to);
    else /* listed once */
        sl_edge_list_push_both(list, e->from, e->to);
    return 0;
}

static int listed_edges(const sl_topology_spec *spec, edge_lists *out, sl_error *error) {
    if (spec->slot_count == 0 || spec->slot_count > UINT32_MAX)
        return sl_fail(error, SL_EINVAL, "edges: at least one slot of edges is needed");
    int result = 0;
    for (size_t k = 0; k < spec->slot_count && result == 0; k++) {
        edge_list *list = sl_edge_lists_add(out);
        for (size_t e = 0; e < spec->slots[k].edge_count && result == 0; e++)
            result = push_listed(list, spec, &spec->slots[k].edges[e], error);
    }
    return result;
}

/* ---- building ---- */

static int draw_edges(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                      sl_error *error) {
    int result = 0;
    if (spec->family == SL_FAMILY_EDGES)
        result = listed_edges(spec, out, error);
    else if (spec->nodes > 1)
        result = sl_family_generate(spec, attempt, out, error);
    if (result == 0 && out->count == 0)
        sl_edge_lists_add(out); /* one node has nobody to talk to */
    if (result == 0 && out->lost.out_of_memory)
        result = sl_fail(error, SL_ENOMEM, "out of memory for a schedule of %u rounds", out->count);
    return result;
}

static int build_slots(sl_topology *t, const sl_topology_spec *spec, uint64_t attempt,
                       sl_error *error) {
    edge_lists all = {0};
    int result = draw_edges(spec, attempt, &all, error);
    t->graph.period = result == 0 ? all.count : 0;
    t->graph.slots = calloc((size_t)t->graph.period + 1, sizeof *t->graph.slots);
    if (result == 0 && t->graph.slots == NULL)
        result = sl_fail(error, SL_ENOMEM, "out of memory for %u slots", t->graph.period);
    for (uint32_t k = 0; result == 0 && k < t->graph.period; k++) {
        result = sl_slot_build(&t->graph.slots[k], &all.lists[k], t->graph.nodes, error);
        if (result == 0)
            result = sl_slot_weigh(&t->graph.slots[k], spec, t->graph.nodes, error);
        if (result != 0 && t->graph.period > 1)
            sl_fail_prefix(error, result, "schedule[%u]", k);
    }
    sl_edge_lists_close(&all);
    return result;
}

static int build_connected(sl_topology *t, const sl_topology_spec *spec, sl_error *error) {
    const sl_family_info *info = sl_family_describe(spec->family);
    uint32_t asked = info->random ? sl_family_of(spec->family)->attempts_max : 1;
    uint64_t attempts = asked ? asked : attempts_max;
    for (uint64_t attempt = 0; attempt < attempts; attempt++) {
        sl_graph_close(&t->graph);
        int result = build_slots(t, spec, attempt, error);
        bool connected = false;
        if (result == 0)
            result = sl_graph_is_connected(&connected, &t->graph, error);
        if (result != 0 || connected)
            return result;
    }
    if (spec->in_parts)
        return 0;
    if (attempts > 1)
        return sl_fail(
            error, SL_EINVAL,
            "family \"%s\": none of %llu graphs from seed %llu was connected; raise the %s",
            info->name, (unsigned long long)attempts, (unsigned long long)spec->seed,
            sl_family_of(spec->family)->raise);
    char parts[PARTS_TEXT_MAX];
    sl_graph_say_parts(parts, sizeof parts, &t->graph);
    return sl_fail(error, SL_EINVAL, "edges: the graph is not connected%s: %s; add edges",
                   t->graph.slots[0].undirected && t->graph.period == 1
                       ? ""
                       : " (every node must reach every other along the edges' direction)",
                   parts);
}

static uint64_t mix(uint64_t hash, const void *data, size_t bytes) {
    const uint8_t *p = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ p[i]) * 0x100000001B3ull; /* FNV-1a */
    return hash;
}

static uint64_t hash_of(const sl_topology *t) {
    uint64_t hash = mix(mix(0xCBF29CE484222325ull, &t->graph.nodes, sizeof t->graph.nodes),
                        &t->graph.period, sizeof t->graph.period);
    if (t->endless.nodes > 0) /* not the schedule of its first rounds alone */
        hash = mix(hash, &t->endless.seed, sizeof t->endless.seed);
    for (uint32_t k = 0; k < t->graph.period; k++) {
        const slot *p = &t->graph.slots[k];
        hash = mix(hash, p->in.start, ((size_t)t->graph.nodes + 1) * sizeof *p->in.start);
        hash = mix(hash, p->in.peers, p->edges * sizeof *p->in.peers);
        hash = mix(hash, p->in.weights, p->edges * sizeof *p->in.weights);
        hash = mix(hash, p->self, t->graph.nodes * sizeof *p->self);
    }
    return hash;
}

static int by_number(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

static uint64_t append_row(uint32_t *peers, uint64_t at, const side *s, uint32_t i) {
    uint64_t count = s->start[i + 1] - s->start[i];
    memcpy(peers + at, s->peers + s->start[i], count * sizeof *peers);
    return at + count;
}

/* Every node's peers over all slots and both directions, without repetition. */
static int gather_peers(sl_topology *t, sl_error *error) {
    uint64_t total = 0, at = 0;
    for (uint32_t k = 0; k < t->graph.period; k++)
        total += 2 * t->graph.slots[k].edges;
    t->peers_start = calloc((size_t)t->graph.nodes + 1, sizeof *t->peers_start);
    t->peers = malloc((total + 1) * sizeof *t->peers);
    if (t->peers_start == NULL || t->peers == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for the peers of %u nodes", t->graph.nodes);
    bool sorted = t->graph.period == 1 && t->graph.slots[0].undirected;
    for (uint32_t i = 0; i < t->graph.nodes; i++) {
        uint64_t from = t->peers_start[i] = at, end = at;
        for (uint32_t k = 0; k < t->graph.period; k++) {
            end = append_row(t->peers, end, &t->graph.slots[k].in, i);
            if (!t->graph.slots[k].undirected)
                end = append_row(t->peers, end, &t->graph.slots[k].out, i);
        }
        if (!sorted)
            qsort(t->peers + from, end - from, sizeof *t->peers, by_number);
        for (uint64_t e = from; e < end; e++)
            if (at == from || t->peers[at - 1] != t->peers[e])
                t->peers[at++] = t->peers[e];
    }
    t->peers_start[t->graph.nodes] = at;
    return 0;
}

static bool is_endless(const sl_topology_spec *spec) {
    return spec->family != SL_FAMILY_EDGES && spec->nodes > 1 &&
           sl_family_of(spec->family)->endless;
}

int sl_topology_open(sl_topology **out, const sl_topology_spec *spec, sl_error *error) {
    if (spec->nodes < 1 || spec->nodes > SL_NODES_MAX)
        return sl_fail(error, SL_EINVAL, "nodes: %u is not allowed; it must be from 1 to %u",
                       spec->nodes, SL_NODES_MAX);
    sl_topology *t = calloc(1, sizeof *t);
    if (t == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a topology");
    sl_topology_spec settled = *spec;
    int result = spec->family == SL_FAMILY_EDGES ? 0 : sl_family_settle(&settled, error);
    t->spec = settled;
    t->spec.slots = NULL;
    t->spec.watch = NULL;
    t->links = spec->links != NULL ? sl_links_copy(spec->links) : NULL;
    t->spec.links = t->links;
    t->graph.nodes = spec->nodes;
    if (result == 0 && spec->links != NULL && t->links == NULL)
        result = sl_fail(error, SL_ENOMEM, "out of memory for the links");
    if (result == 0)
        result = build_connected(t, &settled, error);
    if (result == 0)
        result = gather_peers(t, error);
    if (result == 0 && is_endless(&settled)) {
        t->endless = (sl_endless){settled.nodes, settled.degree, settled.seed, settled.lazy};
        result = sl_topology_meet_all(t, error);
    }
    if (result == 0 &&
        (t->window = is_endless(&settled) ? UINT32_MAX : sl_graph_window(&t->graph)) == 0)
        result = sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", spec->nodes);
    if (result != 0) {
        sl_topology_close(&t);
        return result;
    }
    t->hash = hash_of(t);
    t->graph.stochastic = sl_graph_stochasticity(&t->graph);
    *out = t;
    return 0;
}

void sl_topology_close(sl_topology **topology) {
    sl_topology *t = *topology;
    if (t == NULL)
        return;
    sl_graph_close(&t->graph);
    free(t->peers_start);
    free(t->peers);
    free(t->members);
    free(t->provenance);
    sl_links_close(&t->links);
    free(t);
    *topology = NULL;
}
