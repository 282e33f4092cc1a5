/* tail.h - a file of lines that grows, read as far as it has come. */
#ifndef SL_TAIL_H
#define SL_TAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "starling/error.h"

enum { SL_TAIL_NAME_MAX = 48 };

typedef struct sl_tail {
    char name[SL_TAIL_NAME_MAX]; /* in the folder */
    uint32_t rank;               /* of its name; UINT32_MAX: none */
    ino_t inode;                 /* 0: not read yet */
    off_t at;                    /* behind the last whole line that was read */
    uint64_t lines;
} sl_tail;

/* Calls `each` for every whole line that has come since; what it returns other than 0 is returned.
 * *anew: the file is another one, or shorter, than the one that was read; nothing is called then.
 * A file that is not there has no lines. */
int sl_tail_read(sl_tail *tail, const char *folder, bool *anew,
                 int (*each)(void *context, const sl_tail *tail, const char *line, size_t bytes,
                             sl_error *error),
                 void *context, sl_error *error);

#endif
