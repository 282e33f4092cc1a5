/* gml.c - GML: lists of keys, each with a number, a text in quotes, or a list in brackets.
 * https://www.fim.uni-passau.de (Himsolt 1996)
 *
 * Read are graph.directed, node.id and node.label, and of edges source, target and weight. A node's
 * name is its label, as in networkx, unless two have the same or one has none. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/graph_file.h"

enum { WORD_MAX = 256, DEPTH_MAX = 64 };

typedef enum list_kind { TOP, GRAPH, NODE, EDGE, OTHER } list_kind;

typedef struct gml {
    graph_file *g;
    sl_error *error;
    const char *at;
    unsigned long line;
    char **labels; /* (nodes) of their ids; NULL: none */
    uint32_t label_room;
    bool has_graph, id_seen;
    char id[WORD_MAX], label[WORD_MAX], source[WORD_MAX], target[WORD_MAX];
    double weight;
} gml;

static int refuse(gml *x, const char *what, const char *word) {
    return sl_fail(x->error, SL_EFILE, "line %lu: %s%s%.60s%s", x->line, what,
                   word != NULL ? " \"" : "", word != NULL ? word : "", word != NULL ? "\"" : "");
}

/* ---- words ---- */

/* '#' begins a comment at the start of a line. */
static void skip_blanks(gml *x) {
    for (bool fresh = false; *x->at != '\0'; x->at++) {
        if (*x->at == '\n') {
            x->line++;
            fresh = true;
        } else if (*x->at == '#' && (fresh || x->line == 1)) {
            while (x->at[1] != '\0' && x->at[1] != '\n')
                x->at++;
        } else if (!isspace((unsigned char)*x->at)) {
            return;
        }
    }
}

/* A key, a number, or a bracket; empty: the file ends. */
static int take_word(gml *x, char word[WORD_MAX]) {
    size_t length = 0;
    skip_blanks(x);
    if (*x->at == '[' || *x->at == ']') {
        word[length++] = *x->at++;
    } else {
        while (*x->at != '\0' && !isspace((unsigned char)*x->at) && *x->at != '[' &&
               *x->at != ']' && *x->at != '"') {
            if (length == WORD_MAX - 1)
                return refuse(x, "a word is too long", NULL);
            word[length++] = *x->at++;
        }
    }
    word[length] = '\0';
    return 0;
}

static int take_text(gml *x, char word[WORD_MAX]) {
    size_t length = 0;
    for (x->at++; *x->at != '"'; x->at++) {
        if (*x->at == '\0')
            return refuse(x, "a text in quotes does not end", NULL);
        x->line += *x->at == '\n';
        if (length < WORD_MAX - 1)
            word[length++] = *x->at;
    }
    x->at++;
    word[length] = '\0';
    return 0;
}

/* ---- what is read ---- */

static int keep_label(gml *x, uint32_t node) {
    if (node >= x->label_room) {
        const uint32_t room = node < 32 ? 64 : 2 * node;
        char **labels = realloc(x->labels, room * sizeof *labels);
        if (labels == NULL)
            return sl_fail(x->error, SL_ENOMEM, "out of memory for labels");
        memset(labels + x->label_room, 0, (room - x->label_room) * sizeof *labels);
        x->labels = labels;
        x->label_room = room;
    }
    free(x->labels[node]);
    x->labels[node] = x->label[0] != '\0' ? strdup(x->label) : NULL;
    return 0;
}

static int end_node(gml *x) {
    uint32_t node;
    sl_error why = {0};
    if (!x->id_seen)
        return refuse(x, "a node has no id", NULL);
    if (graph_declare(x->g, x->id, &node, &why) != 0)
        return refuse(x, why.text, NULL);
    return keep_label(x, node);
}

static int end_edge(gml *x) {
    if (x->source[0] == '\0' || x->target[0] == '\0')
        return refuse(x, x->source[0] == '\0' ? "an edge has no source" : "an edge has no target",
                      NULL);
    const uint32_t from = graph_node(x->g, x->source);
    graph_edge(x->g, from, graph_node(x->g, x->target), x->weight);
    return 0;
}

static int take_value(gml *x, list_kind kind, const char *key, const char *value) {
    if (kind == GRAPH && strcmp(key, "directed") == 0)
        x->g->directed = strcmp(value, "0") != 0;
    if (kind == NODE && strcmp(key, "id") == 0) {
        snprintf(x->id, sizeof x->id, "%s", value);
        x->id_seen = true;
    }
    if (kind == NODE && strcmp(key, "label") == 0)
        snprintf(x->label, sizeof x->label, "%s", value);
    if (kind == EDGE && strcmp(key, "source") == 0)
        snprintf(x->source, sizeof x->source, "%s", value);
    if (kind == EDGE && strcmp(key, "target") == 0)
        snprintf(x->target, sizeof x->target, "%s", value);
    if (kind == EDGE && strcmp(key, "weight") == 0 && !graph_number(value, &x->weight))
        return refuse(x, "an edge's weight is no number:", value);
    return 0;
}

static list_kind kind_of(list_kind outer, const char *key) {
    if (outer == TOP && strcmp(key, "graph") == 0)
        return GRAPH;
    if (outer == GRAPH && strcmp(key, "node") == 0)
        return NODE;
    return outer == GRAPH && strcmp(key, "edge") == 0 ? EDGE : OTHER;
}

static int take_list(gml *x, list_kind kind, int depth);

static int take_inner(gml *x, list_kind kind, int depth) {
    if (depth == DEPTH_MAX)
        return refuse(x, "lists are nested too deeply", NULL);
    if (kind == GRAPH && x->has_graph)
        return refuse(x, "a second graph; one is read", NULL);
    x->has_graph = x->has_graph || kind == GRAPH;
    if (kind == NODE) {
        x->id_seen = false;
        x->label[0] = '\0';
    } else if (kind == EDGE) {
        x->source[0] = x->target[0] = '\0';
        x->weight = NAN;
    }
    int result = take_list(x, kind, depth + 1);
    if (result == 0 && kind == NODE)
        result = end_node(x);
    return result == 0 && kind == EDGE ? end_edge(x) : result;
}

/* Up to its bracket, or the file's end. */
static int take_list(gml *x, list_kind kind, int depth) {
    char key[WORD_MAX], value[WORD_MAX];
    for (int result = 0;;) {
        result = take_word(x, key);
        if (result != 0)
            return result;
        if (key[0] == '\0' && *x->at != '\0')
            return refuse(x, "a key is expected, and not a text in quotes", NULL);
        if (key[0] == '\0' || key[0] == ']')
            return (key[0] == ']') == (depth > 0)
                       ? 0
                       : refuse(x, depth > 0 ? "a list does not end" : "a ] too many", NULL);
        if (key[0] == '[')
            return refuse(x, "a list has no key", NULL);
        skip_blanks(x);
        const bool quoted = *x->at == '"';
        result = quoted ? take_text(x, value) : take_word(x, value);
        if (result == 0 && !quoted && (value[0] == '\0' || value[0] == ']'))
            return refuse(x, "no value behind", key);
        if (result == 0)
            result = !quoted && value[0] == '[' ? take_inner(x, kind_of(kind, key), depth)
                                                : take_value(x, kind, key, value);
        if (result != 0)
            return result;
    }
}

/* ---- labels ---- */

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool all_differ(char **labels, uint32_t count) {
    char **sorted = malloc((count + 1) * sizeof *sorted);
    bool differ = sorted != NULL;
    for (uint32_t i = 0; differ && i < count; i++)
        differ = (sorted[i] = labels[i]) != NULL;
    if (differ)
        qsort(sorted, count, sizeof *sorted, by_text);
    for (uint32_t i = 1; differ && i < count; i++)
        differ = strcmp(sorted[i - 1], sorted[i]) != 0;
    free(sorted);
    return differ;
}

/* Nodes keep their places; only what they are called changes. */
static void take_labels(gml *x) {
    const uint32_t count = x->g->nodes < x->label_room ? x->g->nodes : x->label_room;
    const bool all = count > 0 && count == x->g->nodes && all_differ(x->labels, count);
    for (uint32_t i = 0; i < x->label_room; i++) {
        if (all && i < count) {
            free(x->g->names[i]);
            x->g->names[i] = x->labels[i];
        } else {
            free(x->labels[i]);
        }
    }
    free(x->labels);
}

int read_gml(graph_file *g, char *text, size_t bytes, sl_error *error) {
    gml x = {.g = g, .error = error, .at = text, .line = 1};
    (void)bytes;
    g->lists_nodes = true;
    g->directed = false;
    int result = take_list(&x, TOP, 0);
    if (result == 0 && !x.has_graph)
        result = sl_fail(error, SL_EFILE, "has no graph [ ... ]");
    take_labels(&x);
    return result;
}
