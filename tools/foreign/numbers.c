/* numbers.c - a table of numbers as a matrix or as edges; which of both, and which directions edges
 * of a list have. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/graph_file.h"

static const double tolerance = 1e-6; /* of float32, over some hundred numbers */

static bool sums_to_1(const double *numbers, size_t n, size_t line, size_t step) {
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t j = 0; j < n; j++)
            sum += numbers[i * line + j * step];
        if (!(fabs(sum - 1) <= tolerance))
            return false;
    }
    return true;
}

bool graph_is_matrix(const double *numbers, size_t rows, size_t columns) {
    bool plain = rows == columns;
    for (size_t k = 0; plain && k < rows * columns; k++)
        plain = numbers[k] == 0 || numbers[k] == 1;
    return rows == columns && (plain || rows > 3 || sums_to_1(numbers, rows, rows, 1) ||
                               sums_to_1(numbers, rows, 1, rows));
}

static int take_matrix(graph_file *g, const double *numbers, size_t n, sl_error *error) {
    int result = g->names == NULL ? graph_number_nodes(g, n, error) : 0;
    g->is_matrix = true;
    for (size_t k = 0; result == 0 && k < n * n; k++)
        graph_entry(g, (uint32_t)(k / n), (uint32_t)(k % n), numbers[k]);
    return result;
}

static int take_edge(graph_file *g, const double *row, size_t columns, size_t at, sl_error *error) {
    uint32_t ends[2];
    for (int side = 0; side < 2; side++) {
        char name[32];
        if (!(fabs(row[side]) <= 1e15) || row[side] != floor(row[side]))
            return sl_fail(
                error, SL_EFILE,
                "row %zu: %g is no node; edges are rows of two whole numbers, maybe with "
                "a weight behind them",
                at, row[side]);
        snprintf(name, sizeof name, "%.0f", row[side]);
        ends[side] = graph_node(g, name);
    }
    graph_edge(g, ends[0], ends[1], columns == 3 ? row[2] : NAN);
    return 0;
}

int graph_take_numbers(graph_file *g, const double *numbers, size_t rows, size_t columns,
                       sl_error *error) {
    int result = 0;
    if (graph_is_matrix(numbers, rows, columns))
        return take_matrix(g, numbers, rows, error);
    if (columns != 2 && columns != 3)
        return sl_fail(error, SL_EFILE,
                       "has %zu rows of %zu numbers: neither a matrix, which has as many rows as "
                       "columns, nor edges of two or three numbers",
                       rows, columns);
    for (size_t i = 0; result == 0 && i < rows; i++)
        result = take_edge(g, numbers + i * columns, columns, i, error);
    return result == 0 ? graph_settle_directions(g, error) : result;
}

/* ---- directions ---- */

static int by_ends(const void *x, const void *y) {
    const sl_edge *a = x, *b = y;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

static bool has_weights(const graph_file *g) {
    for (size_t e = 0; e < g->edge_count; e++)
        if (!isnan(g->edges[e].weight) && g->edges[e].weight != 1)
            return true;
    return false;
}

int graph_settle_directions(graph_file *g, sl_error *error) {
    const sl_edge *one_way = NULL, *both = NULL;
    sl_edge *sorted = malloc((g->edge_count + 1) * sizeof *sorted);
    if (sorted == NULL || g->out_of_memory)
        return free(sorted), sl_fail(error, SL_ENOMEM, "out of memory for edges");
    if (g->edge_count > 0)
        memcpy(sorted, g->edges, g->edge_count * sizeof *sorted);
    qsort(sorted, g->edge_count, sizeof *sorted, by_ends);
    for (size_t e = 0; e < g->edge_count; e++) {
        const sl_edge back = {g->edges[e].to, g->edges[e].from, 0};
        if (back.from == back.to)
            continue;
        const bool has_back = bsearch(&back, sorted, g->edge_count, sizeof back, by_ends) != NULL;
        *(has_back ? &both : &one_way) = &g->edges[e];
    }
    free(sorted);
    if (!has_weights(g)) /* then a direction more changes nothing */
        return 0;
    if (!g->directed && both != NULL && one_way != NULL)
        return sl_fail(error, SL_EFILE,
                       "edges from \"%s\" to \"%s\" and back stand there, but no edge from \"%s\" "
                       "to \"%s\": if edges have a direction, say --directed; else list each once",
                       g->names[both->from], g->names[both->to], g->names[one_way->to],
                       g->names[one_way->from]);
    g->directed = g->directed || both != NULL;
    return 0;
}
