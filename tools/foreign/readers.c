/* readers.c - which reader takes which file; see graph_file.h. */
#include <stdlib.h>
#include <string.h>

#include "foreign/graph_file.h"
#include "starling/text.h"

enum { FILE_BYTES_MAX = 1 << 30 };

static graph_reader *const readers[] = {
    [SL_GRAPH_NODE_LINK] = read_node_link,
    [SL_GRAPH_ADJACENCY] = read_adjacency,
    [SL_GRAPH_GRAPHML] = read_graphml,
    [SL_GRAPH_GML] = read_gml,
    [SL_GRAPH_MATRIX_MARKET] = read_matrix_market,
    [SL_GRAPH_NPY] = read_npy,
    [SL_GRAPH_TABLE] = read_table,
};

/* What is not recognised may be an edge list of names. */
static int choose_reader(graph_reader **out, const char *bytes, size_t size, sl_error *error) {
    const sl_graph_format format = sl_graph_recognise(bytes, size);
    const char first = bytes[strspn(bytes, " \t\r\n")];
    if (format == SL_GRAPH_UNKNOWN && (first == '{' || first == '['))
        return sl_fail(error, SL_EFILE,
                       "is JSON, but not of a graph as networkx's node_link_data() gives it; a "
                       "topology file needs no conversion");
    if (format != SL_GRAPH_UNKNOWN && !sl_graph_format_is_read(format))
        return sl_fail(error, SL_EFILE,
                       "is %s, which is not read; write GraphML, GML, node-link JSON, an edge list "
                       "or a matrix",
                       sl_graph_format_name(format));
    *out = format == SL_GRAPH_UNKNOWN ? read_table : readers[format];
    return 0;
}

int graph_file_parse(graph_file *g, char *bytes, size_t size, sl_error *error) {
    graph_reader *reader = NULL;
    int result = choose_reader(&reader, bytes, size, error);
    if (result == 0)
        result = reader(g, bytes, size, error);
    return result == 0 ? graph_finish(g, error) : result;
}

/* Only numpy's arrays are no text. */
static int read_bytes(char **out, size_t *size, const char *path, sl_error *error) {
    int result = sl_file_read(out, size, path, FILE_BYTES_MAX, error);
    if (result != 0 || sl_graph_recognise(*out, *size) == SL_GRAPH_NPY ||
        sl_graph_recognise(*out, *size) == SL_GRAPH_PICKLE)
        return result;
    free(*out);
    result = sl_text_read(out, path, FILE_BYTES_MAX, error);
    *size = result == 0 ? strlen(*out) : 0;
    return result;
}

int graph_file_read(graph_file *out, const char *path, bool directed, sl_error *error) {
    char *bytes;
    size_t size;
    *out = (graph_file){.path = path, .directed = directed};
    int result = read_bytes(&bytes, &size, path, error);
    if (result != 0)
        return result;
    out->format = sl_graph_recognise(bytes, size);
    out->format = out->format == SL_GRAPH_UNKNOWN ? SL_GRAPH_TABLE : out->format;
    result = graph_file_parse(out, bytes, size, error);
    free(bytes);
    return result != 0 ? sl_fail_prefix(error, result, "%s", path) : 0;
}
