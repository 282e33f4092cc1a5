/* file.h - a whole file in memory. */
#ifndef SL_FILE_H
#define SL_FILE_H

#include <stddef.h>

#include "starling/error.h"

/* The text of a file, NUL-terminated, malloc'ed; refuses folders, NUL bytes and files above
 * bytes_max, naming the path. */
int sl_file_read(char **out, const char *path, size_t bytes_max, sl_error *error);

#endif
