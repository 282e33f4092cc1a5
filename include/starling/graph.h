/* graph.h - a topology's description, and its rows in each round.
 *
 * A topology is a pure function row(round, rank). An in-row has the neighbours that rank receives
 * from, with the weights W_ij that it gives them; an out-row has those that it sends to. Rounds
 * count from 1. A time-varying topology is a schedule of `period` slots; round r uses slot (r - 1)
 * mod period. Rows are sorted by peer and take O(edges) memory. An endless topology never repeats:
 * its slots are its first rounds, and sl_topology_row() has those of any round.
 *
 * starling/topology.h opens topologies. */
#ifndef STARLING_GRAPH_H
#define STARLING_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/error.h"
#include "starling/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_NODES_DESCRIBED_MAX 1000000000u /* that sl_topology_spec_parse takes */
#define SL_SIDES_MAX 32
#define SL_OFFSETS_MAX 64
#define SL_STOCHASTIC_TOLERANCE 1e-9 /* |row or column sum - 1| that still counts as stochastic */
/* What a listed weight may be off because it was rounded, to float32 or to six digits: W is put
 * right where its sums miss 1 by no more than this for each of their weights. */
#define SL_ROUNDED_WEIGHT 1e-6

/* The families of graphs and schedules, one row each: enum suffix, and NAME of its constant
 * sl_NAME_family. The constant stands beside the generator (src/topology/family) and says
 * everything else. */
#define SL_FAMILIES_OF(X)                                                                          \
    X(RING, ring)                                                                                  \
    X(PATH, path)                                                                                  \
    X(GRID, grid)                                                                                  \
    X(TORUS, torus)                                                                                \
    X(HYPERCUBE, hypercube)                                                                        \
    X(STAR, star)                                                                                  \
    X(WHEEL, wheel)                                                                                \
    X(COMPLETE, complete)                                                                          \
    X(COMPLETE_BIPARTITE, complete_bipartite)                                                      \
    X(K_ARY_TREE, k_ary_tree)                                                                      \
    X(BARBELL, barbell)                                                                            \
    X(LOLLIPOP, lollipop)                                                                          \
    X(CIRCULANT, circulant)                                                                        \
    X(SYMMETRIC_EXPONENTIAL, symmetric_exponential)                                                \
    X(CLUSTERS, clusters)                                                                          \
    X(RANDOM_REGULAR, random_regular)                                                              \
    X(ERDOS_RENYI, erdos_renyi)                                                                    \
    X(WATTS_STROGATZ, watts_strogatz)                                                              \
    X(RANDOM_GEOMETRIC, random_geometric)                                                          \
    X(DIRECTED_RING, directed_ring)                                                                \
    X(STATIC_EXPONENTIAL, static_exponential)                                                      \
    X(DE_BRUIJN, de_bruijn)                                                                        \
    X(KAUTZ, kautz)                                                                                \
    X(D_EQUISTATIC, d_equistatic)                                                                  \
    X(U_EQUISTATIC, u_equistatic)                                                                  \
    X(ONE_PEER_EXPONENTIAL, one_peer_exponential)                                                  \
    X(ONE_PEER_HYPERCUBE, one_peer_hypercube)                                                      \
    X(HYPER_CUBOID, hyper_cuboid)                                                                  \
    X(ALTERNATING_MATCHINGS, alternating_matchings)                                                \
    X(RANDOM_MATCHING, random_matching)                                                            \
    X(BASE_K, base_k)                                                                              \
    X(OD_EQUIDYN, od_equidyn)                                                                      \
    X(OU_EQUIDYN, ou_equidyn)                                                                      \
    X(MATCHA, matcha)                                                                              \
    X(EPIDEMIC, epidemic)

/* sl_family_describe() says what each is. */
typedef enum sl_family {
    SL_FAMILY_EDGES, /* edges as listed */
#define SL_FAMILY_ROW(NAME, name) SL_FAMILY_##NAME,
    SL_FAMILIES_OF(SL_FAMILY_ROW)
#undef SL_FAMILY_ROW
        SL_FAMILIES
} sl_family;

/* What each is: sl_weighting_meaning(), and docs/topology.md. */
typedef enum sl_weighting {
    SL_WEIGHTING_METROPOLIS,
    SL_WEIGHTING_METROPOLIS0,
    SL_WEIGHTING_MAX_DEGREE,
    SL_WEIGHTING_MAX_DEGREE0,
    SL_WEIGHTING_UNIFORM,
    SL_WEIGHTING_BEST_CONSTANT,
    SL_WEIGHTING_FMMC,
    SL_WEIGHTING_FDLA,
    SL_WEIGHTING_PUSH_SUM,
    SL_WEIGHTING_BANDWIDTH,
    SL_WEIGHTING_EXPLICIT /* every edge carries its weight; not a scheme that a file names */
} sl_weighting;
enum { SL_WEIGHTINGS = SL_WEIGHTING_EXPLICIT }; /* schemes */

/* A directed edge. weight: what the receiver gives the sender; used under SL_WEIGHTING_EXPLICIT
 * only. */
typedef struct sl_edge {
    uint32_t from, to;
    double weight;
} sl_edge;

typedef struct sl_slot_spec {
    const sl_edge *edges; /* borrowed for the open call */
    size_t edge_count;
} sl_slot_spec;

/* The contents of a topology file. Call sl_topology_spec_defaults() first. A parameter of 0 is not
 * given. docs/topology.md says which family takes which parameters, and their defaults. */
typedef struct sl_topology_spec {
    uint32_t nodes;
    sl_family family;
    sl_weighting weighting;
    bool lazy;     /* (I + W)/2 of the W of that weighting */
    bool directed; /* SL_FAMILY_EDGES: an edge is listed for each direction that exists */
    bool self_completes_column; /* explicit weights: an unlisted self-weight completes the column to
                                   1, not the row */
    uint32_t sides[SL_SIDES_MAX],
        side_count; /* lengths of the dimensions, their product is `nodes`; neighbouring numbers lie
                       along the last one */
    uint32_t offsets[SL_OFFSETS_MAX],
        offset_count; /* circulant: i is joined to i + offset and i - offset */
    uint32_t degree;
    uint32_t arity;        /* children of a node; de-bruijn, kautz: out-neighbours */
    uint32_t part;         /* complete-bipartite: nodes 0 .. part - 1 face the others */
    uint32_t clique;       /* nodes of a complete part */
    uint32_t clusters;     /* clusters of nodes / clusters nodes each */
    sl_family joined;      /* how clusters are joined: SL_FAMILY_RING, PATH, STAR, COMPLETE */
    uint32_t bridges;      /* edges between two joined clusters */
    uint32_t bridge_every; /* the bridges are used every so many rounds */
    double probability;
    double radius;             /* of the neighbourhood, in the unit square */
    uint32_t peers;            /* base-k: at most so many peers of a node in a round */
    sl_family base;            /* matcha: the base graph; its parameters stand beside this one */
    double budget;             /* matcha: mean fraction of active matchings */
    uint32_t period;           /* random schedules: number of slots */
    uint64_t seed;             /* random families; at most 2^63 - 1 */
    const sl_slot_spec *slots; /* SL_FAMILY_EDGES: one slot, or the schedule's */
    size_t slot_count;
    const struct sl_links
        *links; /* SL_WEIGHTING_BANDWIDTH: borrowed for the open call; starling/links.h */
    const sl_watch *watch; /* likewise: hears how far weights are optimized; NULL: nobody */
    bool in_parts;         /* opens a disconnected graph, too: for analysis, not for training */
} sl_topology_spec;

SL_API void sl_topology_spec_defaults(sl_topology_spec *spec);

typedef struct sl_topology sl_topology;

/* One side of a row; arrays of `count`, sorted by peer, self excluded; borrowed from the topology.
 */
typedef struct sl_row {
    uint32_t count;
    const uint32_t *peers;
    const double *weights; /* in-row: W_ij, what this node gives peer j; out-row: W_ji, what peer j
                              gives it (push-sum: P_ji) */
    double self;           /* W_ii */
} sl_row;

/* Of an endless topology: in the first `period` rounds. */
SL_API sl_row sl_topology_in(const sl_topology *topology, uint64_t round, uint32_t rank);
SL_API sl_row sl_topology_out(const sl_topology *topology, uint64_t round, uint32_t rank);

/* Does it never repeat? Then W is symmetric in every round. */
SL_API bool sl_topology_is_endless(const sl_topology *topology);
/* The row of an endless topology in any round, in the caller's memory, which has room for
 * sl_topology_degree_max() peers and weights. */
SL_API sl_row sl_topology_row(const sl_topology *topology, uint64_t round, uint32_t rank,
                              uint32_t *peers, double *weights);
/* The most peers that a row of an endless topology has. */
SL_API uint32_t sl_topology_degree_max(const sl_topology *topology);

SL_API uint32_t sl_topology_nodes(const sl_topology *topology);
/* The description, with defaults filled in and without slots. Borrowed. */
SL_API const sl_topology_spec *sl_topology_description(const sl_topology *topology);
SL_API uint32_t sl_topology_period(const sl_topology *topology);
/* The inbox window: how many rounds an in-neighbour can be ahead, plus one. 2 for one undirected
 * graph. */
SL_API uint32_t sl_topology_window(const sl_topology *topology);
/* A hash of nodes, slots, edges and weights. Equal: the same W in every round. */
SL_API uint64_t sl_topology_hash(const sl_topology *topology);
/* Is -1 an eigenvalue of W (a bipartite graph without self-weights)? Then averaging alternates and
 * never converges; the lazy form of the same weights does. */
SL_API bool sl_topology_alternates(const sl_topology *topology);
/* All peers of `rank`, in either direction and any slot, sorted. *peers is borrowed. */
SL_API uint32_t sl_topology_peers(const sl_topology *topology, uint32_t rank,
                                  const uint32_t **peers);

/* Properties of W; true only if every slot has them. Residual: largest |sum - 1|. */
typedef struct sl_stochasticity {
    bool symmetric, row, column; /* W = W'; rows sum to 1; columns sum to 1 */
    bool nonnegative; /* no weight is negative. Doubly stochastic: row, column and nonnegative */
    double row_residual, column_residual;
} sl_stochasticity;
SL_API sl_stochasticity sl_topology_stochasticity(const sl_topology *topology);

/* Of a graph that is not connected, which nodes or parts hang apart: "node 7 has no edge". Writes
 * at most `room` bytes. */
SL_API void sl_topology_say_parts(char *out, size_t room, const sl_topology *topology);

/* How close optimized weights are to the optimum; see starling/optimal.h. */
typedef struct sl_optimum {
    double rho;          /* ||W - J||_2 of the weights found */
    double lower_bound;  /* a lower bound on rho for weights of that sign on this graph */
    uint32_t iterations; /* Newton iterations; on large graphs, descent steps */
    bool converged;      /* rho - lower_bound <= tolerance */
} sl_optimum;

/* For weights fmmc or fdla. False, with *out untouched, for other weights, lazy forms and
 * schedules. */
/* Were listed weights put right, which had been rounded? Then `out` says so. */
SL_API bool sl_topology_mended(char *out, size_t room, const sl_topology *topology);
SL_API bool sl_topology_optimum(sl_optimum *out, const sl_topology *topology);

#ifdef __cplusplus
}
#endif
#endif
