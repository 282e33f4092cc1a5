/* image.c - see image.h. */
#include "checkpoint/image.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/round_up.h"
#include "starling/version.h"
#include "wire/checksum.h"

enum { HEAD_FIXED = 8192, HEAD_A_VECTOR = 256, PAGE = 4096 };

size_t sl_image_vectors(const sl_machine *node) {
    size_t count = 0;
    sl_piece p;
    for (size_t i = 0; sl_machine_piece(node, i, &p); i++)
        count += p.vector != NULL;
    return count;
}

static size_t head_bytes(size_t vectors) {
    return sl_round_up(HEAD_FIXED + vectors * HEAD_A_VECTOR, PAGE);
}

size_t sl_image_bytes(size_t vectors, uint64_t dimension) {
    return head_bytes(vectors) + vectors * (size_t)dimension * sizeof(float);
}

int sl_image_open(sl_image *out, size_t vectors, void *memory, const sl_vec_ops *vec,
                  const sl_checkpoint_owner *owner, sl_error *error) {
    sl_image image = {.vec = vec,
                      .owner = *owner,
                      .bytes = memory,
                      .borrows = memory != NULL,
                      .vectors_max = vectors};
    image.vector_bytes = (size_t)owner->dimension * sizeof(float);
    image.head_bytes = head_bytes(vectors);
    image.capacity = sl_image_bytes(vectors, owner->dimension);
    if (memory == NULL)
        image.bytes = aligned_alloc(PAGE, sl_round_up(image.capacity, PAGE));
    image.names = calloc(vectors, sizeof *image.names);
    if (image.bytes == NULL || image.names == NULL) {
        sl_image_close(&image);
        return sl_fail(error, SL_ENOMEM,
                       "checkpoint: out of memory for a copy of %zu vectors of %" PRIu64
                       " parameters (checkpoint.every 0 does without)",
                       vectors, owner->dimension);
    }
    if (memory == NULL)
        memset(image.bytes, ' ', image.capacity);
    *out = image;
    return 0;
}

void sl_image_close(sl_image *image) {
    if (!image->borrows)
        free(image->bytes);
    free(image->names);
    image->bytes = NULL;
    image->names = NULL;
}

void sl_checkpoint_view_pieces(sl_checkpoint_view *view, sl_piece out[SL_VIEW_PIECES]) {
    out[0] = (sl_piece){.name = SL_VIEW_NAME, .whole = &view->number};
    for (int i = 1; i < SL_VIEW_PIECES; i++) {
        out[i] = (sl_piece){.whole = &view->members[i - 1]};
        snprintf(out[i].name, sizeof out[i].name, SL_VIEW_NAME ".members.%d", i - 1);
    }
}

static char *vector_at(const sl_image *image, size_t index) {
    return image->bytes + image->head_bytes + index * image->vector_bytes;
}

/* 17 digits bring a double back bit for bit. */
static void take_number(sl_image *image, const sl_piece *p) {
    char *out = image->numbers[image->number_count++];
    assert(image->number_count <= SL_IMAGE_NUMBERS_MAX);
    const size_t room = sizeof *image->numbers;
    if (p->whole != NULL)
        snprintf(out, room, "\"state.%s\":\"%" PRIu64 "\"", p->name, *p->whole);
    else
        snprintf(out, room, "\"state.%s\":\"%.17g\"", p->name, *p->real);
    if (strcmp(p->name, "round") == 0)
        image->round = *p->whole;
}

static void take_vector(sl_image *image, const sl_piece *p) {
    assert(image->vectors < image->vectors_max);
    memcpy(image->names[image->vectors], p->name, sizeof p->name);
    image->vec->copy_out(vector_at(image, image->vectors++), p->vector, image->vector_bytes);
}

static void take_piece(sl_image *image, const sl_piece *p) {
    if (p->vector != NULL)
        take_vector(image, p);
    else
        take_number(image, p);
}

void sl_image_take(sl_image *image, const sl_machine *node, uint32_t rank,
                   const sl_image_extras *extras) {
    image->rank = rank;
    image->vectors = image->number_count = 0;
    sl_piece p;
    for (size_t i = 0; sl_machine_piece(node, i, &p); i++)
        take_piece(image, &p);
    for (size_t i = 0; i < extras->count; i++)
        take_piece(image, &extras->pieces[i]);
}

/* ---- the head ---- */

typedef struct text {
    char *at, *end;
} text;

static void print(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void print(text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int bytes = vsnprintf(t->at, (size_t)(t->end - t->at), format, arguments);
    va_end(arguments);
    assert(bytes >= 0 && bytes < t->end - t->at);
    t->at += bytes;
}

static void print_metadata(text *t, const sl_image *image) {
    print(t, "\"format\":\"" SL_IMAGE_FORMAT "\",\"version\":\"%s\",\"rank\":\"%u\"", sl_version(),
          image->rank);
#define PRINT_OWNER(name, meaning) print(t, ",\"" #name "\":\"%" PRIu64 "\"", image->owner.name);
    SL_CHECKPOINT_OWNERS(PRINT_OWNER)
#undef PRINT_OWNER
    for (size_t i = 0; i < image->number_count; i++)
        print(t, ",%s", image->numbers[i]);
    for (size_t i = 0; i < image->vectors; i++)
        print(t, ",\"sum.%s\":\"%016" PRIx64 "\"", image->names[i],
              sl_checksum(vector_at(image, i), image->vector_bytes));
}

/* The head's own sum stands in it, and is taken with zeros in its place. */
size_t sl_image_seal(sl_image *image) {
    text t = {image->bytes + SL_IMAGE_LENGTH_BYTES, image->bytes + image->head_bytes};
    const size_t length = image->head_bytes - SL_IMAGE_LENGTH_BYTES;
    memset(t.at, ' ', length);
    for (int i = 0; i < SL_IMAGE_LENGTH_BYTES; i++)
        image->bytes[i] = (char)(length >> 8 * i);
    print(&t, "{\"__metadata__\":{\"sum\":\"");
    char *sum = t.at;
    print(&t, "0000000000000000\",");
    print_metadata(&t, image);
    print(&t, "}");
    for (size_t i = 0; i < image->vectors; i++)
        print(&t, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}",
              image->names[i], image->vector_bytes / sizeof(float), i * image->vector_bytes,
              (i + 1) * image->vector_bytes);
    print(&t, "}");
    *t.at = ' '; /* where the last print has put its zero */
    char digits[SL_IMAGE_SUM_DIGITS + 1];
    snprintf(digits, sizeof digits, "%016" PRIx64, sl_checksum(image->bytes, image->head_bytes));
    memcpy(sum, digits, SL_IMAGE_SUM_DIGITS);
    return image->head_bytes + image->vectors * image->vector_bytes;
}
