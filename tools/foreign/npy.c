/* npy.c - NumPy's .npy files of two axes. */
#include <stdlib.h>

#include "foreign/graph_file.h"
#include "starling/tensors.h"

int read_npy(graph_file *g, char *bytes, size_t size, sl_error *error) {
    sl_npy a;
    int result = sl_npy_parse(&a, bytes, size, error);
    if (result == 0 && a.axes != 2)
        result = sl_fail(error, SL_EFILE,
                         "has %zu axes; a matrix, or a list of edges, has two axes", a.axes);
    if (result != 0)
        return result;
    const size_t rows = a.shape[0], columns = a.shape[1];
    double *numbers = malloc(rows * columns * sizeof *numbers);
    if (numbers == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu numbers", rows * columns);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            numbers[i * columns + j] = sl_npy_entry(&a, i, j);
    result = graph_take_numbers(g, numbers, rows, columns, error);
    free(numbers);
    return result;
}
