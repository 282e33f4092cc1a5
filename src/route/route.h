/* route.h - an exchange as data: the list of its steps, and in each who sends which range to whom.
 *
 *   topology         one step a stage: the whole vector along the round's edges; along those of all
 *                    rounds where replicas are kept one by one
 *   all-reduce       the steps of a form (form.h): all sums, then as they went out, back
 *   server           one rank: merged in a star around it; sharded: n steps, in step s shard k from
 *                    place k - s to place k, and back in one
 *   all              one step: the whole vector to everybody
 *   tree             a step for each colour of a tree's edges: to each neighbour its own message
 *   merge            the steps of a tree (form.h): up, where whoever gets a message publishes to
 *                    itself in the same step, then down
 *   both             topology or all-reduce, as each stage says
 *
 * A rank says who a node is, a place where it stands among the members: its index in their sorted
 * list. Only routes and forms know places; rows, peers and steps name ranks. A server that is no
 * member is stood in for by the first one.
 *
 * With buckets each range of the vector has all these steps by itself, in the order of the list.
 *
 * The steps of all stages are numbered through. A step follows from (exchange, number): a list of
 * them would take 2(n - 1) steps a node, gigabytes in a simulation. In the servers' first half, the
 * step in which nothing is sent is a node's message to itself.
 */
#ifndef SL_ROUTE_H
#define SL_ROUTE_H

#include "algorithm/gossip/edge_colours.h"
#include "algorithm/gossip/relay_tree.h"
#include "route/form.h"
#include "starling/ranges.h"
#include "starling/view.h"

typedef struct sl_exchange_step {
    const sl_stage *stage;
    size_t bucket;                          /* of the route */
    bool begins;                            /* the first of its stage */
    sl_range prepared;                      /* before it, the stage's hook runs on these elements */
    bool along_edges;                       /* of the topology */
    bool in_place;                          /* what comes overwrites what is published */
    const sl_compressor_config *compressor; /* of its message, both ways; NULL: the plan's */
    bool separate;      /* each in-neighbour sends its own shard; else all send `coming` */
    float self_weight;  /* of the node's own message: W_ii; servers: 1 where it stays here */
    sl_row in, out;     /* who sends to this node; whom it sends to */
    sl_range published; /* by this node; empty: it sends nothing */
    sl_range coming;    /* what this node combines */
} sl_exchange_step;

/* Rows that do not lie in the topology: those of a few exchanges. */
enum { SL_ROUTE_ROWS = 4 };
typedef struct sl_route_row {
    uint64_t exchange; /* 0: none */
    sl_row row;
    uint32_t *peers; /* (degree) of an endless topology, like the next one */
    double *weights; /* (degree) */
    double *united;  /* (peers) where every exchange goes along all edges that there ever are: W_ij,
                        0 where the round has no edge. NULL: exchanges go along their own */
} sl_route_row;

typedef struct sl_route {
    const sl_algorithm *algorithm;
    const sl_topology *topology;
    int64_t server;              /* its place */
    uint32_t rank, place, nodes; /* nodes: members */
    sl_range all;                /* of a stage that publishes all, or a bucket */
    const sl_ranges *buckets;    /* the steps of one after those of the other; NULL: it is one */
    const sl_algorithm_config *config;
    sl_shapes shapes;
    uint32_t *ranks, *others; /* the members, and without this one; not for topologies */
    double *ones;
    sl_form form;          /* all-reduce, merge, one server */
    const uint32_t *peers; /* (peer_count) every one ever, sorted */
    uint32_t peer_count;
    uint32_t *partners;            /* where the list is the route's own; else NULL */
    uint32_t colours;              /* tree, edges */
    uint32_t *meets;               /* (slots, colours + 1) whom it meets, or SL_NOBODY */
    sl_compressor_config *of_edge; /* (colours) where links have budgets; else NULL */
    uint32_t *within;              /* (nodes) how many nodes are at most so many edges away */
    uint32_t average_period;       /* both: all meet in every so many-th exchange */
    sl_route_row *rows; /* (SL_ROUTE_ROWS + 1) the last is of exchanges that are asked for ahead;
                           NULL: they lie in the topology */
    bool looks_ahead;   /* see sl_route_step_ahead */
} sl_route;

/* The topology is in ranks, its edges are those of the members. members NULL: all its nodes.
 * buckets: borrowed; NULL: none. */
int sl_route_open(sl_route *route, const sl_algorithm *algorithm, const sl_algorithm_config *config,
                  const sl_topology *topology, const sl_members *members, uint32_t rank,
                  const sl_shapes *shapes, const sl_ranges *buckets, sl_error *error);
void sl_route_close(sl_route *route);
/* false: an exchange has no step of that number. Exchanges count from 1, steps from 0. */
bool sl_route_step(const sl_route *route, uint64_t exchange, uint32_t number,
                   sl_exchange_step *out);
/* The same of an exchange that may be far ahead, to look at: its rows stay until the next such
 * call, and those of the exchange under way are not touched. */
bool sl_route_step_ahead(const sl_route *route, uint64_t exchange, uint32_t number,
                         sl_exchange_step *out);
/* Exchanges until the same ranges go out again. */
uint32_t sl_route_period(const sl_route *route);
/* What `peer`, an in-neighbour of the step, sends in it. */
sl_range sl_route_range(const sl_route *route, const sl_exchange_step *step, uint32_t peer);
/* At least as many elements as any message of any node has; the same at all nodes. */
size_t sl_route_longest(const sl_route *route);
/* How many exchanges an in-neighbour can run ahead, plus one. */
uint32_t sl_route_window(const sl_route *route);
/* How many nodes' vectors have come to this one when the exchange is over, its own included; of a
 * tree, else 0. */
uint32_t sl_route_heard(const sl_route *route, uint64_t exchange);
/* Do other edges than before take part in an exchange? */
bool sl_route_varies(const sl_route *route);
/* Most in-neighbours of one step. */
uint32_t sl_route_width(const sl_route *route);
/* W_ii of a node's row. Weights are rounded to float; what a column loses by it goes to the
 * self-weight, so that the mean (or push-sum's mass) does not creep. */
float sl_route_own_weight(const sl_row *in, const sl_row *out);
/* Index of the peer among `count` sorted ones; `count`: it is not among them. */
uint32_t sl_peer_index(const uint32_t *peers, uint32_t count, uint32_t peer);
/* Which of the peers it is; peer_count: none. */
static inline uint32_t sl_route_slot(const sl_route *route, uint32_t peer) {
    return sl_peer_index(route->peers, route->peer_count, peer);
}

#endif
