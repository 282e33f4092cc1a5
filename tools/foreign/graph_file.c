/* graph_file.c - nodes and edges of a file while it is read, and its topology file; see
 * graph_file.h. */
#include "foreign/graph_file.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

/* ---- growing ---- */

/* Room for one element more, doubled; the array stays as it is when memory is short. */
static bool grow(graph_file *g, void **array, size_t count, size_t room, size_t bytes) {
    if (count < room)
        return true;
    void *larger = realloc(*array, (room > 0 ? 2 * room : FIRST_ROOM) * bytes);
    if (larger == NULL)
        g->out_of_memory = true;
    else
        *array = larger;
    return larger != NULL;
}

static size_t larger(size_t count, size_t room) {
    return count < room ? room : room > 0 ? 2 * room : FIRST_ROOM;
}

void graph_edge(graph_file *g, uint32_t from, uint32_t to, double weight) {
    if (!grow(g, (void **)&g->edges, g->edge_count, g->edge_room, sizeof *g->edges))
        return;
    g->edge_room = larger(g->edge_count, g->edge_room);
    g->edges[g->edge_count++] = (sl_edge){from, to, weight};
}

void graph_entry(graph_file *g, uint32_t row, uint32_t column, double value) {
    if (value == 0 ||
        !grow(g, (void **)&g->entries, g->entry_count, g->entry_room, sizeof *g->entries))
        return;
    g->entry_room = larger(g->entry_count, g->entry_room);
    g->entries[g->entry_count++] = (sl_matrix_entry){row, column, value};
}

/* ---- names ---- */

static uint64_t hash_of(const char *name) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (; *name != '\0'; name++)
        hash = (hash ^ (uint8_t)*name) * 0x100000001B3u; /* FNV-1a */
    return hash;
}

/* Where the name stands in the table, or would. */
static uint32_t *place_of(const graph_file *g, const char *name) {
    uint32_t at = (uint32_t)(hash_of(name) & (g->slots - 1));
    while (g->table[at] != 0 && strcmp(g->names[g->table[at] - 1], name) != 0)
        at = (at + 1) & (g->slots - 1);
    return &g->table[at];
}

/* At most half of the table is used. */
static bool make_room(graph_file *g) {
    const uint32_t room = g->nodes < g->room ? g->room : g->room > 0 ? 2 * g->room : FIRST_ROOM;
    if (!grow(g, (void **)&g->names, g->nodes, g->room, sizeof *g->names) ||
        !grow(g, (void **)&g->declared, g->nodes, g->room, sizeof *g->declared))
        return false;
    if (room == g->room)
        return true;
    uint32_t *table = calloc(2 * (size_t)room, sizeof *table);
    if (table == NULL) {
        g->out_of_memory = true;
        return false;
    }
    free(g->table);
    g->table = table;
    g->slots = 2 * room;
    g->room = room;
    for (uint32_t i = 0; i < g->nodes; i++)
        *place_of(g, g->names[i]) = i + 1;
    return true;
}

uint32_t graph_node(graph_file *g, const char *name) {
    if (g->out_of_memory || g->nodes == SL_NODES_MAX + 1 || !make_room(g))
        return 0;
    uint32_t *place = place_of(g, name);
    if (*place != 0)
        return *place - 1;
    char *copy = strdup(name);
    if (copy == NULL) {
        g->out_of_memory = true;
        return 0;
    }
    g->names[g->nodes] = copy;
    g->declared[g->nodes] = false;
    *place = ++g->nodes;
    return g->nodes - 1;
}

bool graph_find(const graph_file *g, const char *name, uint32_t *node) {
    const uint32_t found = g->slots > 0 ? *place_of(g, name) : 0;
    *node = found > 0 ? found - 1 : 0;
    return found > 0;
}

int graph_declare(graph_file *g, const char *name, uint32_t *node, sl_error *error) {
    *node = graph_node(g, name);
    g->lists_nodes = true;
    if (g->out_of_memory)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", g->nodes);
    if (g->declared[*node])
        return sl_fail(error, SL_EFILE, "node \"%s\" stands twice", name);
    g->declared[*node] = true;
    return 0;
}

int graph_number_nodes(graph_file *g, uint64_t count, sl_error *error) {
    if (count < 1 || count > SL_NODES_MAX)
        return sl_fail(error, SL_EFILE, "has %llu nodes; from 1 to %u are allowed",
                       (unsigned long long)count, SL_NODES_MAX);
    g->nodes = (uint32_t)count;
    g->is_matrix = true;
    return 0;
}

bool graph_number(const char *word, double *out) {
    char *end;
    *out = strtod(word, &end);
    return end != word && *end == '\0';
}

/* ---- numbering ---- */

/* A whole number as it is usually written. */
static bool is_whole(const char *name, long long *number) {
    char text[32];
    *number = strtoll(name, NULL, 10);
    snprintf(text, sizeof text, "%lld", *number);
    return strcmp(text, name) == 0;
}

typedef struct numbered {
    long long number;
    uint32_t node;
} numbered;

static int by_number(const void *x, const void *y) {
    const numbered *a = x, *b = y;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Ranks follow the names where all are whole numbers; else nodes stay in the file's order. */
static void sort_nodes(graph_file *g) {
    numbered *order = malloc((g->nodes + 1) * sizeof *order);
    char **names = malloc((g->nodes + 1) * sizeof *names);
    uint32_t *rank = malloc((g->nodes + 1) * sizeof *rank), i = 0;
    g->out_of_memory = g->out_of_memory || !order || !names || !rank;
    for (; !g->out_of_memory && i < g->nodes && is_whole(g->names[i], &order[i].number); i++)
        order[i].node = i;
    if (!g->out_of_memory && i == g->nodes) {
        qsort(order, g->nodes, sizeof *order, by_number);
        for (i = 0; i < g->nodes; i++) {
            rank[order[i].node] = i;
            names[i] = g->names[order[i].node];
            g->is_named = g->is_named || order[i].number != (long long)i;
        }
        memcpy(g->names, names, g->nodes * sizeof *names);
        for (size_t e = 0; e < g->edge_count; e++)
            g->edges[e] =
                (sl_edge){rank[g->edges[e].from], rank[g->edges[e].to], g->edges[e].weight};
        for (size_t e = 0; e < g->entry_count; e++)
            g->entries[e] = (sl_matrix_entry){rank[g->entries[e].row], rank[g->entries[e].column],
                                              g->entries[e].value};
    } else {
        g->is_named = true;
    }
    free(order);
    free(names);
    free(rank);
}

static int check_nodes(const graph_file *g, sl_error *error) {
    if (g->nodes > SL_NODES_MAX)
        return sl_fail(error, SL_EFILE, "has more than %u nodes", SL_NODES_MAX);
    if (g->nodes == 0)
        return sl_fail(error, SL_EFILE, "has no nodes");
    for (uint32_t i = 0; g->lists_nodes && i < g->nodes; i++)
        if (!g->declared[i])
            return sl_fail(error, SL_EFILE, "an edge names node \"%s\", which is not listed",
                           g->names[i]);
    return 0;
}

int graph_finish(graph_file *g, sl_error *error) {
    int result = g->out_of_memory ? 0 : check_nodes(g, error);
    if (result == 0 && !g->out_of_memory && g->names != NULL)
        sort_nodes(g);
    return g->out_of_memory ? sl_fail(error, SL_ENOMEM, "out of memory for a graph") : result;
}

void graph_file_close(graph_file *g) {
    for (uint32_t i = 0; g->names != NULL && i < g->nodes; i++)
        free(g->names[i]);
    free(g->names);
    free(g->declared);
    free(g->table);
    free(g->edges);
    free(g->entries);
    *g = (graph_file){0};
}

/* ---- the topology file ---- */

static json_t *provenance_of(const graph_file *g) {
    const char *slash = g->path != NULL ? strrchr(g->path, '/') : NULL;
    json_t *provenance = json_object();
    if (g->path != NULL)
        json_object_set_new(provenance, "file", json_string(slash ? slash + 1 : g->path));
    if (g->format != SL_GRAPH_UNKNOWN)
        json_object_set_new(provenance, "format", json_string(sl_graph_format_name(g->format)));
    if (!g->is_named)
        return provenance;
    json_t *names = json_array();
    for (uint32_t i = 0; i < g->nodes; i++)
        json_array_append_new(names, json_string(g->names[i]));
    json_object_set_new(provenance, "names", names);
    return provenance;
}

/* The text again, with where it comes from. */
static int add_keys(char **json, const graph_file *g, const char *links, sl_error *error) {
    json_t *root = json_loads(*json, 0, NULL);
    json_object_set_new(root, "provenance", provenance_of(g));
    if (links != NULL)
        json_object_set_new(root, "links", json_string(links));
    free(*json);
    *json = root != NULL ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    return *json != NULL ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for a topology's text");
}

int graph_file_json(char **json, const graph_file *g, const char *weights, const char *links,
                    sl_error *error) {
    const sl_foreign_graph graph = {.nodes = g->nodes,
                                    .names = g->is_named ? (const char *const *)g->names : NULL,
                                    .edges = g->edges,
                                    .edge_count = g->edge_count,
                                    .directed = g->directed,
                                    .weights = weights};
    int result = g->is_matrix ? sl_foreign_matrix_json(json, g->nodes, g->entries, g->entry_count,
                                                       weights, error)
                              : sl_foreign_graph_json(json, &graph, error);
    return result == 0 ? add_keys(json, g, links, error) : result;
}
