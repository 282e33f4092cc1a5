/* complain.h - exit codes, and the lines that say why. */
#ifndef COMPLAIN_H
#define COMPLAIN_H

#include <stdbool.h>
#include <string.h>

enum {
    TOOL_OK = 0,
    TOOL_FAILED = 1,       /* the run failed: a peer, the network, divergence, a disk */
    TOOL_USAGE = 2,        /* bad usage or bad input: nothing was started */
    TOOL_MINORITY = 3,     /* all rounds are done, by fewer than half of those that began */
    TOOL_SAVED = 75,       /* ended on request, after a checkpoint from which --resume goes on */
    TOOL_INTERRUPTED = 130 /* SIGINT, SIGTERM or SIGHUP; what was recorded so far is kept */
};

/* One line to stderr: "starling: ...". */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What a driver's notice begins with that is for standard error. */
#define WARNING "warning: "
enum { WARNING_LENGTH = sizeof WARNING - 1 };
static inline bool is_warning(const char *text) {
    return strncmp(text, WARNING, WARNING_LENGTH) == 0;
}

#endif
