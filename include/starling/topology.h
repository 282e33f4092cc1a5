/* topology.h - opening topologies: from a description, from JSON, from a file; and writing them.
 *
 * What a topology is, and how to ask it for rows, is in starling/graph.h.
 */
#ifndef STARLING_TOPOLOGY_H
#define STARLING_TOPOLOGY_H

#include "starling/api.h"
#include "starling/family.h"
#include "starling/graph.h"
#include "starling/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a description without building the graph: up to SL_NODES_DESCRIBED_MAX nodes, parameters
 * checked and those that were not given filled in. Of edges that are listed, and of links, nothing
 * is kept: of the former nodes, directed and weighting, with SL_FAMILY_EDGES and slots NULL. */
SL_API int sl_topology_spec_parse(sl_topology_spec *out, const char *json, const char *where,
                                  sl_error *error);

/* Builds and checks: edges in range, no duplicates, strongly connected (a schedule: the union over
 * its period), rows and columns stochastic as its weighting promises; random families retry until
 * connected and say so when they are not after a bounded number of tries. Explicit weights must be
 * row- or column-stochastic. */
SL_API int sl_topology_open(sl_topology **out, const sl_topology_spec *spec, sl_error *error);

/* From JSON text / from a file (both the topology file of docs/topology.md). `where` names the
 * source in error texts, for example "ring.json" or "experiment.json: topology". */
SL_API int sl_topology_parse(sl_topology **out, const char *json, const char *where,
                             sl_error *error);
SL_API int sl_topology_load(sl_topology **out, const char *path, sl_error *error);
/* The same, but where neither a scheme nor weights are named, and a node keeps less than half of
 * its own value, with the lazy form of the weights that the topology has by itself. */
SL_API int sl_topology_parse_lazy(sl_topology **out, const char *json, const char *where,
                                  sl_error *error);
SL_API int sl_topology_load_lazy(sl_topology **out, const char *path, sl_error *error);
/* The same of a graph that may be in parts. */
SL_API int sl_topology_inspect(sl_topology **out, const char *path, sl_error *error);
SL_API void sl_topology_close(sl_topology **topology);

/* Canonical JSON of the topology that sl_topology_parse takes back to an equal topology, with its
 * hash, so that a change is noticed; malloc'ed, caller frees. NULL: out of memory. */
SL_API char *sl_topology_json(const sl_topology *topology);
/* The same with a family written out as edges and weights; what it was is kept under "provenance".
 */
SL_API char *sl_topology_json_expanded(const sl_topology *topology);
/* A family's description, settled (sl_topology_spec_parse) and without a hash, as its graph is not
 * built. */
SL_API char *sl_topology_spec_json(const sl_topology_spec *spec);

#ifdef __cplusplus
}
#endif
#endif
