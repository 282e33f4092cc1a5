/* matrix.h - W itself in place of edges: as rows of numbers in a topology, or as a .npy file. */
#ifndef SL_MATRIX_ROWS_H
#define SL_MATRIX_ROWS_H

#include <jansson.h>

#include "starling/error.h"

/* Puts the edges of "W", rows of numbers, in its place, as sl_foreign_matrix_json reads them with
 * "weights"; without "W" nothing changes. SL_EINVAL: no such rows, other "nodes", or another key
 * that says what the graph is. */
int sl_matrix_list_edges(json_t *root, sl_error *error);

/* The text of a topology file, malloc'ed, of a whole .npy file of (n, n) numbers. */
int sl_matrix_of_npy(char **json, const void *bytes, size_t size, sl_error *error);

#endif
