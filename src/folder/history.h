/* history.h - what a run that goes on finds in a file of lines: what came before stays. */
#ifndef SL_HISTORY_H
#define SL_HISTORY_H

#include <stdint.h>

#include "folder/files.h"

/* Where a file's lines end to hold: each node's before a round of its own. */
typedef struct sl_line_ends {
    const uint64_t *rounds; /* (count) by node; lines of no node go by the first one */
    uint32_t count;
} sl_line_ends;

/* Takes every line of that round or later, or without an end, out of the file; one that is not
 * there stays so. Calls `each` (may be NULL) for those that stay, without their ends; other than 0
 * ends it. *bytes: what stays of the file. */
int sl_history_cut(sl_files *files, const char *path, sl_line_ends ends,
                   int (*each)(void *context, const char *line, size_t bytes, sl_error *error),
                   void *context, off_t *bytes, sl_error *error);
/* Calls `each` for all lines with an end, likewise; changes nothing. */
int sl_history_read(const char *path,
                    int (*each)(void *context, const char *line, size_t bytes, sl_error *error),
                    void *context, sl_error *error);

#endif
