/* image.h - a node's state as the bytes of its file, in memory: what a driver copies between two
 * rounds, and another thread then writes.
 *
 * The file is safetensors: a head of JSON, padded with spaces to a fixed length, then the vectors.
 */
#ifndef SL_IMAGE_H
#define SL_IMAGE_H

#include "async/machine.h"
#include "starling/checkpoint.h"

/* What both sides of a file know. */
#define SL_IMAGE_FORMAT "starling checkpoint 1"
enum {
    SL_IMAGE_LENGTH_BYTES = 8,
    SL_VIEW_PIECES = 1 + SL_CHECKPOINT_RANKS_MAX / 64,
    SL_IMAGE_NUMBERS_MAX = 32 + SL_ALGORITHM_NUMBERS_MAX + SL_VIEW_PIECES,
    SL_IMAGE_HEAD_MAX = 1 << 24,
    SL_IMAGE_SUM_DIGITS = 16
};

/* A driver's own pieces, saved with the node's. */
typedef struct sl_image_extras {
    const sl_piece *pieces; /* (count) */
    size_t count;
} sl_image_extras;

/* A view's number and members as pieces. */
#define SL_VIEW_NAME "view"
void sl_checkpoint_view_pieces(sl_checkpoint_view *view, sl_piece out[SL_VIEW_PIECES]);

typedef struct sl_image {
    const sl_vec_ops *vec;
    sl_checkpoint_owner owner;
    uint64_t round;
    uint32_t rank;
    char *bytes;  /* (capacity) head, then vectors */
    bool borrows; /* they are the driver's */
    size_t capacity, head_bytes, vectors, vector_bytes;
    char (*names)[SL_PIECE_NAME_MAX]; /* (vectors_max) */
    size_t vectors_max;
    char numbers[SL_IMAGE_NUMBERS_MAX][SL_PIECE_NAME_MAX + 48]; /* "\"state.round\":\"12\"" */
    size_t number_count;
} sl_image;

size_t sl_image_vectors(const sl_machine *node);
/* What an image of so many vectors takes; all of it, once it is sealed, if it has as many. */
size_t sl_image_bytes(size_t vectors, uint64_t dimension);
/* Room for up to so many vectors. memory (sl_image_bytes): where the image is to be, borrowed;
 * NULL: it has its own, all of which is touched, so that no copy pays for fresh pages. */
int sl_image_open(sl_image *image, size_t vectors, void *memory, const sl_vec_ops *vec,
                  const sl_checkpoint_owner *owner, sl_error *error);
void sl_image_close(sl_image *image);
/* One copy of the state after the node's last round, or as it rests. */
void sl_image_take(sl_image *image, const sl_machine *node, uint32_t rank,
                   const sl_image_extras *extras);
/* Writes the head, with the checksums; returns the bytes of the file. */
size_t sl_image_seal(sl_image *image);

#endif
