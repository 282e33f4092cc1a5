/* optimal.h - weights that belong to a graph as a whole; what the files behind starling/optimal.h
 * share. */
#ifndef SL_TOPOLOGY_OPTIMAL_H
#define SL_TOPOLOGY_OPTIMAL_H

#include "starling/optimal.h"
#include "topology/graph/graph.h"

/* weights.c: fills the weights of a slot by the scheme of `spec` and checks them. */
int sl_slot_weigh(slot *p, const sl_topology_spec *spec, uint32_t nodes, sl_error *error);

/* ---- components.c ---- */

/* The weights of a connected undirected graph, each edge once. */
typedef int whole_rule(sl_optimum *out, double *weights, uint32_t nodes, const sl_edge *edges,
                       size_t edge_count, const sl_watch *watch, sl_error *error);
/* Of every component on its own: in a schedule a slot need not be connected. */
int sl_weights_by_component(slot *p, whole_rule *rule, uint32_t nodes, const sl_watch *watch,
                            sl_error *error);

whole_rule sl_weights_best_constant, sl_weights_fastest_mixing, sl_weights_fastest_averaging;

/* ---- the optimisation ---- */

typedef struct graph_problem {
    uint32_t nodes;
    const sl_edge *edges; /* (edge_count) */
    size_t edge_count;
    sl_sign sign;
    double tolerance, work_max;
    const sl_watch *watch; /* may be NULL */
} graph_problem;

/* What is below rho whatever the weights, from a matrix Y = P - Q with P, Q positive semidefinite
 * and tr P + tr Q <= 1, Y1 = 0: its trace, and slopes_l = u_l' Y u_l. prices: (nodes), not
 * negative, are changed to what they have to be at least; the nearer to the dual optimum, the
 * better the bound. rho: of any weights. dual.c */
double sl_optimum_dual_bound(const graph_problem *g, double trace, const double *slopes,
                             double *prices, double rho);

/* An interior-point method for graphs of up to INTERIOR_EDGES_MAX edges; weights in: strictly
 * inside. interior.c */
enum { INTERIOR_EDGES_MAX = 1200, INTERIOR_NODES_MAX = 400 };
int sl_optimum_interior(sl_optimum *out, double *weights, const graph_problem *g, sl_error *error);
/* A subgradient method for larger ones; weights in: allowed, out: the best seen, as far as its
 * estimates of rho tell. descent.c */
int sl_optimum_descend(sl_optimum *out, double *weights, const graph_problem *g, sl_error *error);

#endif
