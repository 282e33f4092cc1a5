/* members.c - the topology of those that are left of another one; see sl_topology_among.
 *
 * Places are positions in the sorted list of members. A scheme's weights are made again from the
 * edges that are left. Listed weights have no scheme: there each dead node d is eliminated,
 *
 *   W_ij += W_id W_dj / (1 - W_dd)
 *
 * what a random walk does that only counts its steps among the living: the stochastic complement
 * (Meyer, "Stochastic complementation, uncoupling Markov chains, and the theory of nearly reducible
 * systems", SIAM Review 31, 1989). Rows and columns go on summing to 1, a symmetric W stays so, and
 * a connected graph, too.
 */
#include <stdlib.h>
#include <string.h>

#include "starling/topology.h"
#include "topology/graph/graph.h"

static const uint32_t nobody = UINT32_MAX;
enum { ELIMINATED_NODES_MAX = 4096 }; /* of a dense matrix */

typedef struct regrouping {
    const sl_topology *first;
    const uint32_t *members;
    uint32_t count;
    uint32_t ranks;   /* those of `first`, and those that came after it */
    uint32_t *places; /* (ranks) nobody: it is dead */
    uint32_t *parts;  /* (count) the part of the graph that a place is in; a tree of parents */
    edge_lists slots; /* of the members, in places */
    sl_slot_spec *specs;
    uint32_t bridges;
} regrouping;

static bool is_listed(const sl_topology_spec *spec) {
    return spec->weighting == SL_WEIGHTING_EXPLICIT || spec->weighting == SL_WEIGHTING_BANDWIDTH;
}

static bool is_directed(const sl_topology *t) {
    for (uint32_t k = 0; k < t->graph.period; k++)
        if (!t->graph.slots[k].undirected)
            return true;
    return false;
}

/* ---- a family again ---- */

static bool has_flat_side(const sl_topology_spec *spec) {
    for (uint32_t d = 0; d < spec->side_count; d++)
        if (spec->sides[d] == 1)
            return true;
    return false;
}

/* 0 with *out NULL: the family does not exist for so many, or only as a line of what had rows. */
static int try_family(sl_topology **out, const regrouping *r, sl_error *error) {
    sl_topology_spec spec = r->first->spec;
    if (spec.family == SL_FAMILY_EDGES || spec.weighting == SL_WEIGHTING_BANDWIDTH)
        return 0;
    spec.nodes = r->count;
    spec.side_count = 0;
    if (sl_topology_is_endless(r->first) && spec.degree >= r->count)
        spec.degree = r->count - 1;
    spec.links = NULL;
    const int result = sl_topology_open(out, &spec, error);
    if (result == 0 && has_flat_side(&(*out)->spec) && !has_flat_side(&r->first->spec))
        sl_topology_close(out);
    return result == SL_EINVAL ? 0 : result;
}

/* ---- the dead left out ---- */

static uint32_t part_of(const regrouping *r, uint32_t place) {
    while (r->parts[place] != place)
        place = r->parts[place];
    return place;
}

static void push(regrouping *r, edge_list *list, uint32_t from, uint32_t to) {
    r->parts[part_of(r, from)] = part_of(r, to);
    sl_edge_list_push(list, from, to);
}

static void leave_out(regrouping *r, edge_list *list, uint64_t round, bool directed) {
    for (uint32_t i = 0; i < r->count && r->members[i] < r->first->graph.nodes; i++) {
        const sl_row row = sl_topology_in(r->first, round, r->members[i]);
        for (uint32_t k = 0; k < row.count; k++) {
            const uint32_t from = r->places[row.peers[k]];
            if (from != nobody && (directed || from < i))
                push(r, list, from, i);
        }
    }
}

/* Lists the living neighbours of the dead that hang together with `dead`; marks these as seen. */
static uint32_t list_rim(const regrouping *r, uint32_t dead, bool *seen, uint32_t *stack,
                         uint32_t *rim, bool *listed) {
    uint32_t depth = 0, count = 0;
    stack[depth++] = dead;
    seen[dead] = true;
    memset(listed, 0, r->count * sizeof *listed);
    while (depth > 0) {
        const uint32_t *peers, at = stack[--depth];
        const uint32_t peer_count = sl_topology_peers(r->first, at, &peers);
        for (uint32_t k = 0; k < peer_count; k++) {
            const uint32_t place = r->places[peers[k]];
            if (place != nobody && !listed[place]) {
                listed[place] = true;
                rim[count++] = place;
            } else if (place == nobody && !seen[peers[k]]) {
                seen[peers[k]] = true;
                stack[depth++] = peers[k];
            }
        }
    }
    return count;
}

static bool holds(const edge_list *list, uint32_t from, uint32_t to) {
    for (size_t e = 0; e < list->count; e++)
        if (list->edges[e].from == from && list->edges[e].to == to)
            return true;
    return false;
}

/* Of a directed graph all of a rim is joined, both ways: what led over the dead goes along it. */
static void join(regrouping *r, uint32_t a, uint32_t b, bool directed) {
    edge_list *list = &r->slots.lists[0];
    if (directed ? holds(list, a, b) && holds(list, b, a) : part_of(r, a) == part_of(r, b))
        return;
    r->bridges++;
    if (!directed || !holds(list, a, b))
        push(r, list, a, b);
    if (directed && !holds(list, b, a))
        push(r, list, b, a);
}

/* Joins the parts of the graph that met at dead nodes. */
static int join_parts(regrouping *r, bool directed, sl_error *error) {
    const uint32_t nodes = r->first->graph.nodes;
    bool *seen = calloc(nodes, sizeof *seen), *listed = calloc(r->count, sizeof *listed);
    uint32_t *stack = calloc(nodes, sizeof *stack), *rim = calloc(r->count, sizeof *rim);
    const bool complete = seen && listed && stack && rim;
    for (uint32_t d = 0; complete && d < nodes; d++) {
        if (r->places[d] != nobody || seen[d])
            continue;
        const uint32_t count = list_rim(r, d, seen, stack, rim, listed);
        for (uint32_t k = 1; k < count; k++)
            join(r, rim[k - 1], rim[k], directed);
    }
    free(seen);
    free(listed);
    free(stack);
    free(rim);
    return complete ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", nodes);
}

/* The first graph knows nothing of them: each has an edge to the lowest member. */
static void join_newcomers(regrouping *r, bool directed) {
    for (uint32_t i = 1; i < r->count; i++)
        if (r->members[i] >= r->first->graph.nodes)
            join(r, 0, i, directed);
}

/* ---- listed weights ---- */

static void read_matrix(double *w, const sl_topology *t, uint64_t round) {
    const uint32_t n = t->graph.nodes;
    memset(w, 0, (size_t)n * n * sizeof *w);
    for (uint32_t i = 0; i < n; i++) {
        const sl_row row = sl_topology_in(t, round, i);
        w[(size_t)i * n + i] = row.self;
        for (uint32_t k = 0; k < row.count; k++)
            w[(size_t)i * n + row.peers[k]] = row.weights[k];
    }
}

/* W_dd = 1: d stands alone in this round. */
static void eliminate(double *w, uint32_t n, uint32_t d) {
    const double *row = w + (size_t)d * n, rest = 1 - row[d];
    for (uint32_t i = 0; i < n && rest != 0; i++) {
        const double given = w[(size_t)i * n + d] / rest;
        for (uint32_t j = 0; i != d && given != 0 && j < n; j++)
            w[(size_t)i * n + j] += j != d ? given * row[j] : 0;
        w[(size_t)i * n + d] = i != d ? 0 : row[d];
    }
}

static void complement(regrouping *r, edge_list *list, uint64_t round, double *w) {
    const uint32_t n = r->first->graph.nodes;
    read_matrix(w, r->first, round);
    for (uint32_t d = 0; d < n; d++)
        if (r->places[d] == nobody)
            eliminate(w, n, d);
    for (uint32_t i = 0; i < r->count; i++)
        for (uint32_t j = 0; j < r->count; j++) {
            const double weight = w[(size_t)r->members[i] * n + r->members[j]];
            if (weight != 0 || i == j)
                sl_edge_list_push_weighted(list, j, i, weight);
        }
}

static int complement_all(regrouping *r, sl_error *error) {
    const uint32_t n = r->first->graph.nodes;
    if (r->ranks > n)
        return sl_fail(error, SL_EINVAL,
                       "listed weights say nothing of a node that joins; take a weight scheme such "
                       "as \"metropolis\"");
    if (n > ELIMINATED_NODES_MAX)
        return sl_fail(error, SL_EINVAL,
                       "listed weights of %u nodes cannot lose some of them; at most %d can, or "
                       "take a weight scheme",
                       n, ELIMINATED_NODES_MAX);
    double *w = malloc((size_t)n * n * sizeof *w);
    for (uint32_t k = 0; w != NULL && k < r->first->graph.period; k++)
        complement(r, sl_edge_lists_add(&r->slots), k + 1, w);
    free(w);
    return w != NULL ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for W of %u nodes", n);
}

/* ---- opening ---- */

static int gather_slots(regrouping *r, bool directed, sl_error *error) {
    if (is_listed(&r->first->spec))
        return complement_all(r, error);
    for (uint32_t k = 0; k < r->first->graph.period; k++)
        leave_out(r, sl_edge_lists_add(&r->slots), k + 1, directed);
    const int result = join_parts(r, directed, error);
    join_newcomers(r, directed);
    return result;
}

/* The lists as a description of listed edges, opened. */
static int open_slots(sl_topology **out, regrouping *r, sl_topology_spec *spec, sl_error *error) {
    r->specs = calloc(r->slots.count + 1u, sizeof *r->specs);
    bool complete = r->specs != NULL && !r->slots.lost.out_of_memory;
    for (uint32_t k = 0; complete && k < r->slots.count; k++) {
        complete = !r->slots.lists[k].out_of_memory;
        r->specs[k] = (sl_slot_spec){r->slots.lists[k].edges, r->slots.lists[k].count};
    }
    spec->family = SL_FAMILY_EDGES;
    spec->slots = r->specs;
    spec->slot_count = r->slots.count;
    return complete ? sl_topology_open(out, spec, error)
                    : sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", spec->nodes);
}

static int open_rest(sl_topology **out, regrouping *r, sl_error *error) {
    const sl_topology_spec *first = &r->first->spec;
    const bool directed = is_directed(r->first), listed = is_listed(first);
    sl_topology_spec spec = {.nodes = r->count,
                             .weighting = listed ? SL_WEIGHTING_EXPLICIT : first->weighting,
                             .lazy = !listed && first->lazy,
                             .directed = directed || listed};
    const int result = gather_slots(r, directed, error);
    return result == 0 ? open_slots(out, r, &spec, error) : result;
}

static bool open_places(regrouping *r) {
    const uint32_t nodes = r->first->graph.nodes, last = r->members[r->count - 1];
    r->ranks = last < nodes ? nodes : last + 1;
    r->places = malloc(r->ranks * sizeof *r->places);
    r->parts = malloc((r->count + 1u) * sizeof *r->parts);
    for (uint32_t i = 0; r->places != NULL && i < r->ranks; i++)
        r->places[i] = nobody;
    for (uint32_t k = 0; r->places != NULL && r->parts != NULL && k < r->count; k++) {
        r->places[r->members[k]] = k;
        r->parts[k] = k;
    }
    return r->places != NULL && r->parts != NULL;
}

static void close_regrouping(regrouping *r) {
    free(r->places);
    free(r->parts);
    free(r->specs);
    sl_edge_lists_close(&r->slots);
}

int sl_topology_among(sl_topology **out, sl_regrouping *how, const sl_topology *first,
                      const uint32_t *members, uint32_t count, sl_error *error) {
    regrouping r = {.first = first, .members = members, .count = count};
    sl_topology *made = NULL;
    sl_error none;
    int result = open_places(&r) ? try_family(&made, &r, &none)
                                 : sl_fail(&none, SL_ENOMEM, "out of memory for %u nodes", count);
    if (result != 0 && error != NULL)
        *error = none;
    *how = (sl_regrouping){.is_family = made != NULL};
    if (result == 0 && made == NULL)
        result = open_rest(&made, &r, error);
    how->bridges = r.bridges;
    close_regrouping(&r);
    if (result == 0)
        *out = made;
    return result;
}

/* Goes on as `among` does, in ranks, once its first rounds are listed. */
static int go_on_endless(sl_topology *t, const sl_topology *among, const uint32_t *members,
                         sl_error *error) {
    const size_t bytes = among->endless.nodes * sizeof *members;
    t->endless = among->endless;
    t->window = among->window;
    t->members = malloc(bytes);
    if (t->members == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", among->endless.nodes);
    memcpy(t->members, members, bytes);
    return sl_topology_meet_all(t, error);
}

int sl_topology_in_ranks(sl_topology **out, const sl_topology *among, const uint32_t *members,
                         uint32_t nodes, sl_error *error) {
    regrouping r = {0};
    sl_topology_spec spec = {.nodes = nodes,
                             .weighting = SL_WEIGHTING_EXPLICIT,
                             .directed = true,
                             .self_completes_column = true,
                             .in_parts = true};
    for (uint32_t k = 0; k < sl_topology_period(among); k++) {
        edge_list *list = sl_edge_lists_add(&r.slots);
        for (uint32_t i = 0; i < sl_topology_nodes(among); i++) {
            const sl_row row = sl_topology_in(among, k + 1, i);
            sl_edge_list_push_weighted(list, members[i], members[i], row.self);
            for (uint32_t j = 0; j < row.count; j++)
                sl_edge_list_push_weighted(list, members[row.peers[j]], members[i], row.weights[j]);
        }
    }
    int result = open_slots(out, &r, &spec, error);
    close_regrouping(&r);
    if (result == 0 && sl_topology_is_endless(among)) {
        result = go_on_endless(*out, among, members, error);
        if (result != 0)
            sl_topology_close(out);
    }
    return result;
}
