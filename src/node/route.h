/* route.h - who sends which range of the vector to whom: a stage of an exchange, cut into steps.
 *
 *   topology         one step: the whole vector along the round's edges; along those of all rounds
 *                    where replicas are kept one by one
 *   ring             n - 1 steps of one shard each, to the next rank: sums, and then the sums' way
 *                    round (Patarasuk, Yuan 2009)
 *   server           one rank: everybody to it, and back; sharded: n steps, in step s shard k of
 *                    rank k - s to rank k, and back in one
 *
 * Shard k of n is elements [k d / n, (k + 1) d / n). In servers' first half the step in which
 * nothing is sent is a node's message to itself.
 */
#ifndef SL_ROUTE_H
#define SL_ROUTE_H

#include "starling/algorithm.h"

typedef struct sl_range {
    size_t from, count;
} sl_range;

typedef struct sl_exchange_step {
    sl_row in, out;
    sl_range published; /* by this node; empty: it sends nothing */
    sl_range coming;    /* from every in-neighbour, unless separate */
    bool separate;      /* each in-neighbour sends its own shard */
    float self_weight;  /* of the node's own message: W_ii; servers: 1 where it stays here */
} sl_exchange_step;

typedef struct sl_route {
    sl_route_kind kind;
    const sl_topology *topology;
    int64_t server;
    uint32_t rank, nodes;
    size_t dimension;
    uint32_t *ranks, *others; /* 0..n-1, and without this one; not for topologies */
    double *ones;
    uint32_t neighbours[2]; /* ring */
    double *united; /* (period, peers) topology whose every exchange goes along all edges it ever
                       has: W_ij, 0 where the round has none */
} sl_route;

int sl_route_open(sl_route *route, const sl_algorithm *algorithm, const sl_algorithm_config *config,
                  const sl_topology *topology, uint32_t rank, size_t dimension, sl_error *error);
void sl_route_close(sl_route *route);
uint32_t sl_route_steps(const sl_route *route, bool gather);
sl_exchange_step sl_route_step(const sl_route *route, bool gather, uint64_t exchange,
                               uint32_t index);
sl_range sl_route_shard(const sl_route *route, uint32_t k);
/* Every peer ever, sorted; borrowed. */
uint32_t sl_route_peers(const sl_route *route, const uint32_t **peers);
/* How many exchanges an in-neighbour can run ahead, plus one. */
uint32_t sl_route_window(const sl_route *route);
/* Most in-neighbours of one step. */
uint32_t sl_route_width(const sl_route *route);

#endif
