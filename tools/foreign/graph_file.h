/* graph_file.h - graphs in files of other programs, for `starling topology make --from`.
 *
 * Each reader parses a text or bytes in memory into nodes with names and edges, or into a matrix.
 * GraphML is parsed by expat, other formats by a page of code each: here, not in the library, which
 * a wheel carries with as little else as it can. What the numbers at edges mean is the library's
 * (starling/foreign.h). */
#ifndef GRAPH_FILE_H
#define GRAPH_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "starling/foreign.h"

typedef struct graph_file {
    const char *path; /* borrowed; NULL: bytes */
    sl_graph_format format;
    char **names;           /* (nodes) */
    bool *declared;         /* (nodes) by the file, not only by an edge */
    uint32_t *table, slots; /* of names, by hash: index + 1, 0 where none is */
    uint32_t nodes, room;
    sl_edge *edges; /* (edge_count) */
    size_t edge_count, edge_room;
    sl_matrix_entry *entries; /* (entry_count) of a matrix, in place of edges */
    size_t entry_count, entry_room;
    bool directed, is_matrix, lists_nodes;
    bool is_named;      /* names are not the numbers 0, 1, ... of nodes */
    bool out_of_memory; /* remembered, so that readers need not check each step */
} graph_file;

/* Reads a graph of any format that is read. `directed`: the edges of an edge list have a direction.
 * To be closed in any case. */
int graph_file_read(graph_file *out, const char *path, bool directed, sl_error *error);
/* The same of bytes in memory, whose errors name no file. */
int graph_file_parse(graph_file *g, char *bytes, size_t size, sl_error *error);
void graph_file_close(graph_file *g);
/* The text of its topology file, malloc'ed. weights, links: a scheme, the path of a links file, or
 * NULL. */
int graph_file_json(char **json, const graph_file *g, const char *weights, const char *links,
                    sl_error *error);

/* ---- for readers ---- */

typedef int graph_reader(graph_file *g, char *text, size_t bytes, sl_error *error);
graph_reader read_node_link, read_adjacency, read_graphml, read_gml, read_matrix_market, read_npy,
    read_table;

/* The node of that name, a new one if there is none. */
uint32_t graph_node(graph_file *g, const char *name);
bool graph_find(const graph_file *g, const char *name, uint32_t *node);
/* The same, of a node that the file lists: twice is an error. */
int graph_declare(graph_file *g, const char *name, uint32_t *node, sl_error *error);
void graph_edge(graph_file *g, uint32_t from, uint32_t to, double weight);
void graph_entry(graph_file *g, uint32_t row, uint32_t column, double value);
/* Once all is read: refuses what cannot be, and numbers the nodes. */
int graph_finish(graph_file *g, sl_error *error);
/* Nodes 0 ... count - 1 of a matrix, without names. */
int graph_number_nodes(graph_file *g, uint64_t count, sl_error *error);
/* A number that fills the whole word. */
bool graph_number(const char *word, double *out);

/* A table of numbers (rows, columns), which is a matrix, or edges of two or three columns. */
int graph_take_numbers(graph_file *g, const double *numbers, size_t rows, size_t columns,
                       sl_error *error);
/* Rows of numbers that can be a matrix: of 0 and 1, or with rows or columns that sum to 1. */
bool graph_is_matrix(const double *numbers, size_t rows, size_t columns);
/* A list of edges with weights that has each in both directions lists directions. */
int graph_settle_directions(graph_file *g, sl_error *error);

#endif
