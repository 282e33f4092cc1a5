/* key_file.h - files that only their owner may read. */
#ifndef SL_KEY_FILE_H
#define SL_KEY_FILE_H

#include <stddef.h>

#include "starling/error.h"

enum { SL_KEY_PATH_MAX = 4096 };

/* Reads a secret file of at most `room` bytes: a regular one, this user's, that nobody else may
 * read, and no symbolic link. */
int sl_key_file_read(char *out, size_t room, size_t *bytes, const char *path, sl_error *error);
/* Writes a file that is not there yet, whole or not at all. mode: 0600 for a secret. */
int sl_key_file_write(const char *path, unsigned mode, const char *text, size_t bytes,
                      sl_error *error);

#endif
