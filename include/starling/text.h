/* text.h - text from outside: files, as all of Starling reads them; and what strangers, files and
 * the environment say, as all of Starling shows it. */
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

/* Opens a file to read as it is: a descriptor, to be closed. SL_EFILE, and errno says why; EINVAL:
 * it is no regular file but a folder, a pipe, a socket or a device, which nothing of Starling
 * reads. */
SL_API int sl_file_open(const char *path, sl_error *error);

/* Text of whoever wrote it, for one line of a terminal or a log: control characters (those of C1,
 * too), what turns the order of characters around, and bytes that are no UTF-8 become \x1b. Of what
 * is longer than room - 1 bytes the middle is left out ("..."). room: at least 4. What was shown
 * once may be shown again. Returns out. Errors (error.h) are shown so as a whole. */
SL_API char *sl_text_show(char *out, size_t room, const char *text, size_t bytes);

/* What was typed, with its numbers as JSON has them: .05, 5. and +1 become 0.05, 5.0 and 1, also in
 * lists; quoted text stays. malloc'ed; NULL: out of memory. */
SL_API char *sl_text_typed(const char *text);

#ifdef __cplusplus
}
#endif
#endif
