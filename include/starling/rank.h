/* rank.h - ranks topologies by the time to agree on a given cluster.
 *
 * Opens every family that fits the number of nodes, with suitable parameters and weights. The
 * criterion is the time in which gossip averaging shrinks the distance to agreement to epsilon,
 * from the worst start: rounds times the time of a round. A well connected graph needs fewer
 * rounds, but its nodes send more. Times are those of starling/analysis.h (alpha + beta m for each
 * message), and what a gradient takes, if that is said. */
#ifndef STARLING_RANK_H
#define STARLING_RANK_H

#include "starling/analysis.h"
#include "starling/api.h"
#include "starling/graph.h"
#include "starling/links.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_RANK_NODES_MAX 100000u
#define SL_RANK_NAME_MAX 64
#define SL_RANK_WHY_MAX 256

typedef struct sl_rank_settings {
    uint32_t nodes;          /* 2 to SL_RANK_NODES_MAX */
    const sl_links *links;   /* of as many nodes; borrowed for the call */
    const double *compute_s; /* (nodes) seconds of each node's gradient; borrowed for the call;
                                NULL: 0 */
    double message_bytes;    /* bytes of one model */
    double epsilon; /* in (0, 1): target distance to agreement, as a fraction of the first */
    sl_port port;   /* default: serial */
    uint64_t seed;  /* of random graphs; default 1 */
    /* What is wanted of a topology; others are left out. */
    uint32_t degree_max; /* messages that a node sends in a round, at most; 0: any number */
    bool undirected;     /* every edge leads both ways in its round */
    bool fixed;          /* one symmetric W for all rounds, as CHOCO, BEER and LEAD need it */
    /* Hears the share of candidates that are judged; may be NULL. For thousands of nodes a ranking
     * takes minutes. */
    const sl_watch *watch;
} sl_rank_settings;

SL_API void sl_rank_defaults(sl_rank_settings *settings);

typedef struct sl_candidate {
    sl_topology *topology;       /* the ranking owns it */
    char name[SL_RANK_NAME_MAX]; /* "torus 3x4" */
    sl_family family; /* what it was opened as, with `weighting`. A relabelled topology lists its
                         edges in its own description */
    sl_weighting weighting;
    double rounds; /* rounds to epsilon from the worst start; infinite: never; NaN: unknown within
                      the limits of work */
    double bytes;  /* bytes that a node sends in a round: mean over nodes and slots */
    double round_seconds; /* mean over the slots */
    double seconds;       /* seconds to epsilon: rounds * round_seconds */
    double gap;           /* 1 - rho (schedules: per round); 1 if exact */
    uint32_t exact_after; /* rounds to agreement up to rounding; 0: never */
    uint32_t degree_max;  /* most messages of a node in a round */
    bool relabelled;      /* relabelled: neighbouring numbers have fast links; edges are listed */
    char why[SL_RANK_WHY_MAX]; /* a note about it; "": none */
} sl_candidate;

typedef struct sl_ranking sl_ranking;

/* Sorted by time, then bytes, then name. */
SL_API int sl_ranking_open(sl_ranking **out, const sl_rank_settings *settings, sl_error *error);
SL_API void sl_ranking_close(sl_ranking **ranking);
SL_API size_t sl_ranking_count(const sl_ranking *ranking);
SL_API const sl_candidate *sl_ranking_at(const sl_ranking *ranking,
                                         size_t place); /* 0: the fastest */
/* What fits the number of nodes, but not what is wanted. */
typedef struct sl_left_out {
    char name[SL_RANK_NAME_MAX];
    char why[SL_RANK_WHY_MAX];
} sl_left_out;

/* Borrowed; in the order in which families are tried. */
SL_API size_t sl_ranking_left_out(const sl_ranking *ranking, const sl_left_out **left_out);

/* Notes: what decides on this cluster, and why families are missing. Borrowed. */
SL_API size_t sl_ranking_notes(const sl_ranking *ranking, const char *const **notes);

/* Writes to order (nodes) a cycle of nodes whose neighbours have fast links. Greedy: takes links
 * by ascending time of a message of message_bytes, unless an end has two links already or the
 * cycle would close too early. */
SL_API int sl_links_order(uint32_t *order, const sl_links *links, double message_bytes,
                          sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
