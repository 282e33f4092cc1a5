/* json_graph.c - the JSON that networkx's node_link_data() and adjacency_data() give, and D3's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "foreign/graph_file.h"

static int parse(json_t **out, const char *text, sl_error *error) {
    json_error_t problem;
    *out = json_loads(text, 0, &problem);
    return *out != NULL ? 0
                        : sl_fail(error, SL_EFILE, "line %d, column %d: %s", problem.line,
                                  problem.column, problem.text);
}

/* A node's name is its id: text, a number, or for example a tuple. New. */
static char *name_of(const json_t *id) {
    return json_is_string(id) ? strdup(json_string_value(id))
                              : json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT);
}

/* Nodes without "id" are known by their places. */
static int take_nodes(graph_file *g, const json_t *nodes, sl_error *error) {
    int result = 0;
    for (size_t i = 0; result == 0 && i < json_array_size(nodes); i++) {
        const json_t *entry = json_array_get(nodes, i), *id = json_object_get(entry, "id");
        json_t *place = id == NULL ? json_integer((json_int_t)i) : NULL;
        char *name = name_of(id != NULL ? id : place);
        uint32_t node;
        if (!json_is_object(entry))
            result = sl_fail(error, SL_EFILE, "nodes[%zu] is no object {\"id\": ...}", i);
        else if (name == NULL)
            result = sl_fail(error, SL_ENOMEM, "out of memory for a node's name");
        else
            result = graph_declare(g, name, &node, error);
        json_decref(place);
        free(name);
    }
    return result;
}

/* D3 names nodes by their places, even if they have names as ids. */
static int find_node(graph_file *g, const json_t *id, const char *where, size_t at,
                     const char *side, uint32_t *node, sl_error *error) {
    if (id == NULL)
        return sl_fail(error, SL_EFILE, "%s[%zu] has no \"%s\"", where, at, side);
    char *name = name_of(id);
    if (name == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a node's name");
    const json_int_t place = json_is_integer(id) ? json_integer_value(id) : -1;
    int result = 0;
    if (!graph_find(g, name, node)) {
        if (place >= 0 && place < g->nodes)
            *node = (uint32_t)place;
        else
            result = sl_fail(error, SL_EFILE, "%s[%zu]: %s \"%.100s\" is no node's id", where, at,
                             side, name);
    }
    free(name);
    return result;
}

static int weight_of(double *out, const json_t *edge, const char *where, size_t at,
                     sl_error *error) {
    const json_t *weight = json_object_get(edge, "weight");
    *out = NAN;
    if (weight == NULL || json_is_null(weight))
        return 0;
    *out = json_number_value(weight);
    return json_is_number(weight)
               ? 0
               : sl_fail(error, SL_EFILE, "%s[%zu]: weight is no number", where, at);
}

static int take_links(graph_file *g, const json_t *links, const char *where, sl_error *error) {
    int result = 0;
    for (size_t k = 0; result == 0 && k < json_array_size(links); k++) {
        const json_t *link = json_array_get(links, k);
        uint32_t from = 0, to = 0;
        double weight;
        result = weight_of(&weight, link, where, k, error);
        if (result == 0)
            result =
                find_node(g, json_object_get(link, "source"), where, k, "source", &from, error);
        if (result == 0)
            result = find_node(g, json_object_get(link, "target"), where, k, "target", &to, error);
        if (result == 0)
            graph_edge(g, from, to, weight);
    }
    return result;
}

int read_node_link(graph_file *g, char *text, size_t bytes, sl_error *error) {
    json_t *root;
    (void)bytes;
    int result = parse(&root, text, error);
    if (result != 0)
        return result;
    const char *where = json_object_get(root, "links") != NULL ? "links" : "edges";
    g->directed = json_is_true(json_object_get(root, "directed"));
    result = take_nodes(g, json_object_get(root, "nodes"), error);
    if (result == 0)
        result = take_links(g, json_object_get(root, where), where, error);
    json_decref(root);
    return result;
}

/* Without directions each edge stands at both its nodes, but a self-loop once. */
static int take_neighbours(graph_file *g, uint32_t from, const json_t *list, sl_error *error) {
    int result = 0;
    for (size_t k = 0; result == 0 && k < json_array_size(list); k++) {
        const json_t *entry = json_array_get(list, k);
        uint32_t to = 0;
        double weight;
        result = weight_of(&weight, entry, "adjacency", from, error);
        if (result == 0)
            result =
                find_node(g, json_object_get(entry, "id"), "adjacency", from, "id", &to, error);
        if (result == 0 && (g->directed || from <= to))
            graph_edge(g, from, to, weight);
    }
    return result;
}

int read_adjacency(graph_file *g, char *text, size_t bytes, sl_error *error) {
    json_t *root;
    (void)bytes;
    int result = parse(&root, text, error);
    if (result != 0)
        return result;
    const json_t *lists = json_object_get(root, "adjacency");
    g->directed = json_is_true(json_object_get(root, "directed"));
    result = take_nodes(g, json_object_get(root, "nodes"), error);
    if (result == 0 && json_array_size(lists) != g->nodes)
        result = sl_fail(error, SL_EFILE, "has %u nodes and %zu lists of neighbours", g->nodes,
                         json_array_size(lists));
    for (uint32_t i = 0; result == 0 && i < json_array_size(lists); i++)
        result = take_neighbours(g, i, json_array_get(lists, i), error);
    json_decref(root);
    return result;
}
