/* regular.h - opens what is read, and all of it: regular files. A pipe would be waited for, and a
 * device need not end. */
#ifndef SL_REGULAR_H
#define SL_REGULAR_H

#include <sys/stat.h>

#include "starling/error.h"

/* A descriptor to read from, with these flags of open(2) beside. SL_EFILE: there is none, and errno
 * says why; EINVAL: it is something else, which the error names. */
int sl_regular_open(const char *path, int flags, struct stat *status, sl_error *error);

#endif
