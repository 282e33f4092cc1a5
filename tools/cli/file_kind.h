/* file_kind.h - a glance at a file: is it an experiment or a topology? */
#ifndef FILE_KIND_H
#define FILE_KIND_H

#include <stdbool.h>

#include <jansson.h>

#include "starling/error.h"

/* What the file holds as JSON, new; NULL: it cannot be read. Its own reader then says why. */
json_t *glance_at_file(const char *path, size_t flags);

/* By its keys. A file that is neither counts as an experiment, whose loader says what is wrong. */
bool is_topology_file(const char *path);
/* SL_EINVAL, with the command that takes it, for a topology; 0 for anything else. */
int refuse_topology_file(const char *path, sl_error *error);

#endif
