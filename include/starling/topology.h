/* topology.h - opens topologies from a description, JSON text or a file, and writes them.
 *
 * starling/graph.h has the description and the rows. */
#ifndef STARLING_TOPOLOGY_H
#define STARLING_TOPOLOGY_H

#include "starling/api.h"
#include "starling/family.h"
#include "starling/graph.h"
#include "starling/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a description without building the graph, for up to SL_NODES_DESCRIBED_MAX nodes. Checks
 * parameters and fills in defaults. Listed edges and links are dropped: then only nodes, directed
 * and weighting are set, family is SL_FAMILY_EDGES and slots is NULL. */
SL_API int sl_topology_spec_parse(sl_topology_spec *out, const char *json, const char *where,
                                  sl_error *error);

/* Builds the topology and checks it: edges in range, no duplicates, strongly connected (a
 * schedule: the union of its slots), rows and columns as the weighting promises. Explicit weights
 * must be row- or column-stochastic. A random family is drawn again while it is disconnected, a
 * limited number of times; then SL_EINVAL. */
SL_API int sl_topology_open(sl_topology **out, const sl_topology_spec *spec, sl_error *error);

/* From JSON text, or from a file; docs/topology.md has the format. `where` names the source in
 * errors, such as "ring.json" or "experiment.json: topology". */
SL_API int sl_topology_parse(sl_topology **out, const char *json, const char *where,
                             sl_error *error);
SL_API int sl_topology_load(sl_topology **out, const char *path, sl_error *error);
/* Weights that nobody has named: an eigenvalue of a round's (W + W')/2 below `below` makes them
 * lazy, unless they are the family's own. */
typedef struct sl_lazy_choice {
    double below; /* -INFINITY: none does */
    bool taken;   /* they are lazy for that reason */
} sl_lazy_choice;
/* How one is opened; zeros: as above. */
typedef struct sl_topology_opening {
    bool in_parts;         /* it may be disconnected */
    sl_lazy_choice *lazy;  /* NULL: none to make */
    const sl_watch *watch; /* hears how far weights are optimized; NULL: nobody */
} sl_topology_opening;
SL_API int sl_topology_parse_as(sl_topology **out, const char *json, const char *where,
                                const sl_topology_opening *how, sl_error *error);
SL_API int sl_topology_load_as(sl_topology **out, const char *path, const sl_topology_opening *how,
                               sl_error *error);
SL_API void sl_topology_close(sl_topology **topology);

/* How the topology of some members came about. */
typedef struct sl_regrouping {
    bool is_family; /* the family's graph for their number; else the first graph without the dead */
    uint32_t bridges; /* edges that were added, since it would have been in parts */
} sl_regrouping;

/* The topology of those ranks of `first` that are left: node k of it is members[k] (count, rising).
 * A family is made again for their number. If it does not exist for that number, or edges are
 * listed, the dead are left out, and the weight scheme is applied again; a rest in parts is joined
 * through the neighbours of the dead. Listed weights, and weights "bandwidth", become the
 * stochastic complement of W. Ranks behind those of `first` have come after it: each has an edge to
 * the lowest member where the family is not made again. SL_EINVAL: a schedule that cannot be
 * joined; newcomers beside listed weights. */
SL_API int sl_topology_among(sl_topology **out, sl_regrouping *how, const sl_topology *first,
                             const uint32_t *members, uint32_t count, sl_error *error);
/* The same graph written in ranks: of `nodes` nodes, of which those that are no members have no
 * edges. For rows; its spectrum says nothing. */
SL_API int sl_topology_in_ranks(sl_topology **out, const sl_topology *among,
                                const uint32_t *members, uint32_t nodes, sl_error *error);

/* Canonical JSON with the topology's hash; sl_topology_parse reads an equal topology from it.
 * malloc'ed, the caller frees. NULL: out of memory. */
SL_API char *sl_topology_json(const sl_topology *topology);
/* The same with the family's edges and weights listed; "provenance" names the family. Of an endless
 * topology its first rounds, without a hash. */
SL_API char *sl_topology_json_expanded(const sl_topology *topology);
/* The description of a family (of sl_topology_spec_parse), without a hash, since its graph is not
 * built. */
SL_API char *sl_topology_spec_json(const sl_topology_spec *spec);

#ifdef __cplusplus
}
#endif
#endif
