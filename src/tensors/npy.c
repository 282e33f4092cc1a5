/* npy.c - NumPy's .npy files of one axis of float32.
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

enum { TEXT_MAX = 4096, PREFIX_BYTES = 10 };

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

static void drop_spaces(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0'; from++)
        if (!isspace((unsigned char)*from))
            *to++ = *from;
    *to = '\0';
}

/* The length of its one axis, from the text without spaces; false: it is something else. */
static bool read_length(const char *text, unsigned long long *length) {
    static const char before[] = "{'descr':'<f4','fortran_order':False,'shape':(";
    char *end;
    if (strncmp(text, before, sizeof before - 1) != 0)
        return false;
    text += sizeof before - 1;
    if (!isdigit((unsigned char)*text))
        return false;
    *length = strtoull(text, &end, 10);
    return strcmp(end, ",),}") == 0 || strcmp(end, ",)}") == 0;
}

static int read_text(char text[TEXT_MAX + 1], uint64_t *data_at, const sl_tensors_file *file,
                     sl_error *error) {
    uint8_t prefix[12] = {0};
    const size_t prefix_bytes = file->bytes < sizeof prefix ? (size_t)file->bytes : sizeof prefix;
    int result = sl_tensors_read_at(file, 0, prefix, prefix_bytes, error);
    if (result != 0)
        return result;
    const bool is_long = prefix[6] > 1;
    uint64_t length = prefix[8] | (uint64_t)prefix[9] << 8;
    if (is_long)
        length |= (uint64_t)prefix[10] << 16 | (uint64_t)prefix[11] << 24;
    const uint64_t at = is_long ? sizeof prefix : PREFIX_BYTES;
    if (length > TEXT_MAX || file->bytes < at + length)
        return sl_fail(error, SL_EFILE, "%s: its .npy header would have %llu bytes; is it cut off?",
                       file->where, (unsigned long long)length);
    text[length] = '\0';
    *data_at = at + length;
    return sl_tensors_read_at(file, at, text, (size_t)length, error);
}

int sl_npy_read(float *x, size_t dimension, const sl_tensors_file *file, sl_error *error) {
    char text[TEXT_MAX + 1];
    uint64_t data_at = 0;
    unsigned long long length;
    int result = read_text(text, &data_at, file, error);
    if (result != 0)
        return result;
    drop_spaces(text);
    if (!read_length(text, &length))
        return sl_fail(error, SL_EFILE, "%s: is not one axis of little-endian float32, but %.100s",
                       file->where, text);
    if (length != dimension)
        return sl_fail(error, SL_EFILE, "%s: the file has shape [%llu], the model [%zu]",
                       file->where, length, dimension);
    if (file->bytes - data_at != dimension * sizeof *x)
        return sl_fail(error, SL_EFILE, "%s: %llu bytes of numbers are there, and %zu must be",
                       file->where, (unsigned long long)(file->bytes - data_at),
                       dimension * sizeof *x);
    return sl_tensors_read_at(file, data_at, x, dimension * sizeof *x, error);
}
