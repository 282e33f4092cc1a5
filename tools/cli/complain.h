/* complain.h - exit codes, the lines that say why, and lines that quote what others wrote. */
#ifndef COMPLAIN_H
#define COMPLAIN_H

#include <stdbool.h>
#include <string.h>

#include "cli/shown.h"

enum {
    TOOL_OK = 0,
    TOOL_FAILED = 1,       /* the run failed: a peer, the network, divergence, a disk */
    TOOL_USAGE = 2,        /* bad usage or bad input: nothing was started */
    TOOL_INCOMPLETE = 3,   /* some did not come to the end, and had not left on request */
    TOOL_SAVED = 75,       /* ended on request, after a checkpoint from which --resume goes on */
    TOOL_INTERRUPTED = 130 /* SIGINT, SIGTERM or SIGHUP; what was recorded so far is kept */
};

/* One line to stderr: "starling: ...". Whatever it quotes, a terminal obeys nothing of it. With
 * --log json an object, as tell_line's. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One line to stdout, likewise: each line that holds a text from a file, a stranger or the
 * environment. */
void tell_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What a driver's notice begins with that is for standard error. */
#define WARNING "warning: "
enum { WARNING_LENGTH = sizeof WARNING - 1 };
static inline bool is_warning(const char *text) {
    return strncmp(text, WARNING, WARNING_LENGTH) == 0;
}

#endif
