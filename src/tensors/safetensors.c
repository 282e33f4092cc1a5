/* safetensors.c - names, shapes and places of tensors in front of their numbers; see
 * starling/tensors.h. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/round_up.h"
#include "tensors/file.h"

enum { LENGTH_BYTES = 8, HEADER_MAX = 16 << 20, ALIGNMENT = 64 };

/* ---- writing ---- */

static json_t *describe(const sl_tensor *tensor, size_t begin) {
    json_t *shape = json_array(), *offsets = json_array(), *entry = json_object();
    for (size_t i = 0; i < tensor->axes; i++)
        sl_json_append(&shape, json_integer((json_int_t)tensor->shape[i]));
    sl_json_append(&offsets, json_integer((json_int_t)begin));
    sl_json_append(&offsets,
                   json_integer((json_int_t)(begin + sl_tensor_size(tensor) * sizeof(float))));
    sl_json_set(&entry, "dtype", json_string("F32"));
    sl_json_set(&entry, "shape", shape);
    sl_json_set(&entry, "data_offsets", offsets);
    return entry;
}

static char *header_text(const sl_tensor *tensors, size_t count) {
    json_t *root = json_object();
    size_t begin = 0;
    for (size_t i = 0; i < count; i++) {
        sl_json_set(&root, tensors[i].name, describe(&tensors[i], begin));
        begin += sl_tensor_size(&tensors[i]) * sizeof(float);
    }
    char *text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

int sl_safetensors_head(char **out, size_t *bytes, const sl_tensor *tensors, size_t count,
                        sl_error *error) {
    char *text = header_text(tensors, count);
    const size_t length = text != NULL ? strlen(text) : 0,
                 whole = sl_round_up(LENGTH_BYTES + length, ALIGNMENT);
    char *head = text != NULL ? malloc(whole) : NULL;
    if (head == NULL) {
        free(text);
        return sl_fail(error, SL_ENOMEM, "out of memory for the names of %zu tensors", count);
    }
    for (int i = 0; i < LENGTH_BYTES; i++)
        head[i] = (char)((whole - LENGTH_BYTES) >> 8 * i);
    memset(head + LENGTH_BYTES, ' ', whole - LENGTH_BYTES);
    memcpy(head + LENGTH_BYTES, text, length);
    free(text);
    *out = head;
    *bytes = whole;
    return 0;
}

/* ---- reading ---- */

/* Where the numbers of one of the model's tensors stand, from the header's end. */
typedef struct place {
    uint64_t begin, end;
} place;

static void print_shape(char out[SL_TENSORS_TEXT_MAX], const sl_tensor *tensor) {
    size_t used = (size_t)snprintf(out, SL_TENSORS_TEXT_MAX, "[");
    for (size_t i = 0; i < tensor->axes && used < SL_TENSORS_TEXT_MAX; i++)
        used += (size_t)snprintf(out + used, SL_TENSORS_TEXT_MAX - used, "%s%zu", i > 0 ? ", " : "",
                                 tensor->shape[i]);
    if (used < SL_TENSORS_TEXT_MAX)
        snprintf(out + used, SL_TENSORS_TEXT_MAX - used, "]");
}

/* As it stands in the file, in one line. */
static void print_json(char out[SL_TENSORS_TEXT_MAX], const json_t *value) {
    char *text = value != NULL ? sl_json_text(value, JSON_ENCODE_ANY) : NULL;
    snprintf(out, SL_TENSORS_TEXT_MAX, "%s", text != NULL ? text : "none");
    free(text);
}

static bool has_shape(const json_t *shape, const sl_tensor *tensor) {
    if (!json_is_array(shape) || json_array_size(shape) != tensor->axes)
        return false;
    for (size_t i = 0; i < tensor->axes; i++) {
        const json_t *length = json_array_get(shape, i);
        if (!json_is_integer(length) || json_integer_value(length) < 0 ||
            (uint64_t)json_integer_value(length) != tensor->shape[i])
            return false;
    }
    return true;
}

static bool read_place(place *out, const json_t *offsets) {
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
        return false;
    *out = (place){(uint64_t)json_integer_value(begin), (uint64_t)json_integer_value(end)};
    return true;
}

static int find(place *out, const json_t *root, const sl_tensor *tensor,
                const sl_tensors_file *file, sl_error *error) {
    char theirs[SL_TENSORS_TEXT_MAX], ours[SL_TENSORS_TEXT_MAX];
    const json_t *entry = json_object_get(root, tensor->name),
                 *shape = json_object_get(entry, "shape"),
                 *offsets = json_object_get(entry, "data_offsets"),
                 *type = json_object_get(entry, "dtype");
    print_shape(ours, tensor);
    if (!json_is_object(entry))
        return sl_fail(error, SL_EFILE, "%s: has no tensor \"%s\"; the model's has shape %s",
                       file->where, tensor->name, ours);
    print_json(theirs, shape);
    if (!has_shape(shape, tensor))
        return sl_fail(error, SL_EFILE, "%s: tensor \"%s\": the file has shape %s, the model %s",
                       file->where, tensor->name, theirs, ours);
    print_json(theirs, type);
    if (!json_is_string(type) || strcmp(json_string_value(type), "F32") != 0)
        return sl_fail(error, SL_EFILE, "%s: tensor \"%s\": dtype is %s; it must be \"F32\"",
                       file->where, tensor->name, theirs);
    print_json(theirs, offsets);
    if (!read_place(out, offsets) ||
        out->end - out->begin != (uint64_t)sl_tensor_size(tensor) * sizeof(float))
        return sl_fail(error, SL_EFILE,
                       "%s: tensor \"%s\": data_offsets are %s, and must be %zu bytes apart",
                       file->where, tensor->name, theirs, sl_tensor_size(tensor) * sizeof(float));
    return 0;
}

static bool is_ours(const char *name, const sl_tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, tensors[i].name) == 0)
            return true;
    return false;
}

static int refuse_others(json_t *root, const sl_tensor *tensors, size_t count,
                         const sl_tensors_file *file, sl_error *error) {
    const char *name;
    json_t *entry;
    char shape[SL_TENSORS_TEXT_MAX];
    const size_t found = json_object_size(root) - (json_object_get(root, "__metadata__") != NULL);
    if (found == count)
        return 0;
    json_object_foreach(root, name, entry) {
        if (strcmp(name, "__metadata__") == 0 || is_ours(name, tensors, count))
            continue;
        print_json(shape, json_object_get(entry, "shape"));
        return sl_fail(error, SL_EFILE, "%s: tensor \"%.200s\" of shape %s: the model has no such",
                       file->where, name, shape);
    }
    return 0;
}

static int by_begin(const void *x, const void *y) {
    const place *a = x, *b = y;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Do the tensors fill all that is behind the header, without holes or overlaps? */
static int check_places(const place *places, size_t count, uint64_t bytes,
                        const sl_tensors_file *file, sl_error *error) {
    place *sorted = malloc((count + 1) * sizeof *sorted);
    if (sorted == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for %zu tensors", file->where, count);
    memcpy(sorted, places, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_begin);
    uint64_t end = 0;
    bool fits = true;
    for (size_t i = 0; i < count; i++) {
        fits = fits && sorted[i].begin == end;
        end = sorted[i].end;
    }
    free(sorted);
    if (fits && end == bytes)
        return 0;
    return sl_fail(error, SL_EFILE,
                   "%s: the tensors' data_offsets do not fill the %" PRIu64
                   " bytes behind the header%s",
                   file->where, bytes, fits && end > bytes ? "; is the file cut off?" : "");
}

static int read_numbers(float *x, const sl_tensor *tensors, const place *places, size_t count,
                        uint64_t data_at, const sl_tensors_file *file, sl_error *error) {
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        const size_t size = sl_tensor_size(&tensors[i]);
        result = sl_tensors_read_at(file, data_at + places[i].begin, x, size * sizeof *x, error);
        x += size;
    }
    return result;
}

static int read_header(json_t **root, uint64_t *data_at, const sl_tensors_file *file,
                       sl_error *error) {
    uint8_t bytes[LENGTH_BYTES];
    uint64_t length = 0;
    int result = sl_tensors_read_at(file, 0, bytes, sizeof bytes, error);
    for (int i = 0; i < LENGTH_BYTES; i++)
        length |= (uint64_t)bytes[i] << 8 * i;
    if (result != 0)
        return result;
    if (length > HEADER_MAX || length > file->bytes - LENGTH_BYTES)
        return sl_fail(error, SL_EFILE,
                       "%s: is neither a safetensors file nor a .npy file: its header would have "
                       "%" PRIu64 " bytes; allowed are %d, and the file has %" PRIu64,
                       file->where, length, HEADER_MAX, file->bytes);
    char *text = malloc((size_t)length + 1);
    if (text == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for its header", file->where);
    result = sl_tensors_read_at(file, LENGTH_BYTES, text, (size_t)length, error);
    if (result == 0)
        result = sl_json_parse(root, text, (size_t)length, 0, file->where, SL_EFILE, error);
    free(text);
    *data_at = LENGTH_BYTES + length;
    if (result == 0 && !json_is_object(*root)) {
        json_decref(*root);
        return sl_fail(error, SL_EFILE, "%s: its header is no JSON object", file->where);
    }
    return result;
}

int sl_safetensors_read(float *x, const sl_tensor *tensors, size_t count,
                        const sl_tensors_file *file, sl_error *error) {
    json_t *root;
    uint64_t data_at = 0;
    int result = read_header(&root, &data_at, file, error);
    if (result != 0)
        return result;
    place *places = calloc(count + 1, sizeof *places);
    if (places == NULL)
        result = sl_fail(error, SL_ENOMEM, "%s: out of memory for %zu tensors", file->where, count);
    for (size_t i = 0; i < count && result == 0; i++)
        result = find(&places[i], root, &tensors[i], file, error);
    if (result == 0)
        result = refuse_others(root, tensors, count, file, error);
    json_decref(root);
    if (result == 0)
        result = check_places(places, count, file->bytes - data_at, file, error);
    if (result == 0)
        result = read_numbers(x, tensors, places, count, data_at, file, error);
    free(places);
    return result;
}
