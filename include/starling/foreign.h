/* foreign.h - graphs as other programs have them: which format a file has, and from edges or a
 * matrix to the text of a topology file.
 *
 * Other programs leave open whether the numbers at edges are mixing weights. They are taken for
 * such if, for each node, they leave the node a weight for itself: rows of W (or columns) sum to 1,
 * or to less than that where no self-weight is given. If all of them are 1 they are no weights.
 * Anything else is refused, unless a scheme is named, which then gives the weights. */
#ifndef STARLING_FOREIGN_H
#define STARLING_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

#include "starling/api.h"
#include "starling/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Formats of graphs, as their bytes show them: enum suffix and name. `starling topology make
 * --from` reads those up to TABLE. */
#define SL_GRAPH_FORMATS_OF(X)                                                                     \
    X(NODE_LINK, "node-link JSON")                                                                 \
    X(ADJACENCY, "adjacency JSON")                                                                 \
    X(GRAPHML, "GraphML")                                                                          \
    X(GML, "GML")                                                                                  \
    X(MATRIX_MARKET, "a Matrix Market file")                                                       \
    X(NPY, "a .npy file")                                                                          \
    X(TABLE, "an edge list or a matrix")                                                           \
    X(GEXF, "GEXF")                                                                                \
    X(XML, "XML")                                                                                  \
    X(DOT, "DOT")                                                                                  \
    X(PAJEK, "a Pajek file")                                                                       \
    X(CYTOSCAPE, "Cytoscape's JSON")                                                               \
    X(PICKLE, "a Python pickle")

typedef enum sl_graph_format {
    SL_GRAPH_UNKNOWN,
#define SL_GRAPH_FORMAT_ENUM(suffix, name) SL_GRAPH_##suffix,
    SL_GRAPH_FORMATS_OF(SL_GRAPH_FORMAT_ENUM)
#undef SL_GRAPH_FORMAT_ENUM
} sl_graph_format;

/* What the file's bytes are, a 0 behind them. UNKNOWN: a topology file, an experiment, or anything
 * else. */
SL_API sl_graph_format sl_graph_recognise(const char *bytes, size_t size);
SL_API const char *sl_graph_format_name(sl_graph_format format);
SL_API bool sl_graph_format_is_read(sl_graph_format format);

/* Borrowed. */
typedef struct sl_foreign_graph {
    uint32_t nodes;
    const char *const *names; /* (nodes) for errors; NULL: their numbers */
    const sl_edge *edges;     /* (edge_count) weight NaN: none. Those of two nodes add up */
    size_t edge_count;
    bool directed;       /* false: each edge leads both ways */
    const char *weights; /* the name of a scheme; NULL: see above */
} sl_foreign_graph;

/* The text of a topology file, malloc'ed; whether it suits a run is for sl_topology_parse. Edges of
 * weight 0 and self-loops without weight are left out. A directed graph that has each edge's
 * reverse, and no weights, becomes undirected. SL_EINVAL says which node's weights are no mixing
 * weights. */
SL_API int sl_foreign_graph_json(char **json, const sl_foreign_graph *graph, sl_error *error);

typedef struct sl_matrix_entry {
    uint32_t row, column;
    double value;
} sl_matrix_entry;

/* The same of a matrix (nodes, nodes): `count` entries in any order, of which those at one place
 * add up; all others are 0. Of 0 and 1 only, or where a scheme is named, it is an adjacency matrix:
 * entry [i][j] is an edge from i to j. Otherwise it is W: entry [i][j] is what node i gives what j
 * sends. */
SL_API int sl_foreign_matrix_json(char **json, uint32_t nodes, const sl_matrix_entry *entries,
                                  size_t count, const char *weights, sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
