/* analysis.h - what can be said of a topology beyond its spectrum: its structure, how fast it
 * agrees, what a round costs.
 *
 * Everything is a function of an opened topology. What is cheap is exact for any number of nodes.
 * What is not is bounded by a limit on the work (not on time, so that the answer is the same on
 * every machine), and says so: as bounds, as NaN or as a count of 0. Nothing here hangs.
 *
 *   W(k)      the matrix of round k; x(k) = W(k) x(k-1)
 *   J         the matrix of all 1/n, which averages exactly
 *   rho, gap  the factor by which a round shrinks the distance to consensus in the long run, and 1
 *             - rho (starling/spectrum.h)
 */
#ifndef STARLING_ANALYSIS_H
#define STARLING_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/error.h"
#include "starling/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- in short ---- */

/* `starling check`: in short; starling/spectrum.h has more. For schedules, of the product
 * W(period)...W(1). */
typedef struct sl_topology_report {
    uint32_t nodes, period;
    uint64_t edges; /* undirected edges counted once; directed each; over the period */
    uint32_t degree_min, degree_max; /* out-degree, over all slots */
    double degree_mean;
    bool connected; /* strongly, over the period */
    sl_stochasticity stochastic;
    bool spectrum_known; /* false: what follows are the bounds that a search has reached within its
                            limit; rho is at least that */
    double lambda_2, lambda_n; /* second largest, smallest eigenvalue; symmetric W only, else NaN */
    double rho; /* max(|lambda_2|, |lambda_n|); second largest modulus if not symmetric */
    double gap; /* 1 - rho */
} sl_topology_report;
SL_API int sl_topology_analyse(const sl_topology *topology, sl_topology_report *out,
                               sl_error *error);

/* ---- structure ---- */

/* A whole number between two bounds; known where they are equal. */
typedef struct sl_bounds {
    uint64_t low, high;
} sl_bounds;
#define SL_UNBOUNDED UINT64_MAX /* `high` of a distance that does not exist */

/* Edges of operations that one measure may take. */
#define SL_ANALYSIS_WORK 100000000ull

/* Of the union of all slots, own weights aside. */
typedef struct sl_structure {
    uint64_t edges;      /* of all slots together: undirected edges once, directed ones each */
    bool directed;       /* some edge has no reverse in the union */
    uint32_t components; /* strongly connected ones */
    uint32_t component_nodes_max;    /* nodes of the largest */
    bool connected;                  /* strongly: one component */
    bool bipartite;                  /* directions aside */
    uint32_t degree_min, degree_max; /* out-degree of a node in a round, over all slots */
    uint32_t in_degree_min, in_degree_max;
    double degree_mean;
    sl_bounds diameter;          /* longest shortest path; SL_UNBOUNDED where not connected */
    uint32_t bridges;            /* edges whose loss parts the graph, directions aside */
    uint32_t cut_nodes;          /* nodes whose loss does */
    sl_bounds edge_connectivity; /* fewest edges (of one direction, where directed) whose loss ends
                                    strong connectedness */
    sl_bounds node_connectivity; /* the same of nodes; complete graph: n - 1 */
} sl_structure;

/* Diameter: Takes, Kosters, "Determining the diameter of small world networks" (2011).
 * Connectivity: maximum flows (Even 1975; Matula 1987; Esfahanian, Hakimi 1984). */
SL_API int sl_topology_structure(sl_structure *out, const sl_topology *topology, sl_error *error);
/* By formula, without building the graph: any number of nodes, of a spec as sl_topology_spec_parse
 * gives it. False where the family has none. */
SL_API bool sl_structure_closed_form(sl_structure *out, const sl_topology_spec *spec);

/* ---- agreement ---- */

/* ||M(k) - J||_2 for k = 1 .. rounds into errors (rounds): M(k) = W(k) ... W(1). Where only columns
 * sum to 1, rows of M(k) are divided by their sums, which is what push-sum does; where only rows
 * do, it is ||(I - J) M(k)||_2, the distance from agreement on any common value. By Lanczos, to
 * about 1e-9 relative, from below. NaN from where the limit of work was reached. */
SL_API int sl_topology_product_errors(double *errors, uint32_t rounds, const sl_topology *topology,
                                      sl_error *error);
/* The first of `rounds` rounds after which M(k) = J up to rounding; 0: none. Any number of nodes: a
 * random vector shows it, O(edges) a round. */
SL_API int sl_topology_exact_after(uint32_t *out, const sl_topology *topology, uint32_t rounds,
                                   sl_error *error);
/* Smallest k with (1 - gap)^k <= epsilon; infinite for gap <= 0. */
SL_API double sl_rounds_to(double gap, double epsilon);
/* The same where the first rounds' errors are known: read off there, and beyond them the last
 * period again and again, smaller by (1 - gap)^period each time. gap: of a round. errors may be
 * NULL. */
SL_API double sl_rounds_along(const double *errors, uint32_t rounds, uint32_t period, double gap,
                              double epsilon);

/* Rounds until the random walk with transition matrix W (where only columns sum to 1: its
 * transpose) is within 1/4 of its stationary distribution in total variation from wherever it
 * begins (Levin, Peres, Wilmer, "Markov chains and mixing times"). Known for up to
 * SL_MIXING_NODES_MAX nodes, and otherwise, if W is symmetric, between bounds by the gap; {0,
 * SL_UNBOUNDED} where nothing is known: schedules, negative weights, a walk that goes round for
 * ever. */
#define SL_MIXING_NODES_MAX 256u
SL_API int sl_topology_mixing_time(sl_bounds *out, const sl_topology *topology, double gap,
                                   sl_error *error);
/* The bounds of a symmetric W: (1/gap - 1) ln 2 and ln(4 n)/gap (Theorems 12.4 and 12.5 there). */
SL_API sl_bounds sl_mixing_bounds(uint64_t nodes, double gap);

/* How many nodes' gradient noise is as good as averaged, where old noise is forgotten by `decay` a
 * round (Vogels, Hendrikx, Jaggi, "Beyond spectral gap", 2022): 1/(1 - decay) / sum_k decay^(k-1)
 * ||M(k)||_F^2 / n, mean over the slots in which it may end. NaN where rows or columns do not sum
 * to 1, or with more than SL_NEIGHBOURS_WORK nodes^3 x slots. */
#define SL_NEIGHBOURS_WORK 2e8
SL_API int sl_topology_effective_neighbours(double *out, const sl_topology *topology, double decay,
                                            sl_error *error);

/* Weights of a period's product that stay as they are: column-stochastic: W p = p, the share of the
 * total that push-sum's weights reach; row-stochastic: p W = p, each node's share of what is agreed
 * on. shares (nodes) sums to 1; 1/n where both. *residual: largest change by one more period. */
SL_API int sl_topology_perron(double *shares, double *residual, const sl_topology *topology,
                              sl_error *error);

/* Rounds before decentralized SGD runs like centralized SGD of as many nodes: n^3/(1-rho)^2 with
 * equal data at all nodes, n^3/(1-rho)^4 otherwise (Ying et al., "Exponential graph is provably
 * efficient", 2021). Orders of magnitude: constants are left out. */
SL_API double sl_transient_rounds(uint64_t nodes, double gap, bool same_data);

/* rho after the loss of a node, the worst one: its neighbours keep the weight that they gave it
 * (push-sum: that they sent it) for themselves. 1 where the rest is not connected. Of a schedule,
 * rho per round. */
typedef struct sl_node_loss {
    double rho;    /* NaN: not computed */
    uint32_t node; /* whose loss it is */
} sl_node_loss;
#define SL_LOSS_NODES_MAX 100u /* above, known only where there is a cut node */
SL_API int sl_topology_worst_loss(sl_node_loss *out, const sl_topology *topology, sl_error *error);

/* ---- cost ---- */

struct sl_links; /* starling/links.h */

/* Messages of a round: each node sends one vector to each out-neighbour. */
typedef struct sl_traffic {
    double messages; /* of all nodes, mean over the slots */
    double sent_mean,
        sent_max; /* by a node: mean over nodes and slots; of the busiest node, mean over slots */
} sl_traffic;
SL_API sl_traffic sl_topology_traffic(const sl_topology *topology);

/* serial: all that a node sends, and all that it receives, shares its one port; parallel: every
 * edge has its own. Both directions at once. */
typedef enum sl_port { SL_PORT_SERIAL, SL_PORT_PARALLEL } sl_port;

/* Seconds that a round takes to exchange messages of so many bytes, mean over the slots: latency +
 * bytes/bandwidth (alpha + beta m) for the slowest edge, or port: there, the bytes of all messages
 * add up, and latency is paid once, since one message travels while the next one leaves. Computing
 * is not counted, nor that messages of several senders may meet at a port (starling/timeline.h
 * counts both). */
SL_API double sl_topology_round_seconds(const sl_topology *topology, const struct sl_links *links,
                                        double message_bytes, sl_port port);

#ifdef __cplusplus
}
#endif
#endif
