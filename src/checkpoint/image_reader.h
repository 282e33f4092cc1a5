/* image_reader.h - the bytes of an image, read back: from a file, or from memory.
 *
 * They are believed piece by piece: first that they are as many as the head says, then the head, by
 * its own sum, then whom it belongs to, then each vector, by its sum. Bounds come before memory.
 * SL_EFILE names the source, field or tensor, and place.
 */
#ifndef SL_IMAGE_READER_H
#define SL_IMAGE_READER_H

#include <jansson.h>

#include "checkpoint/image.h"

typedef struct sl_image_source {
    const char *name;   /* what errors call it; borrowed */
    int handle;         /* of a file (base/disk.h) */
    const void *memory; /* (bytes) in its place, borrowed; NULL: the file */
    uint64_t bytes;
} sl_image_source;

typedef struct sl_image_reader {
    sl_image_source source;
    uint64_t data_at;
    json_t *root, *metadata;
} sl_image_reader;

/* Reads the head. */
int sl_image_reader_open(sl_image_reader *out, const sl_image_source *source, sl_error *error);
void sl_image_reader_close(sl_image_reader *reader);

/* A text of the head; NULL: it has none of that name. */
const char *sl_image_reader_field(const sl_image_reader *reader, const char *name);
/* Does the head say this number? `meaning` is what a refusal calls it. */
int sl_image_reader_expect(const sl_image_reader *reader, const char *name, const char *meaning,
                           uint64_t value, sl_error *error);
int sl_image_reader_expect_owner(const sl_image_reader *reader, const sl_checkpoint_owner *owner,
                                 sl_error *error);
/* Fills a piece that is a number. */
int sl_image_reader_number(const sl_image_reader *reader, const sl_piece *piece, sl_error *error);
/* Reads one vector into out (size), and holds it against its sum. */
int sl_image_reader_vector(const sl_image_reader *reader, const char *name, float *out,
                           uint64_t size, sl_error *error);
/* Reads all vectors, and holds them against their sums. */
int sl_image_reader_check(const sl_image_reader *reader, sl_error *error);
/* Fills a new node of that dimension, before START, and the extras that the image was taken with.
 * view_begins: without what the view gives anew. After an error the node can only be closed. */
int sl_image_reader_load(const sl_image_reader *reader, uint64_t dimension, const sl_machine *node,
                         bool view_begins, const sl_vec_ops *vec, const sl_image_extras *extras,
                         sl_error *error);

#endif
