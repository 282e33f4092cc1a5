/* foreign.c - from the edges or the matrix of another program to a topology file's text; see
 * starling/foreign.h. */
#include "starling/foreign.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* Edges while they are made ready, each in its one direction or, if undirected, from its lower
 * node. */
typedef struct making {
    const sl_foreign_graph *graph;
    sl_edge *edges; /* (count) */
    size_t count;
    bool directed, weighted;
    bool own_listed; /* every node's own weight is among the edges, also 0 */
    bool by_column;  /* own weights are what columns lack to 1 */
} making;

static const char name_a_scheme[] =
    "name a scheme, as in --weights metropolis (Python: weights=\"metropolis\"), which leaves the "
    "numbers at edges out";

/* The node in quotes if it has a name. */
static const char *name_of(const making *m, uint32_t node, char text[64]) {
    if (m->graph->names != NULL)
        snprintf(text, 64, "\"%.58s\"", m->graph->names[node]);
    else
        snprintf(text, 64, "%u", node);
    return text;
}

/* ---- edges ---- */

static int by_ends(const void *x, const void *y) {
    const sl_edge *a = x, *b = y;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

static int take_edges(making *m, sl_error *error) {
    const sl_foreign_graph *g = m->graph;
    m->edges = malloc((g->edge_count + 1) * sizeof *m->edges);
    if (m->edges == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu edges", g->edge_count);
    for (size_t e = 0; e < g->edge_count; e++) {
        sl_edge edge = g->edges[e];
        if (edge.from >= g->nodes || edge.to >= g->nodes)
            return sl_fail(error, SL_EINVAL, "edge [%u, %u] names a node that is not in 0..%u",
                           edge.from, edge.to, g->nodes - 1);
        if (g->weights != NULL)
            edge.weight = NAN;
        if (!m->directed && edge.from > edge.to)
            edge = (sl_edge){edge.to, edge.from, edge.weight};
        m->edges[m->count++] = edge;
    }
    return 0;
}

/* Are the numbers at edges weights? Where all are 1, none is. */
static int check_numbers(making *m, sl_error *error) {
    const sl_edge *bare = NULL, *other = NULL;
    for (size_t e = 0; e < m->count; e++) {
        const sl_edge *edge = &m->edges[e];
        char from[64], to[64];
        if (isinf(edge->weight))
            return sl_fail(error, SL_EINVAL, "the weight of edge %s to %s is %g; %s",
                           name_of(m, edge->from, from), name_of(m, edge->to, to), edge->weight,
                           name_a_scheme);
        bare = isnan(edge->weight) && edge->from != edge->to ? edge : bare;
        other = !isnan(edge->weight) && edge->weight != 1 ? edge : other;
        m->weighted = m->weighted || !isnan(edge->weight);
        if (m->weighted && bare != NULL)
            return sl_fail(error, SL_EINVAL, "edge %s to %s has no weight, and others have one; %s",
                           name_of(m, bare->from, from), name_of(m, bare->to, to), name_a_scheme);
    }
    m->weighted = m->weighted && (other != NULL || m->own_listed);
    for (size_t e = 0; !m->weighted && e < m->count; e++)
        m->edges[e].weight = NAN;
    return 0;
}

/* One edge between two nodes; weights add up. Without a weight, or with 0, there is none. */
static void merge(making *m) {
    size_t kept = 0;
    qsort(m->edges, m->count, sizeof *m->edges, by_ends);
    for (size_t e = 0; e < m->count; e++) {
        if (kept > 0 && by_ends(&m->edges[kept - 1], &m->edges[e]) == 0)
            m->edges[kept - 1].weight += m->edges[e].weight;
        else
            m->edges[kept++] = m->edges[e];
    }
    m->count = kept;
    kept = 0;
    for (size_t e = 0; e < m->count; e++) {
        const sl_edge *edge = &m->edges[e];
        const bool own = edge->from == edge->to;
        const bool counts = edge->weight != 0 || (own && m->own_listed);
        if (m->weighted ? !isnan(edge->weight) && counts : !own)
            m->edges[kept++] = *edge;
    }
    m->count = kept;
}

static bool has_edge(const making *m, uint32_t from, uint32_t to) {
    const sl_edge wanted = {from, to, 0};
    return bsearch(&wanted, m->edges, m->count, sizeof wanted, by_ends) != NULL;
}

/* A graph without weights that has all edges in both directions is undirected. */
static void forget_directions(making *m) {
    size_t kept = 0;
    for (size_t e = 0; e < m->count; e++)
        if (!has_edge(m, m->edges[e].to, m->edges[e].from))
            return;
    for (size_t e = 0; e < m->count; e++)
        if (m->edges[e].from < m->edges[e].to)
            m->edges[kept++] = m->edges[e];
    m->count = kept;
    m->directed = false;
}

/* ---- weights ---- */

typedef struct sums {
    double *row, *column;                   /* (nodes) own weights included */
    bool *own;                              /* (nodes) is there one? */
    uint32_t *row_weights, *column_weights; /* (nodes) in each sum */
} sums;

static void sums_close(sums *s) {
    free(s->row);
    free(s->column);
    free(s->own);
    free(s->row_weights);
    free(s->column_weights);
}

static void add(sums *s, uint32_t from, uint32_t to, double weight) {
    s->row[to] += weight;
    s->column[from] += weight;
    s->row_weights[to]++;
    s->column_weights[from]++;
}

static int sums_open(sums *out, const making *m, sl_error *error) {
    const size_t nodes = m->graph->nodes;
    *out = (sums){calloc(nodes, sizeof(double)), calloc(nodes, sizeof(double)),
                  calloc(nodes, sizeof(bool)), calloc(nodes, sizeof(uint32_t)),
                  calloc(nodes, sizeof(uint32_t))};
    if (!out->row || !out->column || !out->own || !out->row_weights || !out->column_weights)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu nodes", nodes);
    for (size_t e = 0; e < m->count; e++) {
        const sl_edge *edge = &m->edges[e];
        add(out, edge->from, edge->to, edge->weight);
        if (edge->from == edge->to)
            out->own[edge->to] = true;
        else if (!m->directed)
            add(out, edge->to, edge->from, edge->weight);
    }
    return 0;
}

/* A sum may miss 1 as rounded weights do. Without an own weight it is below 1. */
static bool fits(double sum, uint32_t weights, bool own) {
    return own ? fabs(sum - 1) <= SL_ROUNDED_WEIGHT * weights : sum < 1;
}

static uint32_t first_misfit(const sums *s, const double *sum, const uint32_t *weights,
                             uint32_t nodes) {
    uint32_t i = 0;
    while (i < nodes && fits(sum[i], weights[i], s->own[i]))
        i++;
    return i;
}

static const char more_digits[] =
    "give them more digits, or leave the self-weights out (a diagonal of 0): they are then 1 minus "
    "the rest";

/* Does it miss 1 as printed numbers do? */
static bool is_near(const sums *s, const double *sum, uint32_t i) {
    return s->own[i] && fabs(sum[i] - 1) < 0.02;
}

static int refuse_sums(const making *m, const sums *s, uint32_t row, uint32_t column,
                       sl_error *error) {
    char a[64], b[64];
    return sl_fail(
        error, SL_EINVAL,
        "these are no mixing weights: what node %s gives %ssums to %.9g, and what node "
        "%s is given to %.9g; all rows, or all columns, must sum to 1, or to less where "
        "a node has no weight for itself; %s",
        name_of(m, row, a), s->own[row] ? "itself and its neighbours " : "its neighbours ",
        s->row[row], name_of(m, column, b), s->column[column],
        is_near(s, s->row, row) || is_near(s, s->column, column) ? more_digits : name_a_scheme);
}

static int check_sums(making *m, sl_error *error) {
    sums s;
    const uint32_t nodes = m->graph->nodes;
    int result = sums_open(&s, m, error);
    if (result == 0) {
        const uint32_t row = first_misfit(&s, s.row, s.row_weights, nodes),
                       column = first_misfit(&s, s.column, s.column_weights, nodes);
        m->by_column = row < nodes;
        if (row < nodes && column < nodes)
            result = refuse_sums(m, &s, row, column, error);
    }
    sums_close(&s);
    return result;
}

/* ---- text ---- */

/* What stands before the edges. */
static char *head_text(const making *m) {
    const char *weights = m->by_column ? "push-sum" : m->graph->weights;
    json_t *root = json_pack("{sI}", "nodes", (json_int_t)m->graph->nodes);
    if (m->directed && !m->weighted)
        sl_json_set(&root, "directed", json_true());
    if (weights != NULL)
        sl_json_set(&root, "weights", json_string(weights));
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

static void write_edge(FILE *to, const char *comma, uint32_t from, uint32_t into,
                       const char *weight) {
    if (weight == NULL)
        fprintf(to, "%s[%u,%u]", comma, from, into);
    else
        fprintf(to, "%s[%u,%u,%s]", comma, from, into, weight);
}

static bool write_edges(FILE *to, const making *m) {
    char *number = NULL;
    double last = NAN;
    bool good = true;
    for (size_t e = 0; good && e < m->count; e++) {
        const sl_edge *edge = &m->edges[e];
        if (m->weighted && (e == 0 || edge->weight != last)) {
            free(number);
            number = sl_json_number(last = edge->weight);
            good = number != NULL;
        }
        write_edge(to, e > 0 ? "," : "", edge->from, edge->to, number);
        if (m->weighted && !m->directed && edge->from != edge->to)
            write_edge(to, ",", edge->to, edge->from, number);
    }
    free(number);
    return good;
}

static int write_graph(char **json, const making *m, sl_error *error) {
    size_t size;
    char *head = head_text(m), *text = NULL;
    FILE *to = head != NULL ? open_memstream(&text, &size) : NULL;
    bool good = to != NULL;
    if (good) {
        fprintf(to, "%.*s,\"edges\":[", (int)strlen(head) - 1, head);
        good = write_edges(to, m);
        fputs("]}", to);
        good = !(ferror(to) | fclose(to)) && good;
    }
    free(head);
    if (good)
        *json = text;
    else
        free(text);
    return good ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for a topology's text");
}

static int make(char **json, making *m, sl_error *error) {
    int result = m->graph->nodes < 1 || m->graph->nodes > SL_NODES_MAX
                     ? sl_fail(error, SL_EINVAL, "%u nodes: from 1 to %u are allowed",
                               m->graph->nodes, SL_NODES_MAX)
                     : 0;
    m->directed = m->graph->directed;
    if (result == 0)
        result = take_edges(m, error);
    if (result == 0)
        result = check_numbers(m, error);
    if (result == 0)
        merge(m);
    if (result == 0 && m->weighted)
        result = check_sums(m, error);
    if (result == 0 && m->directed && !m->weighted)
        forget_directions(m);
    if (result == 0)
        result = write_graph(json, m, error);
    free(m->edges);
    return result;
}

int sl_foreign_graph_json(char **json, const sl_foreign_graph *graph, sl_error *error) {
    making m = {.graph = graph};
    return make(json, &m, error);
}

/* ---- matrices ---- */

static int by_place(const void *x, const void *y) {
    const sl_matrix_entry *a = x, *b = y;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return a->column < b->column ? -1 : a->column > b->column;
}

/* A copy without zeros, each place once; *plain: all are 1. */
static int take_entries(sl_matrix_entry **out, size_t *count, bool *plain, uint32_t nodes,
                        const sl_matrix_entry *entries, sl_error *error) {
    sl_matrix_entry *all = malloc((*count + 1) * sizeof *all);
    size_t kept = 0;
    if (all == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu entries of a matrix", *count);
    for (size_t e = 0; e < *count; e++) {
        const sl_matrix_entry *entry = &entries[e];
        const bool inside = entry->row < nodes && entry->column < nodes;
        if (inside && isfinite(entry->value)) {
            all[e] = *entry;
            continue;
        }
        free(all);
        return sl_fail(error, SL_EINVAL, "entry [%u][%u] of the matrix is %g; %s", entry->row,
                       entry->column, entry->value,
                       inside ? "it must be a finite number" : "it is outside");
    }
    qsort(all, *count, sizeof *all, by_place);
    for (size_t e = 0; e < *count; e++) {
        if (kept > 0 && by_place(&all[kept - 1], &all[e]) == 0)
            all[kept - 1].value += all[e].value;
        else if (all[e].value != 0)
            all[kept++] = all[e];
    }
    *plain = true;
    for (size_t e = 0; e < kept; e++)
        *plain = *plain && all[e].value == 1;
    *count = kept;
    *out = all;
    return 0;
}

/* Has no node a weight for itself, and does each leave room for one? Entries are sorted. */
static bool lacks_own(const sl_matrix_entry *entries, size_t count, uint32_t nodes) {
    double sum = 0;
    for (size_t e = 0; e < count; e++) {
        sum = e > 0 && entries[e].row == entries[e - 1].row ? sum + entries[e].value
                                                            : entries[e].value;
        if (entries[e].row == entries[e].column || !(sum < 1 - FLT_EPSILON * (double)nodes))
            return false;
    }
    return true;
}

static size_t as_edges(sl_edge *out, const sl_matrix_entry *entries, size_t count, bool adjacency,
                       bool own, uint32_t nodes) {
    size_t edges = 0;
    for (size_t e = 0; e < count; e++) {
        const sl_matrix_entry *m = &entries[e];
        out[edges++] =
            adjacency ? (sl_edge){m->row, m->column, NAN} : (sl_edge){m->column, m->row, m->value};
    }
    for (uint32_t i = 0; own && i < nodes; i++)
        out[edges++] = (sl_edge){i, i, 0};
    return edges;
}

int sl_foreign_matrix_json(char **json, uint32_t nodes, const sl_matrix_entry *entries,
                           size_t count, const char *weights, sl_error *error) {
    sl_matrix_entry *all = NULL;
    bool plain = false;
    int result = take_entries(&all, &count, &plain, nodes, entries, error);
    if (result != 0)
        return result;
    const bool adjacency = plain || weights != NULL,
               own = !adjacency && !lacks_own(all, count, nodes);
    sl_edge *edges = malloc((count + nodes + 1) * sizeof *edges);
    sl_foreign_graph graph = {.nodes = nodes, .edges = edges, .directed = true, .weights = weights};
    making m = {.graph = &graph, .own_listed = own};
    if (edges == NULL)
        result = sl_fail(error, SL_ENOMEM, "out of memory for %zu edges", count);
    else
        graph.edge_count = as_edges(edges, all, count, adjacency, own, nodes);
    if (result == 0)
        result = make(json, &m, error);
    free(edges);
    free(all);
    return result;
}
