/* candidates.h - the topologies that are worth a look for a given number of nodes. */
#ifndef SL_CANDIDATES_H
#define SL_CANDIDATES_H

#include "starling/topology.h"

enum { CANDIDATES_MAX = 64 };

typedef struct candidates {
    sl_topology_spec specs[CANDIDATES_MAX];
    size_t count;
} candidates;

/* Each family with suitable parameters; whether a family fits the number of nodes at all is for sl_topology_open() to say. numbered: which node has which number
 * matters, because links differ. */
void candidates_list(candidates *out, uint32_t nodes, uint64_t seed, bool numbered);

/* "torus 3x4", "base-k 2": the family and the parameters that candidates differ in. */
void candidate_name(char *text, size_t room, const sl_topology_spec *spec);

/* sides (SL_SIDES_MAX): `nodes` as a product of so many sides that are as equal as possible, rising; false if one would have to be 1. */
bool equal_sides(uint32_t *sides, uint32_t count, uint32_t nodes);

#endif
