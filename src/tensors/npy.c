/* npy.c - NumPy's .npy files, versions 1 to 3.
 *
 * Six bytes of magic, the format's version (major, minor), the length of the text (two bytes, from
 * version 2 on four), the text: a Python literal, padded with spaces; then the numbers.
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensors/file.h"

enum { TEXT_MAX = 65536, PREFIX_BYTES = 10, LONG_PREFIX_BYTES = 12, TYPE_MAX = 16 };

void sl_npy_head(char out[SL_NPY_HEAD_BYTES], size_t dimension) {
    enum { TEXT = SL_NPY_HEAD_BYTES - PREFIX_BYTES };
    char text[TEXT + 1];
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)(TEXT & 0xFF);
    out[9] = TEXT >> 8;
    snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu,), }",
             dimension);
    memset(out + PREFIX_BYTES, ' ', TEXT);
    memcpy(out + PREFIX_BYTES, text, strlen(text));
    out[SL_NPY_HEAD_BYTES - 1] = '\n';
}

/* ---- the head ---- */

/* What stands behind 'key': ; "": nothing. */
static const char *value_of(const char *head, const char *key) {
    const char *at = strstr(head, key);
    at = at != NULL ? strchr(at, ':') : NULL;
    return at != NULL ? at + 1 + strspn(at + 1, " ") : "";
}

static int read_type(sl_npy *a, const char *at, sl_error *error) {
    char type[TYPE_MAX] = "";
    if (*at == '\'')
        snprintf(type, sizeof type, "%.*s", (int)strcspn(at + 1, "'"), at + 1);
    a->big_endian = type[0] == '>';
    a->kind = type[0] != '\0' ? type[1] : '\0';
    a->number_bytes = type[0] != '\0' && type[1] != '\0' ? strtoul(type + 2, NULL, 10) : 0;
    const size_t bytes = a->number_bytes;
    const bool whole = (a->kind == 'i' || a->kind == 'u') &&
                       (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
    if (whole || (a->kind == 'b' && bytes == 1) || (a->kind == 'f' && (bytes == 4 || bytes == 8)))
        return 0;
    return sl_fail(error, SL_EFILE,
                   "its numbers are %.40s; read are integers, booleans, float32 and float64, as of "
                   ".astype(\"f8\")",
                   type[0] != '\0' ? type : "of several fields");
}

/* "(3, 3)" */
static int read_shape(sl_npy *a, const char *at, sl_error *error) {
    const char *next = *at == '(' ? at + 1 : "";
    for (a->axes = 0; a->axes < SL_TENSOR_AXES_MAX; a->axes++) {
        char *end;
        next += strspn(next, ", ");
        if (!isdigit((unsigned char)*next))
            break;
        a->shape[a->axes] = strtoull(next, &end, 10);
        next = end;
    }
    if (*next == ')')
        return 0;
    return sl_fail(error, SL_EFILE, "its shape is %.100s; read are at most %d axes", at,
                   SL_TENSOR_AXES_MAX);
}

/* How many numbers the shape has; 0 also for more than `most`. */
static size_t count_numbers(const sl_npy *a, size_t most) {
    size_t count = 1;
    for (size_t i = 0; i < a->axes; i++) {
        if (a->shape[i] == 0 || count > most / a->shape[i])
            return 0;
        count *= a->shape[i];
    }
    return count;
}

/* Of a file of `size` bytes, of which the first `there` are at hand, all of its head among them. */
static int read_head(sl_npy *out, size_t *data_at, const void *bytes, size_t there, uint64_t size,
                     sl_error *error) {
    const unsigned char *prefix = bytes;
    const bool is_long = there >= LONG_PREFIX_BYTES && prefix[6] > 1;
    const size_t at = is_long ? LONG_PREFIX_BYTES : PREFIX_BYTES;
    size_t length = there < at ? 0 : prefix[8] | (size_t)prefix[9] << 8;
    if (is_long)
        length |= (size_t)prefix[10] << 16 | (size_t)prefix[11] << 24;
    if (there < at || length > there - at || length > TEXT_MAX)
        return sl_fail(error, SL_EFILE, "its .npy header would have %zu bytes; is it cut off?",
                       length);
    char *text = calloc(1, length + 1);
    if (text == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a header");
    memcpy(text, prefix + at, length);
    int result = read_type(out, value_of(text, "'descr'"), error);
    if (result == 0)
        result = read_shape(out, value_of(text, "'shape'"), error);
    out->fortran = strncmp(value_of(text, "'fortran_order'"), "True", 4) == 0;
    free(text);
    *data_at = at + length;
    const uint64_t left = size - at - length;
    const size_t count = result == 0 ? count_numbers(out, left / out->number_bytes) : 0;
    if (result != 0 || (count > 0 && count * out->number_bytes == left))
        return result;
    return sl_fail(error, SL_EFILE, "its shape does not fit its %llu bytes of numbers of %zu bytes",
                   (unsigned long long)left, out->number_bytes);
}

/* ---- in memory ---- */

int sl_npy_parse(sl_npy *out, const void *bytes, size_t size, sl_error *error) {
    sl_npy array = {0};
    size_t data_at = 0;
    int result = read_head(&array, &data_at, bytes, size, size, error);
    if (result != 0)
        return result;
    array.numbers = (const unsigned char *)bytes + data_at;
    *out = array;
    return 0;
}

/* In the file's order. */
static double number_at(const sl_npy *a, size_t index) {
    uint64_t bits = 0;
    const unsigned char *p = a->numbers + index * a->number_bytes;
    for (size_t k = 0; k < a->number_bytes; k++)
        bits |= (uint64_t)p[a->big_endian ? a->number_bytes - 1 - k : k] << 8 * k;
    if (a->kind == 'i') { /* the sign from its own place to the highest */
        const unsigned unused = 64 - 8 * (unsigned)a->number_bytes;
        return (double)((int64_t)(bits << unused) >> unused);
    }
    if (a->kind != 'f')
        return (double)bits;
    float single;
    double number;
    const uint32_t low = (uint32_t)bits;
    memcpy(&single, &low, sizeof single);
    memcpy(&number, &bits, sizeof number);
    return a->number_bytes == sizeof single ? (double)single : number;
}

double sl_npy_entry(const sl_npy *a, size_t row, size_t column) {
    return number_at(a, a->fortran ? column * a->shape[0] + row : row * a->shape[1] + column);
}

/* ---- a vector in a file ---- */

int sl_npy_read(float *x, size_t dimension, const sl_tensors_file *file, sl_error *error) {
    enum { HEAD_MAX = LONG_PREFIX_BYTES + TEXT_MAX };
    const size_t there = file->bytes < HEAD_MAX ? (size_t)file->bytes : HEAD_MAX;
    sl_npy a = {0};
    size_t data_at = 0;
    void *head = malloc(there);
    int result = head == NULL ? sl_fail(error, SL_ENOMEM, "%s: out of memory", file->where)
                              : sl_tensors_read_at(file, 0, head, there, error);
    if (result == 0 && (result = read_head(&a, &data_at, head, there, file->bytes, error)) != 0)
        sl_fail_prefix(error, result, "%s", file->where);
    free(head);
    if (result != 0)
        return result;
    if (a.axes != 1 || a.kind != 'f' || a.number_bytes != sizeof *x || a.big_endian)
        return sl_fail(error, SL_EFILE,
                       "%s: is not one axis of little-endian float32, but %zu of %s%c%zu",
                       file->where, a.axes, a.big_endian ? ">" : "<", a.kind, a.number_bytes);
    if (a.shape[0] != dimension)
        return sl_fail(error, SL_EFILE, "%s: the file has shape [%zu], the model [%zu]",
                       file->where, a.shape[0], dimension);
    return sl_tensors_read_at(file, data_at, x, dimension * sizeof *x, error);
}
