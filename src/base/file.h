/* file.h - a whole file in memory. */
#ifndef SL_FILE_H
#define SL_FILE_H

#include <stddef.h>

#include "starling/error.h"

/* Reads a file as text: NUL-terminated, malloc'ed. Refuses folders, NUL bytes and files of more
 * than bytes_max; the error names the path. */
int sl_file_read(char **out, const char *path, size_t bytes_max, sl_error *error);

#endif
