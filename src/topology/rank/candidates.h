/* candidates.h - the topologies that are worth a look for a given number of nodes. */
#ifndef SL_CANDIDATES_H
#define SL_CANDIDATES_H

#include "starling/links.h"
#include "starling/rank.h"
#include "starling/topology.h"

enum { CANDIDATES_MAX = 96, CLUSTERINGS_MAX = 4 };

/* Clusters of equal size in which nodes lie, numbered in the order of sl_links_order(): every link
 * from a cluster to the next takes more than CLUSTERS_APART times as long as every link along the
 * order within one. Racks, and sites of racks: there may be more than one answer, the fewest
 * clusters first. */
typedef struct clusterings {
    uint32_t clusters[CLUSTERINGS_MAX];
    size_t count;
} clusterings;
#define CLUSTERS_APART 2.0
int sl_links_clusterings(clusterings *out, const uint32_t *order, const sl_links *links,
                         double message_bytes, sl_error *error);

typedef struct candidates {
    sl_topology_spec specs[CANDIDATES_MAX];
    size_t count;
    bool some_too_large; /* graphs of more than CANDIDATE_EDGES_MAX edges, one each way, are left
                            out */
} candidates;
#define CANDIDATE_EDGES_MAX 20000000u

/* Each family with suitable parameters; whether a family fits the number of nodes at all is for
 * sl_topology_open() to say. racks: where links differ, so that it matters which node has which
 * number; NULL where they do not. */
void sl_candidates_list(candidates *out, uint32_t nodes, uint64_t seed, const clusterings *racks);

/* "torus 3x4", "base-k 2", "clusters 2 of 8, every 4": the family and the parameters that
 * candidates differ in. */
void sl_candidate_name(char *text, size_t room, const sl_topology_spec *spec);

/* Fills in what follows from the candidate's topology alone: rounds, exact_after. */
int sl_candidate_judge(sl_candidate *c, const sl_rank_settings *settings, sl_error *error);

/* sides (SL_SIDES_MAX): `nodes` as a product of so many sides that are as equal as possible,
 * rising; false if one would have to be 1. */
bool sl_family_equal_sides(uint32_t *sides, uint32_t count, uint32_t nodes);

#endif
