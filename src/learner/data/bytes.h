/* bytes.h - a whole data file in memory, plain or gzip.
 *
 * Every reader of a data set parses one of these buffers and never a stream, so that a fuzzer hands
 * over bytes directly.
 */
#ifndef SL_LEARNER_BYTES_H
#define SL_LEARNER_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "starling/error.h"
#include "starling/types.h"

#define SL_BYTES_MAX ((size_t)2 << 30) /* of one file after decompression */

typedef struct sl_bytes {
    uint8_t *data;
    size_t size;
    char name[SL_PATH_MAX + 80]; /* of the file that was read, for errors */
} sl_bytes;

/* Reads `path`, decompressed when it is gzip. */
int sl_bytes_read(sl_bytes *out, const char *path, sl_error *error);
/* Reads folder/name or, where that is missing, folder/name.gz. */
int sl_bytes_find(sl_bytes *out, const char *folder, const char *name, sl_error *error);
void sl_bytes_close(sl_bytes *bytes);

#endif
