/* analysis.h - measures of a topology beyond its spectrum: structure, speed of agreement, cost of
 * a round.
 *
 * All are functions of an opened topology. Cheap measures are exact for any number of nodes.
 * Costly ones have a limit on work, not on time, so that every machine gives the same answer.
 * Beyond the limit they return bounds, NaN or a count of 0.
 *
 *   W(k)      the matrix of round k; x(k) = W(k) x(k-1)
 *   J         the matrix of all 1/n, which averages exactly
 *   rho, gap  the factor by which a round shrinks the distance to consensus in the long run, and 1
 *             - rho (starling/spectrum.h) */
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

/* The short report of `starling check`; starling/spectrum.h has more. Schedules: of the product
 * W(period)...W(1). */
typedef struct sl_topology_report {
    uint32_t nodes, period;
    uint64_t edges; /* undirected edges count once, directed ones each; over the period */
    uint32_t degree_min, degree_max; /* out-degree over all slots */
    double degree_mean;
    bool connected; /* strongly, over the period */
    sl_stochasticity stochastic;
    bool spectrum_known; /* false: the search hit its limit. Then lambda_2, lambda_n and rho are
                            bounds; rho is at least as given */
    double lambda_2, lambda_n; /* second largest, smallest eigenvalue; symmetric W only, else NaN */
    double rho; /* max(|lambda_2|, |lambda_n|); second largest modulus if not symmetric */
    double gap; /* 1 - rho */
} sl_topology_report;
/* watch (may be NULL) hears how far the spectrum is. */
SL_API int sl_topology_analyse(const sl_topology *topology, sl_topology_report *out,
                               const sl_watch *watch, sl_error *error);

/* ---- structure ---- */

/* A whole number between two bounds; equal bounds: it is exact. */
typedef struct sl_bounds {
    uint64_t low, high;
} sl_bounds;
#define SL_UNBOUNDED UINT64_MAX /* `high` of an infinite distance */

/* Limit on the edges that one measure visits. */
#define SL_ANALYSIS_WORK 100000000ull

/* Structure of the union of all slots, without self-weights. */
typedef struct sl_structure {
    uint64_t edges;      /* of all slots: undirected edges count once, directed ones each */
    bool directed;       /* some edge has no reverse in the union */
    uint32_t components; /* strongly connected ones */
    uint32_t component_nodes_max;    /* nodes of the largest component */
    bool connected;                  /* strongly connected */
    bool bipartite;                  /* ignoring directions */
    uint32_t degree_min, degree_max; /* out-degree of a node in a round, over all slots */
    uint32_t in_degree_min, in_degree_max;
    double degree_mean;
    sl_bounds diameter; /* longest shortest path; SL_UNBOUNDED if disconnected */
    uint32_t bridges;   /* edges whose removal disconnects the graph, ignoring directions */
    uint32_t cut_nodes; /* nodes whose removal does */
    sl_bounds edge_connectivity; /* fewest edges (directed, if any edge is) whose removal ends
                                    strong connectedness */
    sl_bounds node_connectivity; /* fewest nodes; complete graph: n - 1 */
} sl_structure;

/* Diameter: Takes, Kosters, "Determining the diameter of small world networks" (2011).
 * Connectivity: maximum flows (Even 1975; Matula 1987; Esfahanian, Hakimi 1984). */
SL_API int sl_topology_structure(sl_structure *out, const sl_topology *topology, sl_error *error);
/* By formula, without building the graph: for any number of nodes, and a spec of
 * sl_topology_spec_parse. False if the family has no formula. */
SL_API bool sl_structure_closed_form(sl_structure *out, const sl_topology_spec *spec);

/* ---- agreement ---- */

/* Writes ||M(k) - J||_2 for k = 1 .. rounds to errors (rounds), where M(k) = W(k) ... W(1). If
 * only columns sum to 1, divides the rows of M(k) by their sums, as push-sum does. If only rows
 * do, takes ||(I - J) M(k)||_2, the distance to agreement on any common value. Lanczos, accurate
 * to about 1e-9 relative, from below. NaN beyond the limit of work. */
SL_API int sl_topology_product_errors(double *errors, uint32_t rounds, const sl_topology *topology,
                                      sl_error *error);
/* The first round k <= rounds with M(k) = J up to rounding; 0: none. Tests a random vector, in
 * O(edges) a round; any number of nodes. */
SL_API int sl_topology_exact_after(uint32_t *out, const sl_topology *topology, uint32_t rounds,
                                   sl_error *error);
/* The smallest k with (1 - gap)^k <= epsilon; infinite if gap <= 0. */
SL_API double sl_rounds_to(double gap, double epsilon);
/* The same, with known errors of the first rounds. Beyond them, each period is (1 - gap)^period
 * times the one before. gap: per round. errors may be NULL. */
SL_API double sl_rounds_along(const double *errors, uint32_t rounds, uint32_t period, double gap,
                              double epsilon);

/* The mixing time: rounds until the random walk with transition matrix W (if only columns sum to
 * 1: its transpose) is within 1/4 of its stationary distribution in total variation, from any
 * start (Levin, Peres, Wilmer, "Markov chains and mixing times"). Exact up to SL_MIXING_NODES_MAX
 * nodes. Beyond, bounds by the gap if W is symmetric. {0, SL_UNBOUNDED} if unknown: schedules,
 * negative weights, periodic walks. */
#define SL_MIXING_NODES_MAX 256u
SL_API int sl_topology_mixing_time(sl_bounds *out, const sl_topology *topology, double gap,
                                   sl_error *error);
/* The bounds for a symmetric W: (1/gap - 1) ln 2 and ln(4 n)/gap (Theorems 12.4 and 12.5 there). */
SL_API sl_bounds sl_mixing_bounds(uint64_t nodes, double gap);

/* The effective number of neighbours: over how many nodes gradient noise is averaged, if old noise
 * decays by `decay` a round (Vogels, Hendrikx, Jaggi, "Beyond spectral gap", 2022): 1/(1 - decay)
 * / sum_k decay^(k-1) ||M(k)||_F^2 / n, mean over the choice of the last slot. NaN unless rows and
 * columns sum to 1, or above SL_NEIGHBOURS_WORK = nodes^3 x slots. */
#define SL_NEIGHBOURS_WORK 2e8
SL_API int sl_topology_effective_neighbours(double *out, const sl_topology *topology, double decay,
                                            sl_error *error);

/* The Perron vector of a period's product. Column-stochastic: W p = p, the limit of push-sum's
 * weights divided by n. Row-stochastic: p W = p, each node's share of the common value. shares
 * (nodes) sums to 1; each is 1/n if W is both. *residual: largest change by one more period. */
SL_API int sl_topology_perron(double *shares, double *residual, const sl_topology *topology,
                              sl_error *error);

/* The transient rounds of decentralized SGD, after which it converges like centralized SGD:
 * n^3/(1-rho)^2 with equal data at all nodes, n^3/(1-rho)^4 otherwise (Ying et al., "Exponential
 * graph is provably efficient", 2021). Orders of magnitude: constants are left out. */
SL_API double sl_transient_rounds(uint64_t nodes, double gap, bool same_data);

/* rho after the loss of the worst node. Its neighbours keep for themselves the weight that they
 * gave it (push-sum: that they sent it). 1 if the rest is disconnected. Schedules: per round. */
typedef struct sl_node_loss {
    double rho;    /* NaN: not computed */
    uint32_t node; /* the worst node */
} sl_node_loss;
#define SL_LOSS_NODES_MAX 100u /* above, known only where there is a cut node */
SL_API int sl_topology_worst_loss(sl_node_loss *out, const sl_topology *topology, sl_error *error);

/* ---- cost ---- */

struct sl_links; /* starling/links.h */

/* Messages of a round. Each node sends one vector to each out-neighbour. */
typedef struct sl_traffic {
    double messages; /* of all nodes; mean over the slots */
    double sent_mean,
        sent_max; /* of a node: mean over nodes and slots; of the busiest node: mean over slots */
} sl_traffic;
SL_API sl_traffic sl_topology_traffic(const sl_topology *topology);

/* serial: all messages that a node sends share one port, as do all that it receives; slower links
 * carry them beside each other (starling/links.h). parallel: each edge has a port of its own. Full
 * duplex. */
typedef enum sl_port { SL_PORT_SERIAL, SL_PORT_PARALLEL } sl_port;

/* The seconds of a round with messages of so many bytes, mean over the slots: those of the slowest
 * node. compute_s (nodes): how long each one's gradient takes; NULL: 0, the exchange alone. Of an
 * exchange: latency + bytes/bandwidth (alpha + beta m) of the slowest edge or port. On a serial
 * port the bytes of all messages add up, and the longest latency counts once, since messages are
 * pipelined. Neglects how messages meet at a receiver; starling/timeline.h counts that. */
SL_API double sl_topology_round_seconds(const sl_topology *topology, const struct sl_links *links,
                                        const double *compute_s, double message_bytes,
                                        sl_port port);

#ifdef __cplusplus
}
#endif
#endif
