/* npy.c - NumPy's .npy files: arrays in memory, and a model's vector in a file.
 *
 * Six bytes of magic, the format's version (major, minor), the length of the text (two bytes, from
 * version 2 on four), the text: a Python literal, padded with spaces; then the numbers.
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensors/file.h"

enum { TEXT_MAX = 65536, PREFIX_MIN = 10, PREFIX_MAX = 12, TYPE_MAX = 16 };
static const char magic[] = "\x93NUMPY";
enum { MAGIC_BYTES = sizeof magic - 1 };

void sl_npy_head(char out[SL_NPY_HEAD_BYTES], size_t dimension) {
    enum { TEXT = SL_NPY_HEAD_BYTES - PREFIX_MIN };
    char text[TEXT + 1];
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)(TEXT & 0xFF);
    out[9] = TEXT >> 8;
    snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu,), }",
             dimension);
    memset(out + PREFIX_MIN, ' ', TEXT);
    memcpy(out + PREFIX_MIN, text, strlen(text));
    out[SL_NPY_HEAD_BYTES - 1] = '\n';
}

/* ---- the head ---- */

/* What stands behind 'key': ; NULL: nothing. */
static const char *value_of(const char *text, const char *key) {
    const char *at = strstr(text, key);
    at = at != NULL ? strchr(at, ':') : NULL;
    return at != NULL ? at + 1 + strspn(at + 1, " ") : NULL;
}

static int read_type(sl_npy *a, const char *at, sl_error *error) {
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
                   "it with .astype(\"f4\")",
                   type[0] != '\0' ? type : "of several fields");
}

/* "(3, 3)"; () is one number. */
static int read_shape(sl_npy *a, const char *at, sl_error *error) {
    char *end = NULL;
    const char *next = at != NULL && *at == '(' ? at + 1 : "";
    a->count = 1;
    for (a->axes = 0; a->axes < SL_TENSOR_AXES_MAX; a->axes++, next = end) {
        next += strspn(next, ", ");
        if (!isdigit((unsigned char)*next))
            break;
        const size_t length = a->shape[a->axes] = strtoull(next, &end, 10);
        if (length == 0)
            return sl_fail(error, SL_EFILE, "holds no numbers");
        if (length > SIZE_MAX / a->count)
            return sl_fail(error, SL_EFILE, "its shape is beyond any memory");
        a->count *= length;
    }
    next += strspn(next, ", ");
    return *next == ')' ? 0
                        : sl_fail(error, SL_EFILE, "its shape is %.40s; it must be at most %d axes",
                                  at != NULL ? at : "missing", SL_TENSOR_AXES_MAX);
}

/* All but the numbers, from the text (length), which need not end. */
static int read_head(sl_npy *out, const void *from, size_t length, sl_error *error) {
    char *text = malloc(length + 1);
    if (text == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a header");
    memcpy(text, from, length);
    text[length] = '\0';
    const char *order = value_of(text, "'fortran_order'");
    *out = (sl_npy){.fortran = order != NULL && strncmp(order, "True", 4) == 0};
    int result = read_type(out, value_of(text, "'descr'"), error);
    if (result == 0)
        result = read_shape(out, value_of(text, "'shape'"), error);
    free(text);
    return result;
}

/* Where the text lies, from the first bytes of a file of `bytes`. */
static int find_text(size_t *at, size_t *length, const uint8_t *prefix, uint64_t bytes,
                     sl_error *error) {
    const bool is_long = bytes >= PREFIX_MAX && prefix[6] > 1;
    *at = is_long ? PREFIX_MAX : PREFIX_MIN;
    *length = bytes < *at ? 0 : prefix[8] | (size_t)prefix[9] << 8;
    if (is_long)
        *length |= (size_t)prefix[10] << 16 | (size_t)prefix[11] << 24;
    if (bytes < *at || *length > TEXT_MAX || bytes < *at + *length)
        return sl_fail(error, SL_EFILE, "its .npy header would have %zu bytes; is it cut off?",
                       *length);
    return 0;
}

static int check_bytes(const sl_npy *a, uint64_t bytes, sl_error *error) {
    if (a->count <= bytes / a->bytes && a->count * a->bytes == bytes)
        return 0;
    return sl_fail(error, SL_EFILE, "%zu numbers of %zu bytes are not its %llu bytes", a->count,
                   a->bytes, (unsigned long long)bytes);
}

/* ---- arrays in memory ---- */

bool sl_npy_is(const void *bytes, size_t size) {
    return size >= MAGIC_BYTES && memcmp(bytes, magic, MAGIC_BYTES) == 0;
}

int sl_npy_parse(sl_npy *out, const void *bytes, size_t size, sl_error *error) {
    const unsigned char *file = bytes;
    size_t at, length;
    if (!sl_npy_is(bytes, size))
        return sl_fail(error, SL_EFILE, "is no .npy file");
    int result = find_text(&at, &length, file, size, error);
    if (result == 0)
        result = read_head(out, file + at, length, error);
    if (result == 0)
        result = check_bytes(out, size - at - length, error);
    if (result == 0)
        out->numbers = file + at + length;
    return result;
}

/* Where the number at `index` in C order lies. */
static size_t place_of(const sl_npy *a, size_t index) {
    size_t place = 0, stride = a->count;
    if (!a->fortran)
        return index;
    for (size_t axis = a->axes; axis > 0; axis--, index /= a->shape[axis]) {
        stride /= a->shape[axis - 1];
        place += index % a->shape[axis - 1] * stride;
    }
    return place;
}

double sl_npy_number(const sl_npy *array, size_t index) {
    assert(index < array->count);
    uint64_t bits = 0;
    const unsigned char *p = array->numbers + place_of(array, index) * array->bytes;
    for (size_t k = 0; k < array->bytes; k++)
        bits |= (uint64_t)p[array->big_endian ? array->bytes - 1 - k : k] << 8 * k;
    if (array->kind == 'i') { /* the sign from its own place to the highest */
        const unsigned unused = 64 - 8 * (unsigned)array->bytes;
        return (double)((int64_t)(bits << unused) >> unused);
    }
    if (array->kind != 'f')
        return (double)bits;
    float single;
    double number;
    const uint32_t low = (uint32_t)bits;
    memcpy(&single, &low, sizeof single);
    memcpy(&number, &bits, sizeof number);
    return array->bytes == 4 ? (double)single : number;
}

/* ---- a model's vector in a file ---- */

static int read_head_of(sl_npy *out, uint64_t *numbers_at, const sl_tensors_file *file,
                        sl_error *error) {
    uint8_t prefix[PREFIX_MAX] = {0};
    const size_t prefix_bytes = file->bytes < PREFIX_MAX ? (size_t)file->bytes : PREFIX_MAX;
    size_t at, length;
    int result = sl_tensors_read_at(file, 0, prefix, prefix_bytes, error);
    if (result != 0)
        return result;
    result = find_text(&at, &length, prefix, file->bytes, error);
    if (result != 0)
        return sl_fail_prefix(error, result, "%s", file->where);
    char *text = malloc(length + 1);
    if (text == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for a header", file->where);
    result = sl_tensors_read_at(file, at, text, length, error);
    if (result == 0) {
        result = read_head(out, text, length, error);
        if (result != 0)
            sl_fail_prefix(error, result, "%s", file->where);
    }
    free(text);
    *numbers_at = at + length;
    return result;
}

int sl_npy_read(float *x, size_t dimension, const sl_tensors_file *file, sl_error *error) {
    sl_npy a;
    uint64_t at = 0;
    int result = read_head_of(&a, &at, file, error);
    if (result != 0)
        return result;
    if (a.axes != 1 || a.kind != 'f' || a.bytes != sizeof *x || a.big_endian)
        return sl_fail(error, SL_EFILE,
                       "%s: is not one axis of little-endian float32 (<f4), but %zu of %c%c%zu",
                       file->where, a.axes, a.big_endian ? '>' : '<', a.kind, a.bytes);
    if (a.count != dimension)
        return sl_fail(error, SL_EFILE, "%s: the file has shape [%zu], the model [%zu]",
                       file->where, a.count, dimension);
    if (file->bytes - at != dimension * sizeof *x)
        return sl_fail(error, SL_EFILE, "%s: %llu bytes of numbers are there, and %zu must be",
                       file->where, (unsigned long long)(file->bytes - at), dimension * sizeof *x);
    return sl_tensors_read_at(file, at, x, dimension * sizeof *x, error);
}
