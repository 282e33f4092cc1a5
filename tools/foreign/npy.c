/* npy.c - NumPy's .npy files of two axes, versions 1 to 3.
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/graph_file.h"

enum { HEAD_MAX = 65536, TYPE_MAX = 16 };

typedef struct array {
    char kind; /* 'b', 'i', 'u', 'f' */
    size_t bytes;
    bool big_endian, fortran;
    unsigned long long rows, columns;
    const unsigned char *data;
} array;

/* ---- the head: a Python literal ---- */

/* What stands behind 'key': ; NULL: nothing. */
static const char *value_of(const char *head, const char *key) {
    const char *at = strstr(head, key);
    at = at != NULL ? strchr(at, ':') : NULL;
    return at != NULL ? at + 1 + strspn(at + 1, " ") : NULL;
}

static int read_type(array *a, const char *at, sl_error *error) {
    char type[TYPE_MAX] = "";
    if (at != NULL && *at == '\'')
        snprintf(type, sizeof type, "%.*s", (int)strcspn(at + 1, "'"), at + 1);
    a->big_endian = type[0] == '>';
    a->kind = type[0] != '\0' ? type[1] : '\0';
    a->bytes = type[0] != '\0' && type[1] != '\0' ? strtoul(type + 2, NULL, 10) : 0;
    const bool whole = (a->kind == 'i' || a->kind == 'u') &&
                       (a->bytes == 1 || a->bytes == 2 || a->bytes == 4 || a->bytes == 8);
    if (whole || (a->kind == 'b' && a->bytes == 1) ||
        (a->kind == 'f' && (a->bytes == 4 || a->bytes == 8)))
        return 0;
    return sl_fail(error, SL_EFILE,
                   "its numbers are %.40s; read are integers, booleans, float32 and float64: save "
                   "W.astype(\"f8\")",
                   type[0] != '\0' ? type : "of several fields");
}

/* "(3, 3)" */
static int read_shape(array *a, const char *at, sl_error *error) {
    unsigned long long lengths[3] = {0};
    size_t axes = 0;
    char *end = NULL;
    for (const char *next = at != NULL && *at == '(' ? at + 1 : ""; axes < 3; axes++) {
        next += strspn(next, ", ");
        if (!isdigit((unsigned char)*next))
            break;
        lengths[axes] = strtoull(next, &end, 10);
        next = end;
    }
    a->rows = lengths[0];
    a->columns = lengths[1];
    if (axes == 2)
        return 0;
    return sl_fail(error, SL_EFILE, "its shape is %.*s; a matrix, or a list of edges, has two axes",
                   at != NULL ? (int)strcspn(at, ")") + 1 : 1, at != NULL ? at : "?");
}

static int read_head(array *a, const char *bytes, size_t size, sl_error *error) {
    static char nothing[] = "";
    const unsigned char *prefix = (const unsigned char *)bytes;
    const bool is_long = size >= 12 && prefix[6] > 1;
    const size_t at = is_long ? 12 : 10;
    size_t length = size < at ? 0 : prefix[8] | (size_t)prefix[9] << 8;
    if (is_long)
        length |= (size_t)prefix[10] << 16 | (size_t)prefix[11] << 24;
    if (size < at || length > size - at || length > HEAD_MAX)
        return sl_fail(error, SL_EFILE, "its .npy header would have %zu bytes; is it cut off?",
                       length);
    char *head = strndup(length > 0 ? bytes + at : nothing, length);
    if (head == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a header");
    const char *order = value_of(head, "'fortran_order'");
    int result = read_type(a, value_of(head, "'descr'"), error);
    if (result == 0)
        result = read_shape(a, value_of(head, "'shape'"), error);
    a->fortran = order != NULL && strncmp(order, "True", 4) == 0;
    a->data = prefix + at + length;
    free(head);
    if (result != 0)
        return result;
    const unsigned long long room = (size - at - length) / a->bytes;
    const bool fits = a->columns == 0 || a->rows <= room / a->columns;
    if (a->rows == 0 || a->columns == 0)
        return sl_fail(error, SL_EFILE, "holds no numbers");
    return fits && a->rows * a->columns * a->bytes == size - at - length
               ? 0
               : sl_fail(error, SL_EFILE, "%llu x %llu numbers of %zu bytes are not its %zu bytes",
                         a->rows, a->columns, a->bytes, size - at - length);
}

/* ---- the numbers ---- */

static double number_at(const array *a, size_t index) {
    uint64_t bits = 0;
    const unsigned char *p = a->data + index * a->bytes;
    for (size_t k = 0; k < a->bytes; k++)
        bits |= (uint64_t)p[a->big_endian ? a->bytes - 1 - k : k] << 8 * k;
    if (a->kind == 'i') { /* the sign from its own place to the highest */
        const unsigned unused = 64 - 8 * (unsigned)a->bytes;
        return (double)((int64_t)(bits << unused) >> unused);
    }
    if (a->kind != 'f')
        return (double)bits;
    float single;
    double number;
    const uint32_t low = (uint32_t)bits;
    memcpy(&single, &low, sizeof single);
    memcpy(&number, &bits, sizeof number);
    return a->bytes == 4 ? (double)single : number;
}

int read_npy(graph_file *g, char *bytes, size_t size, sl_error *error) {
    array a = {0};
    int result = read_head(&a, bytes, size, error);
    if (result != 0)
        return result;
    const size_t rows = (size_t)a.rows, columns = (size_t)a.columns;
    double *numbers = malloc(rows * columns * sizeof *numbers);
    if (numbers == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu numbers", rows * columns);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            numbers[i * columns + j] = number_at(&a, a.fortran ? j * rows + i : i * columns + j);
    result = graph_take_numbers(g, numbers, rows, columns, error);
    free(numbers);
    return result;
}
