/* topology.h - who talks to whom, and with which weights, in every round.
 *
 * A topology is a pure function row(round, rank): the neighbours that rank receives from with the weights W_ij that it
 * gives them, and those that it sends to. Rounds count from 1; a time-varying topology is a schedule of `period` phases and
 * round r uses phase (r - 1) mod period. Rows are sorted by peer and stored in O(edges), never n x n.
 */
#ifndef STARLING_TOPOLOGY_H
#define STARLING_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_NODES_MAX 1000000u
#define SL_SIDES_MAX 8
#define SL_STOCHASTIC_TOLERANCE 1e-9 /* |row or column sum - 1| that still counts as stochastic */

typedef enum sl_family {
    SL_FAMILY_EDGES, /* explicit */
    SL_FAMILY_RING,
    SL_FAMILY_PATH,
    SL_FAMILY_TORUS,
    SL_FAMILY_STAR,
    SL_FAMILY_COMPLETE,
    SL_FAMILY_HYPERCUBE,
    SL_FAMILY_RANDOM_REGULAR,
    SL_FAMILY_ERDOS_RENYI,
    SL_FAMILY_ONE_PEER_EXPONENTIAL /* directed schedule of ceil(log2 n) rounds: i sends to i + 2^k mod n, W = 1/2 */
} sl_family;

typedef enum sl_weighting {
    SL_WEIGHTING_METROPOLIS, /* W_ij = 1/(1 + max(d_i, d_j)); Xiao, Boyd 2004 */
    SL_WEIGHTING_UNIFORM,    /* W_ij = 1/(1 + d_i), self included: row-stochastic; doubly only on regular graphs */
    SL_WEIGHTING_LAZY,       /* (I + metropolis)/2 */
    SL_WEIGHTING_PUSH_SUM,   /* column-stochastic: the sender splits evenly, P_ji = 1/(1 + outdegree_i) */
    SL_WEIGHTING_EXPLICIT    /* every edge carries its weight */
} sl_weighting;

/* A directed edge; weight = what the receiver gives the sender. Only meaningful under SL_WEIGHTING_EXPLICIT. */
typedef struct sl_edge {
    uint32_t from, to;
    double weight;
} sl_edge;

typedef struct sl_phase_spec {
    const sl_edge *edges; /* borrowed for the open call */
    size_t edge_count;
} sl_phase_spec;

/* What a topology file says. sl_topology_spec_defaults() first. */
typedef struct sl_topology_spec {
    uint32_t nodes;
    sl_family family;
    sl_weighting weighting;
    bool directed;                 /* SL_FAMILY_EDGES: an edge is listed for each direction that exists */
    bool self_completes_column;    /* explicit weights: a self-weight that is not listed is what the column lacks to 1, not the row */
    uint32_t sides[SL_SIDES_MAX];  /* torus; product = nodes; none: as square as possible in two dimensions */
    uint32_t side_count;
    uint32_t degree;               /* random-regular */
    double probability;            /* erdos-renyi */
    uint64_t seed;                 /* random families */
    const sl_phase_spec *phases;   /* SL_FAMILY_EDGES: one, or the schedule's */
    size_t phase_count;
} sl_topology_spec;

void sl_topology_spec_defaults(sl_topology_spec *spec);

typedef struct sl_topology sl_topology;

/* Builds and checks: edges in range, no duplicates, strongly connected (a schedule: the union over its period), rows and columns
 * stochastic as its weighting promises, positive self-weights; random families retry until connected and say so when they are not
 * after a bounded number of tries. Explicit weights must be row- or column-stochastic. */
int sl_topology_open(sl_topology **out, const sl_topology_spec *spec, sl_error *error);

/* From JSON text / from a file (both the topology file of docs/topology.md). `where` names the source in error texts, for
 * example "ring.json" or "experiment.json: topology". */
int sl_topology_parse(sl_topology **out, const char *json, const char *where, sl_error *error);
int sl_topology_load(sl_topology **out, const char *path, sl_error *error);
void sl_topology_close(sl_topology **topology);

/* One side of a row; arrays of `count`, sorted by peer, self excluded; borrowed from the topology. */
typedef struct sl_row {
    uint32_t count;
    const uint32_t *peers;
    const double *weights; /* in-row: W_ij, what I give peer j; out-row: W_ji, what peer j gives me (push-sum: P_ji) */
    double self;           /* W_ii */
} sl_row;

sl_row sl_topology_in(const sl_topology *topology, uint64_t round, uint32_t rank);
sl_row sl_topology_out(const sl_topology *topology, uint64_t round, uint32_t rank);

uint32_t sl_topology_nodes(const sl_topology *topology);
uint32_t sl_topology_period(const sl_topology *topology);
/* How many rounds an in-neighbour can run ahead of the node that it sends to, plus one: the inbox window. For one undirected graph 2. */
uint32_t sl_topology_window(const sl_topology *topology);
/* Over nodes, phases, edges and weights: equal hashes mean the same W in every round. */
uint64_t sl_topology_hash(const sl_topology *topology);
/* Every peer with which `rank` ever exchanges anything, in either direction: sorted; *peers is borrowed. */
uint32_t sl_topology_peers(const sl_topology *topology, uint32_t rank, const uint32_t **peers);

/* What the matrix is, phase by phase combined: true only if it holds in every phase. Residual: largest |sum - 1|. */
typedef struct sl_stochasticity {
    bool symmetric, row, column;
    double row_residual, column_residual;
} sl_stochasticity;
sl_stochasticity sl_topology_stochasticity(const sl_topology *topology);

/* `starling check`: eigenvalues by a dense method (LAPACK). For schedules, of the product W(period)...W(1). */
typedef struct sl_topology_report {
    uint32_t nodes, period;
    uint64_t edges;                    /* undirected edges counted once; directed each; over the period */
    uint32_t degree_min, degree_max;   /* out-degree, over all phases */
    double degree_mean;
    bool connected;                    /* strongly, over the period */
    sl_stochasticity stochastic;
    bool spectrum_known;               /* false above SL_SPECTRUM_NODES_MAX nodes */
    double lambda_2, lambda_n;         /* second largest, smallest eigenvalue; symmetric W only, else NaN */
    double rho;                        /* max(|lambda_2|, |lambda_n|); second largest modulus if not symmetric */
    double gap;                        /* 1 - rho */
} sl_topology_report;
#define SL_SPECTRUM_NODES_MAX 3000u
int sl_topology_analyse(const sl_topology *topology, sl_topology_report *out, sl_error *error);

/* Canonical JSON of the topology that sl_topology_parse takes back to an equal topology (equal hash); malloc'ed, caller frees. */
char *sl_topology_json(const sl_topology *topology);

#ifdef __cplusplus
}
#endif
#endif
