/* npy.c - NumPy's .npy files of two axes: a matrix, or a list of edges. */
#include <stdlib.h>

#include "foreign/graph_file.h"
#include "starling/tensors.h"

int read_npy(graph_file *g, char *bytes, size_t size, sl_error *error) {
    sl_npy a;
    int result = sl_npy_parse(&a, bytes, size, error);
    if (result != 0)
        return result;
    if (a.axes != 2)
        return sl_fail(error, SL_EFILE,
                       "its shape has %zu %s; a matrix, or a list of edges, has two axes", a.axes,
                       a.axes == 1 ? "axis" : "axes");
    double *numbers = malloc(a.count * sizeof *numbers);
    if (numbers == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu numbers", a.count);
    for (size_t i = 0; i < a.count; i++)
        numbers[i] = sl_npy_number(&a, i);
    result = graph_take_numbers(g, numbers, a.shape[0], a.shape[1], error);
    free(numbers);
    return result;
}
