/* image_reader.c - see image_reader.h. */
#include "checkpoint/image_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/disk.h"
#include "base/json.h"
#include "vec/finite.h"
#include "wire/checksum.h"

typedef sl_image_reader reader;

/* ---- bytes ---- */

/* [at, at + bytes) into out. 0, or the reason as a number of errno.h; ENODATA: the source ends
 * before. */
static int read_bytes(const reader *r, uint64_t at, void *out, size_t bytes) {
    const sl_image_source *s = &r->source;
    if (s->memory == NULL)
        return sl_disk_read(s->handle, at, out, bytes);
    if (at > s->bytes || bytes > s->bytes - at)
        return ENODATA;
    memcpy(out, (const char *)s->memory + at, bytes);
    return 0;
}

static int refuse_read(const reader *r, int why, const char *what, sl_error *error) {
    if (why == ENODATA)
        return sl_fail(error, SL_EFILE, "%s: is cut short: its %" PRIu64 " bytes end within %s",
                       r->source.name, r->source.bytes, what);
    return sl_fail(error, SL_EFILE, "%s: %s cannot be read: %s", r->source.name, what,
                   strerror(why));
}

/* ---- the head ---- */

static int read_length(const reader *r, size_t *length, sl_error *error) {
    uint8_t bytes[SL_IMAGE_LENGTH_BYTES];
    int why = read_bytes(r, 0, bytes, sizeof bytes);
    if (why != 0)
        return refuse_read(r, why, "its length", error);
    uint64_t n = 0;
    for (int i = 0; i < SL_IMAGE_LENGTH_BYTES; i++)
        n |= (uint64_t)bytes[i] << 8 * i;
    if (n > SL_IMAGE_HEAD_MAX || n > r->source.bytes - sizeof bytes)
        return sl_fail(error, SL_EFILE,
                       "%s: is cut short or no checkpoint: its head would have %" PRIu64
                       " bytes, of %" PRIu64 " in all",
                       r->source.name, n, r->source.bytes);
    *length = (size_t)n;
    return 0;
}

static const char *field(const reader *r, const char *name) {
    return json_string_value(json_object_get(r->metadata, name));
}

const char *sl_image_reader_field(const reader *r, const char *name) {
    return field(r, name);
}

/* The head's sum, with zeros in its own place. */
static int check_sum(const reader *r, char *head, size_t bytes, sl_error *error) {
    char digits[SL_IMAGE_SUM_DIGITS + 1] = "", *place;
    const char *said = field(r, "sum");
    if (said != NULL && strlen(said) == SL_IMAGE_SUM_DIGITS &&
        (place = memmem(head, bytes, said, SL_IMAGE_SUM_DIGITS)) != NULL) {
        memset(place, '0', SL_IMAGE_SUM_DIGITS);
        snprintf(digits, sizeof digits, "%016" PRIx64, sl_checksum(head, bytes));
    }
    if (said != NULL && strcmp(said, digits) == 0)
        return 0;
    return sl_fail(error, SL_EFILE, "%s: its head (%zu bytes) differs from its checksum",
                   r->source.name, bytes);
}

static int parse_head(reader *r, char *head, size_t bytes, sl_error *error) {
    int result = sl_json_parse(&r->root, head + SL_IMAGE_LENGTH_BYTES,
                               bytes - SL_IMAGE_LENGTH_BYTES, 0, r->source.name, SL_EFILE, error);
    if (result != 0)
        return result;
    r->metadata = json_object_get(r->root, "__metadata__");
    const char *format = field(r, "format");
    if (format == NULL || strcmp(format, SL_IMAGE_FORMAT) != 0)
        return sl_fail(error, SL_EFILE, "%s: is \"%.60s\"; this program reads \"%s\"",
                       r->source.name, format != NULL ? format : "of no format", SL_IMAGE_FORMAT);
    return check_sum(r, head, bytes, error);
}

static int read_head(reader *r, sl_error *error) {
    size_t length = 0;
    int result = read_length(r, &length, error);
    if (result != 0)
        return result;
    r->data_at = SL_IMAGE_LENGTH_BYTES + length;
    char *head = malloc((size_t)r->data_at);
    if (head == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for its head", r->source.name);
    int why = read_bytes(r, 0, head, (size_t)r->data_at);
    result = why != 0 ? refuse_read(r, why, "its head", error)
                      : parse_head(r, head, (size_t)r->data_at, error);
    free(head);
    return result;
}

int sl_image_reader_open(reader *out, const sl_image_source *source, sl_error *error) {
    reader r = {.source = *source};
    int result = read_head(&r, error);
    if (result != 0)
        sl_image_reader_close(&r);
    else
        *out = r;
    return result;
}

void sl_image_reader_close(reader *r) {
    json_decref(r->root);
    r->root = NULL;
}

/* ---- whom it belongs to ---- */

static bool whole_is(const char *text, uint64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    return text != NULL && strcmp(text, digits) == 0;
}

int sl_image_reader_expect(const reader *r, const char *name, const char *meaning, uint64_t value,
                           sl_error *error) {
    const char *said = field(r, name);
    if (whole_is(said, value))
        return 0;
    return sl_fail(error, SL_EFILE, "%s: is of another %s: %.40s, here %" PRIu64, r->source.name,
                   meaning, said != NULL ? said : "none", value);
}

int sl_image_reader_expect_owner(const reader *r, const sl_checkpoint_owner *owner,
                                 sl_error *error) {
    int result = 0;
#define CHECK_OWNER(name, meaning)                                                                 \
    if (result == 0)                                                                               \
        result = sl_image_reader_expect(r, #name, meaning, owner->name, error);
    SL_CHECKPOINT_OWNERS(CHECK_OWNER)
#undef CHECK_OWNER
    return result;
}

/* ---- vectors ---- */

/* Where a tensor begins; its numbers are [0, size) of one axis. */
static int find_tensor(const reader *r, const char *name, uint64_t size, uint64_t *at,
                       sl_error *error) {
    const json_t *entry = json_object_get(r->root, name),
                 *offsets = json_object_get(entry, "data_offsets"),
                 *shape = json_object_get(entry, "shape");
    if (entry == NULL)
        return sl_fail(error, SL_EFILE, "%s: has no tensor \"%s\"", r->source.name, name);
    const json_int_t begin = json_integer_value(json_array_get(offsets, 0)),
                     end = json_integer_value(json_array_get(offsets, 1)),
                     length = json_integer_value(json_array_get(shape, 0));
    if (begin < 0 || (uint64_t)length != size || json_array_size(shape) != 1 ||
        (uint64_t)(end - begin) != size * sizeof(float))
        return sl_fail(error, SL_EFILE,
                       "%s: tensor \"%s\" has %lld numbers at [%lld, %lld); it must have %" PRIu64,
                       r->source.name, name, (long long)length, (long long)begin, (long long)end,
                       size);
    *at = r->data_at + (uint64_t)begin;
    if (*at + size * sizeof(float) > r->source.bytes)
        return sl_fail(error, SL_EFILE,
                       "%s: is cut short: tensor \"%s\" ends at byte %" PRIu64 " of %" PRIu64,
                       r->source.name, name, *at + size * sizeof(float), r->source.bytes);
    return 0;
}

static int check_numbers(const reader *r, const char *name, const float *v, uint64_t size,
                         uint64_t at, sl_error *error) {
    char key[SL_PIECE_NAME_MAX + 8], digits[SL_IMAGE_SUM_DIGITS + 1];
    snprintf(key, sizeof key, "sum.%s", name);
    snprintf(digits, sizeof digits, "%016" PRIx64, sl_checksum(v, size * sizeof *v));
    const char *said = field(r, key);
    if (said == NULL || strcmp(said, digits) != 0)
        return sl_fail(error, SL_EFILE,
                       "%s: tensor \"%s\", bytes %" PRIu64 " to %" PRIu64
                       ", differs from its checksum",
                       r->source.name, name, at, at + size * sizeof *v);
    if (sl_vec_is_finite(v, size))
        return 0;
    uint64_t i = 0;
    while (isfinite(v[i]))
        i++;
    return sl_fail(error, SL_EFILE,
                   "%s: tensor \"%s\", number %" PRIu64 " at byte %" PRIu64 " is %g",
                   r->source.name, name, i, at + i * sizeof *v, (double)v[i]);
}

static int read_tensor(const reader *r, const char *name, float *out, uint64_t size,
                       sl_error *error) {
    uint64_t at = 0;
    int result = find_tensor(r, name, size, &at, error);
    if (result != 0)
        return result;
    int why = read_bytes(r, at, out, size * sizeof *out);
    return why != 0 ? refuse_read(r, why, name, error)
                    : check_numbers(r, name, out, size, at, error);
}

int sl_image_reader_vector(const reader *r, const char *name, float *out, uint64_t size,
                           sl_error *error) {
    return read_tensor(r, name, out, size, error);
}

/* ---- loading ---- */

int sl_image_reader_number(const reader *r, const sl_piece *p, sl_error *error) {
    char key[SL_PIECE_NAME_MAX + 8], *end = NULL;
    snprintf(key, sizeof key, "state.%s", p->name);
    const char *text = field(r, key);
    if (text != NULL && p->whole != NULL)
        *p->whole = strtoull(text, &end, 10);
    else if (text != NULL)
        *p->real = strtod(text, &end);
    return end != NULL && end != text && *end == '\0'
               ? 0
               : sl_fail(error, SL_EFILE, "%s: %s is %.40s; it must be a number", r->source.name,
                         key, text != NULL ? text : "missing");
}

static int load_vector(const reader *r, const sl_piece *p, uint64_t size, const sl_vec_ops *vec,
                       sl_error *error) {
    const size_t bytes = (size_t)size * sizeof(float);
    if (vec->on_host)
        return read_tensor(r, p->name, p->vector, size, error);
    float *copy = vec->allocate_host(bytes);
    if (copy == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of host memory for tensor \"%s\"", r->source.name,
                       p->name);
    int result = read_tensor(r, p->name, copy, size, error);
    if (result == 0)
        vec->copy_in(p->vector, copy, bytes);
    vec->release_host(copy);
    return result;
}

static int load_piece(const reader *r, const sl_piece *p, uint64_t size, const sl_vec_ops *vec,
                      sl_error *error) {
    return p->vector != NULL ? load_vector(r, p, size, vec, error)
                             : sl_image_reader_number(r, p, error);
}

int sl_image_reader_load(const reader *r, uint64_t dimension, const sl_machine *node,
                         bool view_begins, const sl_vec_ops *vec, const sl_image_extras *extras,
                         sl_error *error) {
    int result = 0;
    size_t vectors = 0;
    sl_piece p;
    for (size_t i = 0; result == 0 && sl_machine_piece(node, i, &p); i++) {
        if (p.of_view && view_begins)
            continue;
        vectors += p.vector != NULL;
        result = load_piece(r, &p, dimension, vec, error);
    }
    for (size_t i = 0; result == 0 && i < extras->count; i++) {
        vectors += extras->pieces[i].vector != NULL;
        result = load_piece(r, &extras->pieces[i], dimension, vec, error);
    }
    if (result == 0 && !view_begins && json_object_size(r->root) != vectors + 1)
        result = sl_fail(error, SL_EFILE, "%s: has %zu tensors; this node has %zu", r->source.name,
                         json_object_size(r->root) - 1, vectors);
    return result;
}

/* ---- checking ---- */

int sl_image_reader_check(const reader *r, sl_error *error) {
    const char *said = field(r, "dimension"), *name;
    const uint64_t size = said != NULL ? strtoull(said, NULL, 10) : 0;
    if (size == 0 || size > r->source.bytes / sizeof(float))
        return sl_fail(error, SL_EFILE,
                       "%s: is cut short: it has %" PRIu64 " bytes for vectors of %.20s numbers",
                       r->source.name, r->source.bytes, said != NULL ? said : "no");
    float *v = malloc(size * sizeof *v);
    if (v == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for a vector", r->source.name);
    int result = 0;
    json_t *entry;
    json_object_foreach(r->root, name, entry) {
        if (result == 0 && entry != r->metadata)
            result = read_tensor(r, name, v, size, error);
    }
    free(v);
    return result;
}
