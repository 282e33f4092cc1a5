/* bytes.h - a whole file in memory, plain or gzip, as bytes or as text.
 *
 * All files that people hand to Starling are read here. A parser takes one of these buffers and
 * never a stream, so that a fuzzer hands over bytes directly.
 */
#ifndef SL_BYTES_H
#define SL_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "starling/error.h"
#include "starling/types.h"

#define SL_BYTES_MAX ((size_t)2 << 30) /* of one file after decompression */

typedef struct sl_bytes {
    uint8_t *data; /* (size), and a 0 behind them */
    size_t size;
    char name[SL_PATH_MAX + 80]; /* of the file that was read, for errors */
} sl_bytes;

/* Reads a regular file of at most bytes_max, decompressed when it is gzip. Other packed files are
 * refused, with the command that unpacks them. */
int sl_bytes_read(sl_bytes *out, const char *path, size_t bytes_max, sl_error *error);
/* The same of a text; see sl_bytes_to_text(). */
int sl_bytes_read_text(sl_bytes *out, const char *path, size_t bytes_max, sl_error *error);
/* As sl_bytes_read, but packed in another way than gzip it stays so. */
int sl_bytes_read_packed(sl_bytes *out, const char *path, size_t bytes_max, sl_error *error);
/* SL_EFILE: they are packed so; the text says what unpacks them. */
int sl_bytes_refuse_packed(const sl_bytes *bytes, sl_error *error);
void sl_bytes_close(sl_bytes *bytes);

/* In place: without a byte order mark, and with LF for the line ends of Windows and old Macs.
 * SL_EFILE: it is UTF-16. Bytes need not be UTF-8, and may be 0. */
int sl_bytes_to_text(sl_bytes *bytes, sl_error *error);
/* The same as NUL-terminated text of the caller's; closes `bytes` in any case. SL_EFILE: there is a
 * NUL in it. */
int sl_bytes_take_string(char **out, sl_bytes *bytes, sl_error *error);

#endif
