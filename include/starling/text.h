/* text.h - text files, as all of Starling reads them. */
#ifndef STARLING_TEXT_H
#define STARLING_TEXT_H

#include <stddef.h>

#include "starling/api.h"
#include "starling/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a file as NUL-terminated text, malloc'ed. It may be packed by gzip, begin with a byte order
 * mark and have the line ends of Windows: *out has none of these. SL_EFILE names the path: it
 * cannot be read, is no regular file, has more than bytes_max bytes, is UTF-16, holds a NUL, or is
 * packed otherwise, with the command that helps. */
SL_API int sl_text_read(char **out, const char *path, size_t bytes_max, sl_error *error);
/* The same of any file: *bytes as they are once unpacked, and a 0 behind them. */
SL_API int sl_file_read(char **out, size_t *bytes, const char *path, size_t bytes_max,
                        sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
