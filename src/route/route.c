/* route.c - see route.h. */
#include "route/route.h"

#include <stdlib.h>

static bool is_sharded(const sl_route *r) {
    return r->algorithm->route == SL_ROUTE_SERVER && r->server == SL_SERVER_SHARDED;
}

/* Has it a form? */
static bool is_formed(const sl_route *r) {
    const sl_route_kind route = r->algorithm->route;
    return sl_algorithm_reduces(r->algorithm) || route == SL_ROUTE_MERGE ||
           (route == SL_ROUTE_SERVER && !is_sharded(r));
}

static int no_memory(const sl_route *r, uint32_t peers, sl_error *error) {
    return sl_fail(error, SL_ENOMEM, "node %u: out of memory for %u peers", r->rank, peers);
}

static int open_rows(sl_route *r, bool unites, sl_error *error) {
    const uint32_t degree = sl_topology_degree_max(r->topology);
    r->rows = calloc(SL_ROUTE_ROWS + 1, sizeof *r->rows);
    bool complete = r->rows != NULL;
    for (size_t k = 0; complete && k <= SL_ROUTE_ROWS; k++) {
        sl_route_row *kept = &r->rows[k];
        kept->peers = malloc((degree + (size_t)1) * sizeof *kept->peers);
        kept->weights = malloc((degree + (size_t)1) * sizeof *kept->weights);
        kept->united = unites ? malloc((r->peer_count + (size_t)1) * sizeof *kept->united) : NULL;
        complete = kept->peers && kept->weights && (kept->united != NULL) == unites;
    }
    return complete ? 0 : no_memory(r, r->peer_count, error);
}

static void close_rows(sl_route *r) {
    for (size_t k = 0; r->rows != NULL && k <= SL_ROUTE_ROWS; k++) {
        free(r->rows[k].peers);
        free(r->rows[k].weights);
        free(r->rows[k].united);
    }
    free(r->rows);
}

static sl_range shard(const sl_route *r, uint32_t place) {
    return sl_shard(r->all, place, r->nodes);
}

static sl_row only(const sl_route *r, uint32_t place) {
    return (sl_row){.count = 1, .peers = &r->ranks[place], .weights = r->ones};
}

static sl_row everybody_else(const sl_route *r) {
    return (sl_row){.count = r->nodes - 1, .peers = r->others, .weights = r->ones};
}

/* Of a symmetric W: what a peer is given is also what it gives. */
static void unite_row(const sl_route *r, sl_route_row *kept) {
    for (uint32_t p = 0, k = 0; p < r->peer_count; p++) {
        const bool met = k < kept->row.count && r->peers[p] == kept->row.peers[k];
        kept->united[p] = met ? kept->row.weights[k] : 0;
        k += met;
    }
    kept->row.count = r->peer_count;
    kept->row.peers = r->peers;
    kept->row.weights = kept->united;
}

/* It stays until another one takes its place: that of an exchange that is SL_ROUTE_ROWS later, or
 * of any that is asked for ahead. */
static sl_row keep_row(const sl_route *r, uint64_t exchange) {
    sl_route_row *kept = &r->rows[r->looks_ahead ? SL_ROUTE_ROWS : exchange % SL_ROUTE_ROWS];
    if (kept->exchange != exchange) {
        kept->exchange = exchange;
        kept->row =
            sl_topology_is_endless(r->topology)
                ? sl_topology_row(r->topology, exchange, r->rank, kept->peers, kept->weights)
                : sl_topology_in(r->topology, exchange, r->rank);
        if (kept->united != NULL)
            unite_row(r, kept);
    }
    return kept->row;
}

float sl_route_own_weight(const sl_row *in, const sl_row *out) {
    double self = in->self;
    for (uint32_t i = 0; i < out->count; i++)
        self += out->weights[i] - (double)(float)out->weights[i];
    return (float)self;
}

static sl_exchange_step along_edges(const sl_route *r, uint64_t exchange) {
    sl_exchange_step p = {.along_edges = true, .published = r->all, .coming = r->all};
    if (r->rows != NULL) {
        p.in = p.out = keep_row(r, exchange);
    } else {
        p.in = sl_topology_in(r->topology, exchange, r->rank);
        p.out = sl_topology_out(r->topology, exchange, r->rank);
    }
    p.self_weight = sl_route_own_weight(&p.in, &p.out);
    return p;
}

static sl_row whom(const sl_route *r, uint32_t place) {
    return place == SL_NOWHERE      ? (sl_row){0}
           : place == SL_EVERYWHERE ? everybody_else(r)
                                    : only(r, place);
}

static sl_exchange_step of_form(const sl_route *r, bool gather, uint32_t index) {
    const sl_move m = sl_form_move(&r->form, gather, r->place, index);
    return (sl_exchange_step){.in = whom(r, m.from),
                              .out = whom(r, m.to),
                              .published = m.leaves,
                              .coming = m.comes,
                              .in_place = true};
}

/* Up the tree a place that gets a message merges it into what its own one says; down, whoever sends
 * keeps what its message says. */
static sl_exchange_step merging(const sl_route *r, bool gather, uint32_t index) {
    const sl_move m = sl_form_move(&r->form, gather, r->place, index);
    const bool gives = m.to != SL_NOWHERE, takes = m.from != SL_NOWHERE,
               keeps = gather ? gives : takes;
    return (sl_exchange_step){.in = whom(r, m.from),
                              .out = whom(r, m.to),
                              .published = gives || keeps ? r->all : (sl_range){0},
                              .coming = m.comes,
                              .self_weight = keeps};
}

static sl_exchange_step with_shards(const sl_route *r, bool gather, uint32_t index) {
    const sl_range own = shard(r, r->place);
    const uint32_t from = (r->place + r->nodes - index) % r->nodes,
                   to = (r->place + index) % r->nodes;
    const bool to_itself = index == 0;
    if (gather)
        return (sl_exchange_step){.in = everybody_else(r),
                                  .out = everybody_else(r),
                                  .published = own,
                                  .separate = true,
                                  .self_weight = 1};
    return (sl_exchange_step){.in = whom(r, to_itself ? SL_NOWHERE : from),
                              .out = whom(r, to_itself ? SL_NOWHERE : to),
                              .published = shard(r, to),
                              .coming = own,
                              .self_weight = to_itself};
}

static sl_exchange_step with_all(const sl_route *r) {
    return (sl_exchange_step){.in = everybody_else(r),
                              .out = everybody_else(r),
                              .published = r->all,
                              .coming = r->all,
                              .self_weight = 1};
}

static bool is_like(const sl_compressor_config *a, const sl_compressor_config *b) {
    return a->kind == b->kind && a->k == b->k && a->levels == b->levels && a->bits == b->bits;
}

/* Of the edge of that colour, where messages follow the links; NULL: all have the plan's. Equal
 * ones are one. */
static const sl_compressor_config *compressor_of(const sl_route *r, uint32_t colour) {
    const sl_compressor_config *first = r->of_edge;
    while (first != NULL && !is_like(first, &r->of_edge[colour]))
        first++;
    return first;
}

static sl_exchange_step over_edge(const sl_route *r, uint64_t exchange, uint32_t colour) {
    const size_t slot = (exchange - 1) % sl_route_period(r);
    const uint32_t *peer = &r->meets[slot * (r->colours + 1u) + colour];
    const sl_row all = sl_topology_in(r->topology, slot + 1, r->rank);
    sl_exchange_step p = {.compressor = compressor_of(r, colour)};
    if (*peer == SL_NOBODY)
        return p;
    const double *weight = &all.weights[sl_peer_index(all.peers, all.count, *peer)];
    p.in = p.out = (sl_row){.count = 1, .peers = peer, .weights = weight};
    p.published = p.coming = r->all;
    return p;
}

/* As a stage goes. A server is the middle of a star by which messages are merged. */
static sl_route_kind route_of(const sl_route *r, const sl_stage *stage) {
    const sl_route_kind route = r->algorithm->route;
    if (route == SL_ROUTE_SERVER)
        return is_sharded(r) ? SL_ROUTE_SERVER : SL_ROUTE_MERGE;
    if (stage->reduces)
        return SL_ROUTE_ALL_REDUCE;
    return route == SL_ROUTE_BOTH ? SL_ROUTE_TOPOLOGY : route;
}

/* Edge by edge? */
static bool meets(const sl_route *r) {
    return r->algorithm->route == SL_ROUTE_TREE || r->algorithm->route == SL_ROUTE_EDGES;
}

static uint32_t steps_of_stage(const sl_route *r, const sl_stage *stage) {
    const sl_route_kind route = route_of(r, stage);
    if (stage->alone)
        return 1;
    if (route == SL_ROUTE_ALL_REDUCE || route == SL_ROUTE_MERGE)
        return sl_form_steps(&r->form, stage->gather);
    if (meets(r))
        return r->colours > 0 ? r->colours : 1;
    return is_sharded(r) && !stage->gather ? r->nodes : 1;
}

static sl_exchange_step step_of_stage(const sl_route *r, const sl_stage *stage, uint64_t exchange,
                                      uint32_t index) {
    const sl_route_kind route = route_of(r, stage);
    if (stage->alone)
        return (sl_exchange_step){.published = r->all, .self_weight = 1};
    if (route == SL_ROUTE_MERGE)
        return merging(r, stage->gather, index);
    if (route == SL_ROUTE_TOPOLOGY)
        return along_edges(r, exchange);
    if (route == SL_ROUTE_ALL_REDUCE)
        return of_form(r, stage->gather, index);
    if (meets(r))
        return over_edge(r, exchange, index);
    return is_sharded(r) ? with_shards(r, stage->gather, index) : with_all(r);
}

/* Whole vectors before they are published, and whole sums before they go to all; each time, where
 * they are merged. */
static sl_range prepared_for(const sl_route *r, const sl_stage *stage, uint32_t index,
                             const sl_exchange_step *step) {
    const sl_route_kind route = route_of(r, stage);
    if (stage->gather && route == SL_ROUTE_ALL_REDUCE)
        return sl_form_summed(&r->form, r->place, index);
    if (route == SL_ROUTE_MERGE)
        return step->published;
    return index > 0 ? (sl_range){0} : stage->gather ? step->published : r->all;
}

/* ---- opening ---- */

/* The number of members: it is none. */
static uint32_t place_of(const sl_members *m, uint32_t rank) {
    if (m->ranks != NULL)
        return sl_peer_index(m->ranks, m->count, rank);
    return rank < m->count ? rank : m->count;
}

static int64_t place_of_server(const sl_members *m, int64_t server) {
    const uint32_t place = server >= 0 ? place_of(m, (uint32_t)server) : 0;
    return server < 0 ? server : place < m->count ? place : 0;
}

static int list_ranks(sl_route *r, const sl_members *members, sl_error *error) {
    r->ranks = calloc(r->nodes, sizeof *r->ranks);
    r->others = calloc(r->nodes, sizeof *r->others);
    r->ones = calloc(r->nodes, sizeof *r->ones);
    if (!r->ranks || !r->others || !r->ones)
        return no_memory(r, r->nodes, error);
    for (uint32_t k = 0, other = 0; k < r->nodes; k++) {
        r->ranks[k] = members->ranks != NULL ? members->ranks[k] : k;
        r->ones[k] = 1;
        if (k != r->place)
            r->others[other++] = r->ranks[k];
    }
    r->peers = r->others;
    r->peer_count = r->nodes - 1;
    return 0;
}

static int list_partners(sl_route *r, const sl_algorithm_config *config, sl_error *error) {
    const sl_route_kind route = r->algorithm->route;
    r->form = route == SL_ROUTE_MERGE ? sl_form_of_merges(r->nodes, r->all.count)
              : route == SL_ROUTE_SERVER
                  ? sl_form_of(SL_ALL_REDUCE_STAR, 1, r->nodes, r->all.count)
                  : sl_form_of(config->all_reduce, config->group, r->nodes, r->all.count);
    r->form.middle = route == SL_ROUTE_SERVER ? (uint32_t)r->server : 0;
    const uint32_t *edges, degree = sl_topology_peers(r->topology, r->rank, &edges);
    r->peers = r->partners = calloc(r->nodes + degree, sizeof *r->partners);
    if (r->partners == NULL)
        return no_memory(r, r->nodes, error);
    r->peer_count = sl_form_partners(&r->form, r->place, r->partners);
    for (uint32_t i = 0; i < r->peer_count; i++)
        r->partners[i] = r->ranks[r->partners[i]];
    for (uint32_t i = 0; route == SL_ROUTE_BOTH && i < degree; i++)
        r->peer_count = sl_peer_add(r->partners, r->peer_count, edges[i]);
    return 0;
}

/* All whom it meets. */
static int list_met(sl_route *r, sl_error *error) {
    const size_t meetings = sl_route_period(r) * (r->colours + (size_t)1);
    const uint32_t *edges, degree = sl_topology_peers(r->topology, r->rank, &edges);
    r->peer_count = 0;
    r->peers = r->partners = calloc(degree + 1u, sizeof *r->partners);
    for (size_t i = 0; r->partners != NULL && i < meetings; i++)
        r->peer_count = sl_peer_add(r->partners, r->peer_count, r->meets[i]);
    return r->partners != NULL ? 0 : no_memory(r, degree, error);
}

/* The tree, as this node sees it. */
static int list_meetings(sl_route *r, const sl_algorithm_config *config, sl_error *error) {
    sl_relay_tree tree;
    int result = sl_relay_tree_open(&tree, r->topology, config->tree, error);
    if (result != 0)
        return result;
    r->colours = tree.colours;
    r->meets =
        calloc(tree.colours + 1u, sizeof *r->meets); /* and nobody, where there is no other */
    r->within = calloc(tree.nodes, sizeof *r->within);
    if (!r->meets || !r->within || sl_relay_tree_within(&tree, r->rank, r->within) != 0)
        result = no_memory(r, tree.nodes, error);
    else
        sl_relay_tree_peers(&tree, r->rank, r->meets);
    if (result == 0)
        r->meets[tree.colours] = SL_NOBODY;
    sl_relay_tree_close(&tree);
    return result;
}

static void note_budget(void *context, const sl_budget_edge *e) {
    const sl_route *r = context;
    if (e->i == r->rank || e->j == r->rank)
        r->of_edge[e->step] = sl_budget_compressor(&r->config->budget, &r->config->compressor, e,
                                                   r->shapes.dimension);
}

static int list_budgets(sl_route *r, sl_error *error) {
    r->of_edge = calloc(r->colours + 1u, sizeof *r->of_edge);
    return r->of_edge != NULL
               ? sl_budget_edges(&r->config->budget, &r->config->compressor, r->topology,
                                 r->shapes.dimension, note_budget, r, error)
               : no_memory(r, r->colours, error);
}

int sl_route_open(sl_route *r, const sl_algorithm *algorithm, const sl_algorithm_config *config,
                  const sl_topology *topology, const sl_members *members, uint32_t rank,
                  const sl_shapes *shapes, const sl_ranges *buckets, sl_error *error) {
    const sl_members all = {NULL, sl_topology_nodes(topology)};
    members = members != NULL ? members : &all;
    *r = (sl_route){.algorithm = algorithm,
                    .topology = topology,
                    .server = place_of_server(members, config->server),
                    .rank = rank,
                    .place = place_of(members, rank),
                    .nodes = members->count,
                    .all = {0, shapes->dimension},
                    .buckets = buckets,
                    .config = config,
                    .shapes = *shapes,
                    .average_period = (uint32_t)sl_algorithm_average_period(algorithm, config)};
    int result = 0;
    r->peer_count = sl_topology_peers(topology, rank, &r->peers);
    const bool unites =
        r->algorithm->route == SL_ROUTE_TOPOLOGY && config->replicas == SL_REPLICAS_PER_NEIGHBOUR;
    if (unites || sl_topology_is_endless(topology))
        result = open_rows(r, unites, error);
    if (result == 0 && r->algorithm->route != SL_ROUTE_TOPOLOGY)
        result = list_ranks(r, members, error);
    if (r->algorithm->route == SL_ROUTE_ALL) /* of the plain averages that a view begins with */
        r->form = sl_form_of(SL_ALL_REDUCE_STAR, 1, r->nodes, r->all.count);
    if (result == 0 && is_formed(r))
        result = list_partners(r, config, error);
    if (result == 0 && r->algorithm->route == SL_ROUTE_TREE)
        result = list_meetings(r, config, error);
    if (result == 0 && r->algorithm->route == SL_ROUTE_EDGES)
        result = sl_edge_colours(&r->colours, &r->meets, topology, rank, error);
    if (result == 0 && meets(r))
        result = list_met(r, error);
    if (result == 0 && sl_algorithm_has_budget(config))
        result = list_budgets(r, error);
    return result;
}

void sl_route_close(sl_route *r) {
    free(r->ranks);
    free(r->others);
    free(r->ones);
    free(r->partners);
    free(r->meets);
    free(r->of_edge);
    free(r->within);
    close_rows(r);
}

/* ---- looking up ---- */

uint32_t sl_route_period(const sl_route *r) {
    return r->algorithm->route == SL_ROUTE_EDGES ? sl_topology_period(r->topology) : 1;
}

/* The same route for as much as the stage publishes. */
static sl_route cut_to(const sl_route *r, const sl_stage *stage) {
    sl_route cut = *r;
    if (stage->length != NULL)
        cut.all.count = cut.form.all.count = stage->length(r->config, &r->shapes);
    return cut;
}

/* The same route for one bucket. */
static sl_route cut_out(const sl_route *r, size_t bucket) {
    sl_route cut = *r;
    if (r->buckets != NULL)
        cut.all = cut.form.all = r->buckets->items[bucket];
    return cut;
}

/* false: there are fewer, which *number is then less. */
static bool find_in_bucket(const sl_route *r, uint64_t exchange, uint32_t *number,
                           sl_exchange_step *out) {
    const sl_stage *stage;
    for (size_t s = 0; (stage = sl_algorithm_stage(r->algorithm, s)) != NULL; s++) {
        const uint32_t count = steps_of_stage(r, stage);
        if (*number < count) {
            const sl_route cut = cut_to(r, stage);
            *out = step_of_stage(&cut, stage, exchange, *number);
            out->stage = stage;
            out->begins = *number == 0;
            out->in_place = out->in_place || stage->in_place;
            out->prepared = prepared_for(&cut, stage, *number, out);
            return true;
        }
        *number -= count;
    }
    return false;
}

bool sl_route_step(const sl_route *r, uint64_t exchange, uint32_t number, sl_exchange_step *out) {
    const size_t buckets = r->buckets != NULL ? r->buckets->count : 1;
    bool found = false;
    for (size_t b = 0; b < buckets && !found; out->bucket = b++) {
        const sl_route cut = cut_out(r, b);
        found = find_in_bucket(&cut, exchange, &number, out);
    }
    return found;
}

bool sl_route_step_ahead(const sl_route *r, uint64_t exchange, uint32_t number,
                         sl_exchange_step *out) {
    sl_route ahead = *r;
    ahead.looks_ahead = true;
    return sl_route_step(&ahead, exchange, number, out);
}

sl_range sl_route_range(const sl_route *r, const sl_exchange_step *step, uint32_t peer) {
    if (!step->separate)
        return step->coming;
    const sl_route bucket = cut_out(r, step->bucket), cut = cut_to(&bucket, step->stage);
    return shard(&cut, sl_peer_index(r->ranks, r->nodes, peer));
}

size_t sl_route_longest(const sl_route *r) {
    const bool ring =
        r->algorithm->route == SL_ROUTE_ALL_REDUCE && r->form.kind == SL_ALL_REDUCE_RING;
    return ring || is_sharded(r) ? r->all.count / r->nodes + (r->all.count % r->nodes != 0)
                                 : r->all.count;
}

uint32_t sl_peer_index(const uint32_t *peers, uint32_t count, uint32_t peer) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (peers[middle] < peer)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && peers[low] == peer ? low : count;
}

/* Does each exchange go along all edges that there ever are? */
static bool goes_to_all(const sl_route *r) {
    return r->rows != NULL && r->rows[0].united != NULL;
}

/* Does each exchange go along the edges of its own slot only? */
static bool follows_schedule(const sl_route *r) {
    return (r->algorithm->route == SL_ROUTE_TOPOLOGY && !goes_to_all(r)) ||
           r->algorithm->route == SL_ROUTE_EDGES;
}

/* While one node still sends the last parts of an exchange, another that has them begins the next
 * one. With cd-sgd the next one may have no steps, and be over at once. Nodes that meet only where
 * all do are as far apart as that is rare. */
uint32_t sl_route_window(const sl_route *r) {
    if (r->algorithm->route == SL_ROUTE_BOTH)
        return r->average_period + 1;
    const uint32_t ahead_max = r->algorithm->route == SL_ROUTE_SERVER ? 3 : 2;
    return follows_schedule(r) ? sl_topology_window(r->topology) : ahead_max;
}

uint32_t sl_route_heard(const sl_route *r, uint64_t exchange) {
    if (r->algorithm->route != SL_ROUTE_TREE)
        return 0;
    const uint32_t last = sl_topology_nodes(r->topology) - 1;
    return r->within[exchange < last ? exchange : last];
}

bool sl_route_varies(const sl_route *r) {
    return follows_schedule(r) && sl_topology_period(r->topology) > 1;
}

uint32_t sl_route_width(const sl_route *r) {
    const sl_route_kind route = r->algorithm->route;
    const bool meets_all = is_formed(r) ? r->form.kind == SL_ALL_REDUCE_STAR
                                        : route != SL_ROUTE_TOPOLOGY || goes_to_all(r);
    uint32_t widest = is_formed(r) && r->nodes > 1;
    if (meets_all)
        return r->peer_count;
    if (is_formed(r) && route != SL_ROUTE_BOTH)
        return widest;
    const uint32_t degree = sl_topology_degree_max(r->topology); /* 0: it is not endless */
    widest = degree > widest ? degree : widest;
    for (uint32_t e = 1; degree == 0 && e <= sl_topology_period(r->topology); e++) {
        const sl_row row = sl_topology_in(r->topology, e, r->rank);
        widest = row.count > widest ? row.count : widest;
    }
    return widest;
}
