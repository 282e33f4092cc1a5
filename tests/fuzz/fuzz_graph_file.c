/* fuzz_graph_file.c - graphs of other programs, in all formats that are read. What is taken becomes
 * a topology file's text, which is a topology, or is refused as one. */
#include <assert.h>

#include "foreign/graph_file.h"
#include "starling/topology.h"
#include "text.h"

enum { OPENED_MAX = 64 }; /* nodes of a topology that is opened, too */

static void make(graph_file *g, const char *weights) {
    char *json = NULL;
    sl_error error;
    sl_topology *t = NULL;
    if (graph_file_json(&json, g, weights, NULL, &error) != 0)
        return;
    if (g->nodes <= OPENED_MAX && sl_topology_parse(&t, json, "made", &error) == 0) {
        const sl_stochasticity s = sl_topology_stochasticity(t);
        assert((s.row || s.column) && sl_topology_nodes(t) == g->nodes);
        sl_topology_close(&t);
    }
    free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *bytes = text_of(data, size);
    graph_file g = {.directed = size % 2 == 1};
    sl_error error;
    if (bytes != NULL && graph_file_parse(&g, bytes, size, &error) == 0) {
        for (size_t e = 0; e < g.edge_count; e++)
            assert(g.edges[e].from < g.nodes && g.edges[e].to < g.nodes);
        for (size_t e = 0; e < g.entry_count; e++)
            assert(g.entries[e].row < g.nodes && g.entries[e].column < g.nodes);
        make(&g, NULL);
        make(&g, "metropolis");
    }
    graph_file_close(&g);
    free(bytes);
    return 0;
}
