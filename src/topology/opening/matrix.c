/* matrix.c - see matrix.h. */
#include "topology/opening/matrix.h"

#include <stdlib.h>

#include "starling/foreign.h"
#include "starling/tensors.h"
#include "topology/links/fields.h"

/* Those that are not 0, which few are of a large W. */
typedef struct entries {
    sl_matrix_entry *items; /* (count) */
    size_t count, room;
} entries;

static int add(entries *e, size_t i, size_t j, double value, sl_error *error) {
    if (value == 0)
        return 0;
    if (e->count == e->room) {
        const size_t room = e->room > 0 ? 2 * e->room : 64;
        sl_matrix_entry *items = realloc(e->items, room * sizeof *items);
        if (items == NULL)
            return sl_fail(error, SL_ENOMEM, "W: out of memory for %zu numbers", room);
        e->items = items;
        e->room = room;
    }
    e->items[e->count++] = (sl_matrix_entry){(uint32_t)i, (uint32_t)j, value};
    return 0;
}

static int check_nodes(size_t nodes, sl_error *error) {
    return nodes >= 1 && nodes <= SL_NODES_MAX
               ? 0
               : sl_fail(error, SL_EINVAL, "W: has %zu rows; it must have from 1 to %u", nodes,
                         SL_NODES_MAX);
}

/* ---- rows of a file ---- */

static int read_row(entries *e, json_t *row, size_t i, size_t nodes, sl_error *error) {
    int result = 0;
    if (json_array_size(row) != nodes)
        return sl_fail(error, SL_EINVAL,
                       "W[%zu]: must be a row of %zu numbers, as many as there are rows", i, nodes);
    for (size_t j = 0; j < nodes && result == 0; j++) {
        json_t *value = json_array_get(row, j);
        result = json_is_number(value)
                     ? add(e, i, j, json_number_value(value), error)
                     : sl_fail(error, SL_EINVAL, "W[%zu][%zu]: must be a number", i, j);
    }
    return result;
}

static int rows_to_json(char **json, json_t *rows, const char *weights, sl_error *error) {
    const size_t nodes = json_array_size(rows);
    entries e = {0};
    int result = check_nodes(nodes, error);
    for (size_t i = 0; result == 0 && i < nodes; i++)
        result = read_row(&e, json_array_get(rows, i), i, nodes, error);
    if (result == 0 && (result = sl_foreign_matrix_json(json, (uint32_t)nodes, e.items, e.count,
                                                        weights, error)) != 0)
        sl_fail_prefix(error, result, "W");
    free(e.items);
    return result;
}

static int check_others(json_t *root, sl_error *error) {
    static const char *const others[] = {"family", "edges", "schedule", "directed"};
    json_t *rows = json_object_get(root, "W"), *nodes = json_object_get(root, "nodes"),
           *weights = json_object_get(root, "weights");
    if (!json_is_array(rows))
        return sl_field_refuse(rows, "W",
                               "rows of numbers, [[0.5, 0.5], [0.5, 0.5]]; a .npy file is a "
                               "topology file by itself",
                               error);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (json_object_get(root, others[i]) != NULL)
            return sl_fail(error, SL_EINVAL,
                           "%s: stands beside \"W\", which says all of the graph; leave one out",
                           others[i]);
    if (nodes != NULL && json_integer_value(nodes) != (json_int_t)json_array_size(rows))
        return sl_fail(error, SL_EINVAL,
                       "W: has %zu rows, and nodes is another number; they must be equal, or "
                       "\"nodes\" left out",
                       json_array_size(rows));
    return weights == NULL || json_is_string(weights)
               ? 0
               : sl_field_refuse(weights, "weights", "the name of a scheme", error);
}

int sl_matrix_list_edges(json_t *root, sl_error *error) {
    json_t *rows = json_object_get(root, "W"), *weights = json_object_get(root, "weights");
    char *text = NULL;
    if (rows == NULL)
        return 0;
    int result = check_others(root, error);
    if (result == 0)
        result = rows_to_json(&text, rows, json_string_value(weights), error);
    if (result != 0)
        return result;
    json_t *listed = json_loads(text, 0, NULL);
    free(text);
    const bool placed =
        listed != NULL && json_object_update(root, listed) == 0 && json_object_del(root, "W") == 0;
    json_decref(listed);
    return placed ? 0 : sl_fail(error, SL_ENOMEM, "W: out of memory");
}

/* ---- .npy ---- */

int sl_matrix_of_npy(char **json, const void *bytes, size_t size, sl_error *error) {
    sl_npy w;
    entries e = {0};
    int result = sl_npy_parse(&w, bytes, size, error);
    if (result != 0)
        return result;
    if (w.axes != 2 || w.shape[0] != w.shape[1])
        return sl_fail(
            error, SL_EFILE,
            "is no matrix (n, n); of a list of edges, starling topology make --from FILE "
            "-o topology.json makes a topology file");
    const size_t nodes = w.shape[0];
    result = check_nodes(nodes, error);
    for (size_t k = 0; result == 0 && k < nodes * nodes; k++)
        result = add(&e, k / nodes, k % nodes, sl_npy_number(&w, k), error);
    if (result == 0)
        result = sl_foreign_matrix_json(json, (uint32_t)nodes, e.items, e.count, NULL, error);
    free(e.items);
    return result;
}
