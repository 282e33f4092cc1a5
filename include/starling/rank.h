/* rank.h - which topology agrees soonest on a given cluster.
 *
 * Every family that fits the number of nodes is opened with suitable parameters and weights, and
 * judged by one number: the seconds that gossip averaging takes until the distance to agreement has
 * shrunk to epsilon, whatever the nodes began with. That is rounds times the time of a round: a
 * well connected graph needs few rounds, but each node sends more. Times are those of
 * starling/analysis.h (alpha + beta m for each message); computing is not counted.
 */
#ifndef STARLING_RANK_H
#define STARLING_RANK_H

#include "starling/analysis.h"
#include "starling/api.h"
#include "starling/graph.h"
#include "starling/links.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_RANK_NODES_MAX 10000u
#define SL_RANK_NAME_MAX 64
#define SL_RANK_WHY_MAX 256

typedef struct sl_rank_settings {
    uint32_t nodes;        /* 2 to SL_RANK_NODES_MAX */
    const sl_links *links; /* borrowed for the call; of as many nodes */
    double message_bytes;  /* of one model */
    double
        epsilon;   /* in (0, 1): the distance to agreement is to shrink to this part of the first */
    sl_port port;  /* default: serial */
    uint64_t seed; /* of random graphs; default 1 */
    /* Called before each of `total` candidates is opened and judged, which takes minutes in all for
     * thousands of nodes; may be NULL. */
    void (*progress)(void *context, uint32_t done, uint32_t total);
    void *progress_context;
} sl_rank_settings;

SL_API void sl_rank_defaults(sl_rank_settings *settings);

typedef struct sl_candidate {
    sl_topology *topology;       /* the ranking's */
    char name[SL_RANK_NAME_MAX]; /* "torus 3x4" */
    sl_family family; /* with `weighting`, what it was opened as; if it is relabelled, the
                         topology's own description has listed edges instead */
    sl_weighting weighting;
    double rounds; /* to epsilon from the worst start; infinite: never; NaN: not known within the
                      limits of work */
    double bytes;  /* that a node sends in a round: mean over nodes and slots */
    double round_seconds; /* mean over the slots */
    double seconds;       /* until epsilon: rounds * round_seconds */
    double gap;           /* 1 - rho, of a schedule per round; 1 where it is exact */
    uint32_t exact_after; /* rounds after which all agree up to rounding; 0: never */
    uint32_t degree_max;  /* messages of a node in a round, at most */
    bool relabelled;      /* nodes are numbered along fast links: the topology's edges are listed */
    char why[SL_RANK_WHY_MAX]; /* what is special about it; "" */
} sl_candidate;

typedef struct sl_ranking sl_ranking;

/* The fastest first; equal ones by bytes, then by name. */
SL_API int sl_ranking_open(sl_ranking **out, const sl_rank_settings *settings, sl_error *error);
SL_API void sl_ranking_close(sl_ranking **ranking);
SL_API size_t sl_ranking_count(const sl_ranking *ranking);
SL_API const sl_candidate *sl_ranking_at(const sl_ranking *ranking, size_t place); /* 0: the best */
/* What decides here, and why families are missing: sentences, borrowed. */
SL_API size_t sl_ranking_notes(const sl_ranking *ranking, const char *const **notes);

/* The nodes in an order in which neighbours have fast links, the last and the first among them:
 * order (nodes). A greedy cycle: links by rising time of a message of message_bytes, each taken
 * unless one of its ends has two already or it would close the cycle too soon. */
SL_API int sl_links_order(uint32_t *order, const sl_links *links, double message_bytes,
                          sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
