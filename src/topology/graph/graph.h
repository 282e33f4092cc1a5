/* graph.h - what the topology's own files share: edge lists while a graph is built, slots in
 * compressed rows afterwards. */
#ifndef SL_GRAPH_H
#define SL_GRAPH_H

#include "starling/graph.h"
#include "topology/graph/endless.h"

/* Directed edges of one slot, growing. */
typedef struct edge_list {
    sl_edge *edges;
    size_t count, room;
    bool weighted;      /* some edge has a weight */
    bool one_way;       /* some edge was pushed without its reverse; false: undirected */
    bool out_of_memory; /* remembered, so that generators need not check each push */
} edge_list;

void sl_edge_list_reserve(edge_list *list, size_t room); /* for that many edges in all */
void sl_edge_list_push(edge_list *list, uint32_t from, uint32_t to); /* without a weight */
void sl_edge_list_push_weighted(edge_list *list, uint32_t from, uint32_t to, double weight);
void sl_edge_list_push_both(edge_list *list, uint32_t a, uint32_t b);
void sl_edge_list_close(edge_list *list);

/* One list for each slot of a schedule, growing. */
typedef struct edge_lists {
    edge_list *lists; /* (count) */
    uint32_t count, room;
    edge_list lost;  /* takes the edges of a slot for which there was no memory */
    edge_list inner; /* of the graph that a family is made from */
} edge_lists;

/* Another slot, empty; it stays where it is until the next one. */
edge_list *sl_edge_lists_add(edge_lists *all);
void sl_edge_lists_close(edge_lists *all);

/* One side of all rows: the peers and weights of node i stand at start[i] .. start[i + 1]. */
typedef struct side {
    uint64_t *start; /* (nodes + 1) */
    uint32_t *peers; /* (edges) sorted within a row */
    double *weights; /* (edges) */
} side;

typedef struct slot {
    side in, out;
    double *self;  /* (nodes) W_ii; NaN while unknown */
    double mended; /* how far sums, or symmetry, of listed weights were off */
    uint64_t edges;
    bool undirected;    /* every edge has its reverse */
    bool connected;     /* optimal weights: one component, so that: */
    sl_optimum optimum; /* says how near to the best they are */
} slot;

enum { HASH_DIGITS = 16 };

/* The rows of a period: all that spectra and weights need to know. */
typedef struct graph {
    uint32_t nodes, period;
    slot *slots; /* (period) */
    sl_stochasticity stochastic;
} graph;

/* An opened topology; opening/ builds it. */
struct sl_topology {
    sl_topology_spec spec;  /* without slots: what was asked for */
    struct sl_links *links; /* spec.links; owned */
    graph graph;
    sl_endless endless; /* of its members' places; nodes 0: it repeats */
    uint32_t *members;  /* (endless.nodes) their numbers, rising; NULL: 0, 1, ... */
    uint32_t window;
    uint64_t *peers_start; /* (nodes + 1) */
    uint32_t *peers;       /* union over slots and directions, sorted within a node */
    uint64_t hash;
    char *provenance; /* JSON text: where a list of edges came from, if its file says so */
};

/* Of an endless topology: every member's peers are all others. SL_ENOMEM. */
int sl_topology_meet_all(sl_topology *t, sl_error *error);

/* The greatest; of a and 0 it is a. */
uint32_t sl_common_divisor(uint32_t a, uint32_t b);

/* Does a solver find the weights? Then their last digits may differ between machines. */
bool sl_weighting_is_solved(sl_weighting weighting);

/* Sorts the edges into rows; refuses duplicates, by their places in the list. Self-loops go to
 * `self`. */
int sl_slot_build(slot *out, const edge_list *list, uint32_t nodes, sl_error *error);
void sl_slot_close(slot *p);

/* Of the weights in row i. */
double sl_side_sum(const side *s, uint32_t i);
/* The receivers' weights, seen from the senders: from `in` to `out`. */
void sl_slot_mirror_weights(slot *p, uint32_t nodes);

/* ---- check.c ---- */

/* Can every node hear of every other, over all slots? SL_ENOMEM. */
int sl_graph_is_connected(bool *connected, const graph *g, sl_error *error);
/* The lowest node that cannot be reached from node 0, or, backwards, that cannot reach it; 0: there
 * is none, or no memory. */
uint32_t sl_graph_unreached(const graph *g, bool forward);
uint32_t sl_graph_window(const graph *g);
sl_stochasticity sl_graph_stochasticity(const graph *g);
/* One period is a symmetric matrix. */
bool sl_graph_is_symmetric(const graph *g);
void sl_graph_close(graph *g);

/* parts.c: why a graph is not connected, in words. */
enum { PARTS_TEXT_MAX = 512 };
void sl_graph_say_parts(char *out, size_t room, const graph *g);

#endif
