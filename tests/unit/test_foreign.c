/* test_foreign.c - graphs of other programs: formats by their bytes, and what the numbers at edges
 * and in matrices mean. The readers are held against networkx in tests/parity/test_foreign.py. */
#include "harness.h"
#include "starling/foreign.h"
#include "starling/topology.h"

static sl_error error;

/* ---- formats ---- */

static const struct {
    const char *text;
    sl_graph_format format;
} files[] = {
    {"{\"nodes\": [{\"id\": 0}], \"links\": []}", SL_GRAPH_NODE_LINK},
    {"\xEF\xBB\xBF {\"nodes\": [], \"edges\": []}", SL_GRAPH_NODE_LINK},
    {"{\"nodes\": [], \"adjacency\": []}", SL_GRAPH_ADJACENCY},
    {"{\"elements\": {\"nodes\": []}}", SL_GRAPH_CYTOSCAPE},
    {"{\"nodes\": 4, \"family\": \"ring\"}", SL_GRAPH_UNKNOWN},
    {"{\"nodes\": 2, \"edges\": [[0, 1]]}", SL_GRAPH_UNKNOWN},
    {"{\"rounds\": 4}", SL_GRAPH_UNKNOWN},
    {"{\"nodes\": [", SL_GRAPH_UNKNOWN},
    {"[[0, 1], [1, 0]]", SL_GRAPH_UNKNOWN},
    {"<?xml version=\"1.0\"?>\n<graphml xmlns=\"x\">", SL_GRAPH_GRAPHML},
    {"<gexf version=\"1.2\">", SL_GRAPH_GEXF},
    {"<html>", SL_GRAPH_XML},
    {"graph [\n directed 1 ]", SL_GRAPH_GML},
    {"Creator \"igraph\"\nVersion 1\ngraph\n[\n", SL_GRAPH_GML},
    {"# of a script\ngraph [ ]", SL_GRAPH_GML},
    {"graph G { a -- b }", SL_GRAPH_DOT},
    {"strict digraph { a -> b }", SL_GRAPH_DOT},
    {"*Vertices 3\n", SL_GRAPH_PAJEK},
    {"%%MatrixMarket matrix array real general\n", SL_GRAPH_MATRIX_MARKET},
    {"\x93NUMPY\x01", SL_GRAPH_NPY},
    {"\x80\x04\x95", SL_GRAPH_PICKLE},
    {"0 1\n1 2\n", SL_GRAPH_TABLE},
    {"# Nodes: 3\n0\t1\t0.5\n", SL_GRAPH_TABLE},
    {"a b {}\n", SL_GRAPH_TABLE},
    {"Source,Target\nrome,oslo\n", SL_GRAPH_TABLE},
    {",a,b\na,0,1\nb,1,0\n", SL_GRAPH_TABLE},
    {"1.000e+00 0.000e+00\n", SL_GRAPH_TABLE},
    {"0 3:0.9 5:0.1\n", SL_GRAPH_UNKNOWN}, /* LIBSVM */
    {"10.0.0.1:7000\n", SL_GRAPH_UNKNOWN}, /* a roster */
    {"ROMEO:\nhe is\n", SL_GRAPH_UNKNOWN},
    {"versions differ\n", SL_GRAPH_UNKNOWN},
    {"rounds: 100\n", SL_GRAPH_UNKNOWN},
    {"rounds = 100\n", SL_GRAPH_UNKNOWN},
    {"\"rounds\": 100, \"epochs\": 3\n", SL_GRAPH_UNKNOWN},
    {"", SL_GRAPH_UNKNOWN},
};

START_TEST(formats_show_in_the_bytes) {
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const sl_graph_format found = sl_graph_recognise(files[i].text, strlen(files[i].text));
        ck_assert_msg(found == files[i].format, "%s: %s, not %s", files[i].text,
                      sl_graph_format_name(found), sl_graph_format_name(files[i].format));
    }
    ck_assert(sl_graph_format_is_read(SL_GRAPH_TABLE) && !sl_graph_format_is_read(SL_GRAPH_GEXF));
    ck_assert(!sl_graph_format_is_read(SL_GRAPH_UNKNOWN));
}

/* ---- graphs ---- */

#define EDGES(...)                                                                                 \
    ((const sl_edge[]){__VA_ARGS__}), sizeof((const sl_edge[]){__VA_ARGS__}) / sizeof(sl_edge)
static const struct {
    const sl_edge *edges;
    size_t count;
    bool directed;
    const char *weights, *json; /* or what the error says */
} graphs[] = {
    {EDGES({1, 0, NAN}, {1, 2, NAN}), false, NULL, "{\"nodes\":3,\"edges\":[[0,1],[1,2]]}"},
    {EDGES({1, 0, 1}, {1, 2, 1}), false, NULL, "{\"nodes\":3,\"edges\":[[0,1],[1,2]]}"},
    {EDGES({1, 0, 7}, {1, 2, 5}), false, "fdla",
     "{\"nodes\":3,\"weights\":\"fdla\",\"edges\":[[0,1],[1,2]]}"},
    {EDGES({1, 0, NAN}, {0, 1, NAN}, {2, 2, NAN}, {1, 2, NAN}), false, NULL,
     "{\"nodes\":3,\"edges\":[[0,1],[1,2]]}"},
    {EDGES({1, 0, .25}, {0, 1, .125}, {1, 2, .25}, {2, 2, .75}, {0, 2, 0}), false, NULL,
     "{\"nodes\":3,\"edges\":[[0,1,0.375],[1,0,0.375],[1,2,0.25],[2,1,0.25],[2,2,0.75]]}"},
    {EDGES({1, 0, NAN}, {0, 1, NAN}, {1, 2, NAN}, {2, 1, NAN}), true, NULL,
     "{\"nodes\":3,\"edges\":[[0,1],[1,2]]}"},
    {EDGES({0, 1, NAN}, {1, 2, NAN}, {2, 0, NAN}), true, NULL,
     "{\"nodes\":3,\"directed\":true,\"edges\":[[2,0],[0,1],[1,2]]}"},
    {EDGES({0, 1, .5}, {1, 2, .5}, {2, 0, .5}), true, NULL,
     "{\"nodes\":3,\"edges\":[[2,0,0.5],[0,1,0.5],[1,2,0.5]]}"},
    {EDGES({0, 1, .75}, {2, 1, .5}, {1, 0, .5}, {1, 2, .25}), true, NULL, /* by columns */
     "{\"nodes\":3,\"weights\":\"push-sum\",\"edges\":[[1,0,0.5],[0,1,0.75],[2,1,0.5],[1,2,0.25]]"
     "}"},
    {EDGES({0, 1, 3}, {1, 2, 4}), false, NULL,
     "what node \"a\" gives its neighbours sums to 3, and what node \"a\" is given to 3"},
    {EDGES({0, 0, .5}, {0, 1, .25}, {1, 2, .25}), false, NULL,
     "what node \"a\" gives itself and its neighbours sums to 0.75"},
    {EDGES({0, 1, .5}, {1, 2, NAN}), false, NULL, "edge \"b\" to \"c\" has no weight, and others"},
    {EDGES({0, 1, INFINITY}, {1, 2, .5}), false, NULL, "the weight of edge \"a\" to \"b\" is inf"},
    {EDGES({0, 3, NAN}), false, NULL, "edge [0, 3] names a node that is not in 0..2"},
};

START_LOOP_TEST(numbers_at_edges_are_weights_or_are_refused, sizeof graphs / sizeof *graphs) {
    static const char *const names[] = {"a", "b", "c"};
    const sl_foreign_graph graph = {.nodes = 3,
                                    .names = names,
                                    .edges = graphs[_i].edges,
                                    .edge_count = graphs[_i].count,
                                    .directed = graphs[_i].directed,
                                    .weights = graphs[_i].weights};
    char *json = NULL;
    const int result = sl_foreign_graph_json(&json, &graph, &error);
    if (graphs[_i].json[0] == '{') {
        ck_assert_msg(result == 0, "%s", error.text);
        ck_assert_str_eq(json, graphs[_i].json);
    } else {
        ck_assert_int_eq(result, SL_EINVAL);
        ck_assert_msg(strstr(error.text, graphs[_i].json) != NULL, "%s", error.text);
    }
    free(json);
}

/* ---- matrices ---- */

static const struct {
    double matrix[9];
    const char *weights, *json;
} matrices[] = {
    {{0, 1, 0, 1, 0, 1, 0, 1, 0}, NULL, "{\"nodes\":3,\"edges\":[[0,1],[1,2]]}"},
    {{1, 1, 0, 1, 1, 1, 0, 1, 1}, NULL, "{\"nodes\":3,\"edges\":[[0,1],[1,2]]}"},
    {{0, 1, 0, 0, 0, 1, 1, 0, 0},
     NULL,
     "{\"nodes\":3,\"directed\":true,\"edges\":[[2,0],[0,1],[1,2]]}"},
    {{0, 7, 0, 7, 0, 5, 0, 5, 0},
     "lazy",
     "{\"nodes\":3,\"weights\":\"lazy\",\"edges\":[[0,1],[1,2]]}"},
    {{.5, .5, 0, 0, .5, .5, 1, 0, 0},
     NULL, /* W[0][1]: node 0 hears node 1 */
     "{\"nodes\":3,\"edges\":[[0,0,0.5],[1,0,0.5],[1,1,0.5],[2,1,0.5],[0,2,1.0],[2,2,0.0]]}"},
    {{0, .5, 0, .25, 0, .25, 0, .5, 0},
     NULL,
     "{\"nodes\":3,\"edges\":[[1,0,0.5],[0,1,0.25],[2,1,0.25],[1,2,0.5]]}"},
    {{0, 7, 0, 7, 0, 5, 0, 5, 0}, NULL, "what node 0 gives itself and its neighbours sums to 7"},
    {{.33, .33, .33, .33, .33, .33, .33, .33, .33},
     NULL,
     "give them more digits, or leave the self"},
    {{0, NAN, 0, 0, 0, 0, 0, 0, 0}, NULL, "entry [0][1] of the matrix is nan"},
};

START_LOOP_TEST(a_matrix_is_adjacency_or_w_or_is_refused, sizeof matrices / sizeof *matrices) {
    sl_matrix_entry entries[18];
    char *json = NULL;
    for (uint32_t k = 0; k < 9; k++) { /* in two halves, which add up */
        entries[k] = (sl_matrix_entry){k / 3, k % 3, matrices[_i].matrix[k] / 2};
        entries[17 - k] = entries[k];
    }
    const int result = sl_foreign_matrix_json(&json, 3, entries, 18, matrices[_i].weights, &error);
    if (matrices[_i].json[0] == '{') {
        ck_assert_msg(result == 0, "%s", error.text);
        ck_assert_str_eq(json, matrices[_i].json);
    } else {
        ck_assert_int_eq(result, SL_EINVAL);
        ck_assert_msg(strstr(error.text, matrices[_i].json) != NULL, "%s", error.text);
    }
    free(json);
}

int main(void) {
    return run_tests("foreign");
}
