/* route.c - see route.h. */
#include "node/route.h"

#include <stdlib.h>

static bool is_sharded(const sl_route *r) {
    return r->algorithm->route == SL_ROUTE_SERVER && r->server == SL_SERVER_SHARDED;
}

/* The places before and after this node's. */
static uint32_t before(const sl_route *r, uint32_t steps) {
    return (r->place + r->nodes - steps % r->nodes) % r->nodes;
}

static uint32_t after(const sl_route *r, uint32_t steps) {
    return (r->place + steps % r->nodes) % r->nodes;
}

static void list_ring_neighbours(sl_route *r) {
    uint32_t a = r->ranks[before(r, 1)], b = r->ranks[after(r, 1)];
    r->neighbours[0] = a < b ? a : b;
    r->neighbours[1] = a < b ? b : a;
}

/* Of a symmetric W: what a peer is given is also what it gives. */
static int unite(sl_route *r, sl_error *error) {
    const uint32_t *peers, period = sl_topology_period(r->topology),
                           count = sl_topology_peers(r->topology, r->rank, &peers);
    r->united = calloc((size_t)period * count + 1, sizeof *r->united);
    if (r->united == NULL)
        return sl_fail(error, SL_ENOMEM, "node %u: out of memory for the weights of %u rounds",
                       r->rank, period);
    for (uint32_t e = 0; e < period; e++) {
        const sl_row row = sl_topology_in(r->topology, e + 1, r->rank);
        for (uint32_t p = 0, k = 0; p < count && k < row.count; p++)
            if (peers[p] == row.peers[k])
                r->united[(size_t)e * count + p] = row.weights[k++];
    }
    return 0;
}

sl_range sl_route_shard(const sl_route *r, uint32_t k) {
    size_t from = r->dimension / r->nodes * k + r->dimension % r->nodes * k / r->nodes;
    size_t end = r->dimension / r->nodes * (k + 1) + r->dimension % r->nodes * (k + 1) / r->nodes;
    return (sl_range){from, end - from};
}

static sl_range whole(const sl_route *r) {
    return (sl_range){0, r->dimension};
}

static sl_row nobody(void) {
    return (sl_row){0};
}

static sl_row only(const sl_route *r, uint32_t place) {
    return (sl_row){.count = 1, .peers = &r->ranks[place], .weights = r->ones};
}

static sl_row everybody_else(const sl_route *r) {
    return (sl_row){.count = r->nodes - 1, .peers = r->others, .weights = r->ones};
}

/* Weights are rounded to float; what a column loses by it goes to the self-weight, so that the mean
 * (or push-sum's mass) does not creep. */
static sl_exchange_step along_edges(const sl_route *r, uint64_t exchange) {
    sl_exchange_step p = {.in = sl_topology_in(r->topology, exchange, r->rank),
                          .out = sl_topology_out(r->topology, exchange, r->rank),
                          .published = whole(r),
                          .coming = whole(r)};
    if (r->united != NULL) {
        p.in.count = sl_topology_peers(r->topology, r->rank, &p.in.peers);
        p.in.weights = r->united + (exchange - 1) % sl_topology_period(r->topology) * p.in.count;
        p.out = p.in;
    }
    double self = p.in.self;
    for (uint32_t i = 0; i < p.out.count; i++)
        self += p.out.weights[i] - (double)(float)p.out.weights[i];
    p.self_weight = (float)self;
    return p;
}

static sl_exchange_step round_the_ring(const sl_route *r, bool gather, uint32_t index) {
    uint32_t sent = gather ? before(r, index + r->nodes - 1) : before(r, index);
    uint32_t come = gather ? before(r, index) : before(r, index + 1);
    return (sl_exchange_step){.in = only(r, before(r, 1)),
                              .out = only(r, after(r, 1)),
                              .published = sl_route_shard(r, sent),
                              .coming = sl_route_shard(r, come)};
}

static sl_exchange_step with_one_server(const sl_route *r, bool gather) {
    bool serves = r->place == r->server;
    sl_row server = serves ? nobody() : only(r, (uint32_t)r->server),
           workers = serves ? everybody_else(r) : nobody();
    sl_range nothing = {0};
    if (gather)
        return (sl_exchange_step){.in = server,
                                  .out = workers,
                                  .published = serves ? whole(r) : nothing,
                                  .coming = whole(r),
                                  .self_weight = serves};
    return (sl_exchange_step){.in = workers,
                              .out = server,
                              .published = whole(r),
                              .coming = whole(r),
                              .self_weight = serves};
}

static sl_exchange_step with_shards(const sl_route *r, bool gather, uint32_t index) {
    sl_range own = sl_route_shard(r, r->place);
    if (gather)
        return (sl_exchange_step){.in = everybody_else(r),
                                  .out = everybody_else(r),
                                  .published = own,
                                  .separate = true,
                                  .self_weight = 1};
    bool to_itself = index == 0;
    return (sl_exchange_step){.in = to_itself ? nobody() : only(r, before(r, index)),
                              .out = to_itself ? nobody() : only(r, after(r, index)),
                              .published = sl_route_shard(r, after(r, index)),
                              .coming = own,
                              .self_weight = to_itself};
}

/* A ring of one has a step in which nobody sends. */
static sl_exchange_step alone(const sl_route *r) {
    return (sl_exchange_step){.published = whole(r)};
}

static sl_exchange_step with_all(const sl_route *r) {
    return (sl_exchange_step){.in = everybody_else(r),
                              .out = everybody_else(r),
                              .published = whole(r),
                              .coming = whole(r),
                              .self_weight = 1};
}

static uint32_t steps_of_stage(const sl_route *r, bool gather) {
    if (r->algorithm->route == SL_ROUTE_RING)
        return r->nodes > 1 ? r->nodes - 1 : 1;
    return is_sharded(r) && !gather ? r->nodes : 1;
}

static sl_exchange_step step_of_stage(const sl_route *r, bool gather, uint64_t exchange,
                                      uint32_t index) {
    if (r->algorithm->route == SL_ROUTE_TOPOLOGY)
        return along_edges(r, exchange);
    if (r->algorithm->route == SL_ROUTE_RING)
        return r->nodes > 1 ? round_the_ring(r, gather, index) : alone(r);
    if (r->algorithm->route == SL_ROUTE_ALL)
        return with_all(r);
    return is_sharded(r) ? with_shards(r, gather, index) : with_one_server(r, gather);
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
        return sl_fail(error, SL_ENOMEM, "node %u: out of memory for %u peers", r->rank, r->nodes);
    for (uint32_t k = 0, other = 0; k < r->nodes; k++) {
        r->ranks[k] = members->ranks != NULL ? members->ranks[k] : k;
        r->ones[k] = 1;
        if (k != r->place)
            r->others[other++] = r->ranks[k];
    }
    list_ring_neighbours(r);
    return 0;
}

int sl_route_open(sl_route *r, const sl_algorithm *algorithm, const sl_algorithm_config *config,
                  const sl_topology *topology, const sl_members *members, uint32_t rank,
                  size_t dimension, sl_error *error) {
    const sl_members all = {NULL, sl_topology_nodes(topology)};
    members = members != NULL ? members : &all;
    *r = (sl_route){.algorithm = algorithm,
                    .topology = topology,
                    .server = place_of_server(members, config->server),
                    .rank = rank,
                    .place = place_of(members, rank),
                    .nodes = members->count,
                    .dimension = dimension};
    int result = 0;
    if (r->algorithm->route != SL_ROUTE_TOPOLOGY)
        result = list_ranks(r, members, error);
    else if (config->replicas == SL_REPLICAS_PER_NEIGHBOUR)
        result = unite(r, error);
    return result;
}

void sl_route_close(sl_route *r) {
    free(r->ranks);
    free(r->others);
    free(r->ones);
    free(r->united);
}

/* ---- looking up ---- */

bool sl_route_step(const sl_route *r, uint64_t exchange, uint32_t number, sl_exchange_step *out) {
    for (size_t s = 0; s < r->algorithm->stage_count; s++) {
        const sl_stage *stage = &r->algorithm->stages[s];
        const uint32_t count = steps_of_stage(r, stage->gather);
        if (number < count) {
            *out = step_of_stage(r, stage->gather, exchange, number);
            out->stage = stage;
            out->first = number == 0;
            return true;
        }
        number -= count;
    }
    return false;
}

sl_range sl_route_range(const sl_route *r, const sl_exchange_step *step, uint32_t peer) {
    return step->separate ? sl_route_shard(r, sl_peer_index(r->ranks, r->nodes, peer))
                          : step->coming;
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

uint32_t sl_route_peers(const sl_route *r, const uint32_t **peers) {
    if (r->algorithm->route == SL_ROUTE_TOPOLOGY)
        return sl_topology_peers(r->topology, r->rank, peers);
    if (r->algorithm->route == SL_ROUTE_RING) {
        *peers = r->neighbours;
        return r->nodes > 2 ? 2 : r->nodes - 1;
    }
    bool meets_all = r->algorithm->route == SL_ROUTE_ALL || is_sharded(r) || r->place == r->server;
    *peers = meets_all ? r->others : &r->ranks[r->server];
    return meets_all ? r->nodes - 1 : 1;
}

/* While one node still sends the last parts of an exchange, another that has them begins the next
 * one. With cd-sgd the next one may have no steps, and be over at once. */
uint32_t sl_route_window(const sl_route *r) {
    const uint32_t ahead_max = r->algorithm->route == SL_ROUTE_SERVER ? 3 : 2;
    return r->algorithm->route == SL_ROUTE_TOPOLOGY && r->united == NULL
               ? sl_topology_window(r->topology)
               : ahead_max;
}

bool sl_route_varies(const sl_route *r) {
    return r->algorithm->route == SL_ROUTE_TOPOLOGY && r->united == NULL &&
           sl_topology_period(r->topology) > 1;
}

uint32_t sl_route_width(const sl_route *r) {
    const uint32_t *peers, count = sl_route_peers(r, &peers);
    if (r->algorithm->route == SL_ROUTE_RING)
        return r->nodes > 1;
    if (r->algorithm->route != SL_ROUTE_TOPOLOGY || r->united != NULL)
        return count;
    uint32_t widest = 0;
    for (uint32_t e = 1; e <= sl_topology_period(r->topology); e++) {
        const sl_row row = sl_topology_in(r->topology, e, r->rank);
        widest = row.count > widest ? row.count : widest;
    }
    return widest;
}
