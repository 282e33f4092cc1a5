/* layout.c - see layout.h. */
#include "session/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* More would not fit into memory, in bytes. */
#define NUMBERS_MAX (PTRDIFF_MAX / sizeof(float))

/* ---- one tensor ---- */

static int check_tensor(const sl_session_tensor *t, uint64_t index, sl_error *error) {
    if (t->name == NULL || strpbrk(t->name, "\n\r") != NULL)
        return sl_fail(error, SL_EINVAL,
                       "options.tensors[%" PRIu64 "].name: must be a text without line breaks",
                       index);
    if (t->axes > SL_SESSION_TENSOR_AXES_MAX || (t->axes > 0 && t->shape == NULL))
        return sl_fail(error, SL_EINVAL,
                       "options.tensors[%" PRIu64 "].axes: %" PRIu64
                       " is not allowed; it must be at most %d, and shape must hold as many",
                       index, t->axes, SL_SESSION_TENSOR_AXES_MAX);
    return 0;
}

/* At most `room`; room + 1: more, or an axis of 0. */
static uint64_t size_of(const sl_session_tensor *t, uint64_t room) {
    uint64_t size = 1;
    for (uint64_t i = 0; i < t->axes; i++) {
        if (t->shape[i] == 0 || size > room / t->shape[i])
            return room + 1;
        size *= t->shape[i];
    }
    return size <= room ? size : room + 1;
}

static void print_tensor(FILE *out, const sl_session_tensor *t) {
    fprintf(out, "%s [", t->name);
    for (uint64_t i = 0; i < t->axes; i++)
        fprintf(out, "%s%" PRIu64, i > 0 ? ", " : "", t->shape[i]);
    fprintf(out, "]\n");
}

/* ---- all of them ---- */

static int read_tensors(sl_layout *l, const sl_session_options *o, sl_error *error) {
    uint64_t end = 0;
    for (uint64_t i = 0; i < o->tensor_count; i++) {
        const uint64_t size = size_of(&o->tensors[i], l->dimension - end);
        if (size > l->dimension - end)
            return sl_fail(error, SL_EINVAL,
                           "options.tensors[%" PRIu64 "] (%.100s): has an axis of length 0, or "
                           "ends beyond the dimension, %zu",
                           i, o->tensors[i].name, l->dimension);
        end += size;
        l->ends[i] = end;
        l->rows[i] = o->tensors[i].axes > 1 ? o->tensors[i].shape[0] : 1;
    }
    return end == l->dimension ? 0
                               : sl_fail(error, SL_EINVAL,
                                         "options.tensors: hold %" PRIu64
                                         " numbers in all; they must hold the dimension, %zu",
                                         end, l->dimension);
}

static int describe(sl_layout *l, const sl_session_options *o, sl_error *error) {
    size_t bytes;
    FILE *out = open_memstream(&l->text, &bytes);
    for (uint64_t i = 0; out != NULL && i < l->count; i++)
        print_tensor(out, &o->tensors[i]);
    if (out == NULL || fclose(out) != 0)
        return sl_fail(error, SL_ENOMEM, "session: out of memory");
    return 0;
}

int sl_layout_open(sl_layout *out, const sl_session_options *o, uint64_t dimension,
                   sl_error *error) {
    if (dimension == 0 || dimension > NUMBERS_MAX)
        return sl_fail(error, SL_EINVAL,
                       "dimension: %" PRIu64 " is not allowed; it must be from 1 to %" PRIu64,
                       dimension, (uint64_t)NUMBERS_MAX);
    sl_layout l = {.dimension = dimension, .count = o->tensors != NULL ? o->tensor_count : 0};
    int result = 0;
    for (uint64_t i = 0; i < l.count && result == 0; i++)
        result = check_tensor(&o->tensors[i], i, error);
    if (result == 0 && l.count > 0 &&
        ((l.ends = calloc(l.count, sizeof *l.ends)) == NULL ||
         (l.rows = calloc(l.count, sizeof *l.rows)) == NULL))
        result = sl_fail(error, SL_ENOMEM, "session: out of memory for %zu tensors", l.count);
    if (result == 0 && l.count > 0)
        result = read_tensors(&l, o, error);
    if (result == 0)
        result = describe(&l, o, error);
    if (result != 0)
        sl_layout_close(&l);
    else
        *out = l;
    return result;
}

void sl_layout_close(sl_layout *l) {
    free(l->ends);
    free(l->rows);
    free(l->text);
    *l = (sl_layout){0};
}

uint64_t sl_layout_hash(const sl_layout *l) {
    return sl_hash(sl_hash_word(SL_HASH_START, l->dimension), l->text, strlen(l->text)) | 1;
}

/* Line `index` of the text, without its end. */
static const char *line_of(const sl_layout *l, size_t index, int *length) {
    const char *line = l->text;
    while (index-- > 0)
        line = strchr(line, '\n') + 1;
    *length = (int)strcspn(line, "\n");
    return line;
}

void sl_layout_name_tensor(const sl_layout *l, size_t tensor, char *out, size_t bytes) {
    int length = 0;
    const char *line = l->count > 0 ? line_of(l, tensor, &length) : "";
    snprintf(out, bytes, "%.*s", length, line);
}

void sl_layout_name_element(const sl_layout *l, size_t element, char *out, size_t bytes) {
    size_t tensor = 0;
    while (tensor < l->count && l->ends[tensor] <= element)
        tensor++;
    if (tensor == l->count) {
        snprintf(out, bytes, "element %zu", element);
        return;
    }
    int length;
    const char *line = line_of(l, tensor, &length);
    snprintf(out, bytes, "element %zu of %.*s", element - (tensor > 0 ? l->ends[tensor - 1] : 0),
             length, line);
}
