/* conduct.h - one run as `starling run` and `starling sim` show it: folder, first lines, final
 * table or what went wrong. */
#ifndef CONDUCT_H
#define CONDUCT_H

#include "run/board.h"

/* What a command does between the first lines and the last. */
typedef struct conducted {
    const char *driver, *peers, *manner; /* "sim", "nodes", ", simulated" */
    /* Runs to the end and finishes the board, whose folder is at `path`. */
    int (*run)(board *b, const char *path, sl_summary *summary, sl_error *error);
} conducted;

/* An exit code. */
int conduct(const conducted *what, const trial *t, const char *path);

#endif
