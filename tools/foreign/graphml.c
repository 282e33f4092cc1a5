/* graphml.c - GraphML, with expat. http://graphml.graphdrawing.org/specification.html
 *
 * Read are nodes, edges, whether they are directed, and the edges' attribute "weight", which a
 * <key> declares under an id of its own, maybe with a default. */
#include <expat.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/graph_file.h"

#ifndef SL_EXPAT_COUNTS_64 /* before expat 2.9 */
#define XML_GetCurrentLineNumber64 XML_GetCurrentLineNumber
#define XML_GetCurrentColumnNumber64 XML_GetCurrentColumnNumber
#endif

enum { ID_MAX = 256, DATA_MAX = 64 };

typedef struct graphml {
    graph_file *g;
    XML_Parser parser;
    sl_error *error;
    int result;
    char key[ID_MAX];            /* the id of the edges' weight; empty: there is none */
    double otherwise;            /* its default; NaN: none */
    bool in_key, in_edge, reads; /* of the weight's key; of an edge; text is kept */
    char text[DATA_MAX];
    size_t text_bytes;
    uint32_t graphs, from, to;
    double weight;
    bool seen[2]; /* edges without and with a direction */
    bool directed;
} graphml;

__attribute__((format(printf, 2, 3))) static void refuse(graphml *x, const char *format, ...) {
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (x->result == 0)
        x->result = sl_fail(x->error, SL_EFILE, "line %lu: %s",
                            (unsigned long)XML_GetCurrentLineNumber64(x->parser), text);
    XML_StopParser(x->parser, XML_FALSE);
}

static const char *attribute(const char **pairs, const char *name) {
    for (; pairs[0] != NULL; pairs += 2)
        if (strcmp(pairs[0], name) == 0)
            return pairs[1];
    return NULL;
}

static bool is(const char *value, const char *word) {
    return value != NULL && strcmp(value, word) == 0;
}

/* ---- elements ---- */

static void begin_key(graphml *x, const char **pairs) {
    const char *id = attribute(pairs, "id"), *of = attribute(pairs, "for");
    x->in_key = is(attribute(pairs, "attr.name"), "weight") && (is(of, "edge") || is(of, "all")) &&
                id != NULL;
    if (x->in_key)
        snprintf(x->key, sizeof x->key, "%s", id);
}

static void begin_graph(graphml *x, const char **pairs) {
    if (x->graphs++ > 0)
        refuse(x, "a second <graph>: nested graphs, and several in a file, are not read");
    x->directed = is(attribute(pairs, "edgedefault"), "directed");
}

static void begin_node(graphml *x, const char **pairs) {
    const char *id = attribute(pairs, "id");
    uint32_t node;
    sl_error why = {0};
    if (id == NULL)
        refuse(x, "<node> has no id");
    else if (graph_declare(x->g, id, &node, &why) != 0)
        refuse(x, "%s", why.text);
}

static void begin_edge(graphml *x, const char **pairs) {
    const char *from = attribute(pairs, "source"), *to = attribute(pairs, "target"),
               *directed = attribute(pairs, "directed");
    if (from == NULL || to == NULL) {
        refuse(x, "<edge> has no %s", from == NULL ? "source" : "target");
        return;
    }
    x->in_edge = true;
    x->from = graph_node(x->g, from);
    x->to = graph_node(x->g, to);
    x->weight = x->otherwise;
    x->seen[directed != NULL ? is(directed, "true") : x->directed] = true;
}

static const char *local(const char *name) {
    const char *colon = strrchr(name, ':');
    return colon != NULL ? colon + 1 : name;
}

static void begin(void *context, const char *name, const char **pairs) {
    graphml *x = context;
    name = local(name);
    if (is(name, "key"))
        begin_key(x, pairs);
    else if (is(name, "graph"))
        begin_graph(x, pairs);
    else if (is(name, "node"))
        begin_node(x, pairs);
    else if (is(name, "edge"))
        begin_edge(x, pairs);
    else if (is(name, "hyperedge"))
        refuse(x, "<hyperedge>: an edge joins two nodes");
    x->reads = (x->in_key && is(name, "default")) ||
               (x->in_edge && is(name, "data") && x->key[0] != '\0' &&
                is(attribute(pairs, "key"), x->key));
    x->text_bytes = x->reads ? 0 : x->text_bytes;
}

static void keep(void *context, const char *text, int bytes) {
    graphml *x = context;
    for (int i = 0; x->reads && i < bytes; i++)
        if (x->text_bytes < DATA_MAX - 1 && strchr(" \t\r\n", text[i]) == NULL)
            x->text[x->text_bytes++] = text[i];
}

static void end(void *context, const char *name) {
    graphml *x = context;
    name = local(name);
    if (x->reads) {
        x->text[x->text_bytes] = '\0';
        if (!graph_number(x->text, x->in_edge ? &x->weight : &x->otherwise))
            refuse(x, "weight \"%s\" is no number", x->text);
        x->reads = false;
    }
    if (is(name, "key"))
        x->in_key = false;
    if (is(name, "edge") && x->in_edge) {
        graph_edge(x->g, x->from, x->to, x->weight);
        x->in_edge = false;
    }
}

int read_graphml(graph_file *g, char *text, size_t bytes, sl_error *error) {
    graphml x = {.g = g, .error = error, .otherwise = NAN};
    x.parser = XML_ParserCreate(NULL);
    if (x.parser == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for an XML parser");
    XML_SetUserData(x.parser, &x);
    XML_SetElementHandler(x.parser, begin, end);
    XML_SetCharacterDataHandler(x.parser, keep);
    if (XML_Parse(x.parser, text, (int)bytes, XML_TRUE) == XML_STATUS_ERROR && x.result == 0)
        x.result = sl_fail(error, SL_EFILE, "line %lu, column %lu: %s",
                           (unsigned long)XML_GetCurrentLineNumber64(x.parser),
                           (unsigned long)XML_GetCurrentColumnNumber64(x.parser),
                           XML_ErrorString(XML_GetErrorCode(x.parser)));
    XML_ParserFree(x.parser);
    if (x.result == 0 && x.graphs == 0)
        x.result = sl_fail(error, SL_EFILE, "has no <graph>");
    if (x.result == 0 && x.seen[0] && x.seen[1])
        x.result = sl_fail(error, SL_EFILE,
                           "has edges with and without a direction; all must be of one kind");
    g->directed = x.seen[1] || (x.directed && !x.seen[0]);
    g->lists_nodes = true;
    return x.result;
}
