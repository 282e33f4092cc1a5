/* file_kind.h - is a file an experiment or a topology? */
#ifndef FILE_KIND_H
#define FILE_KIND_H

#include <stdbool.h>

/* By its keys. A file that is neither counts as an experiment, whose loader says what is wrong. */
bool is_topology_file(const char *path);

#endif
