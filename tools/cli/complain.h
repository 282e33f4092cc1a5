/* complain.h - exit codes, and the lines that say why. */
#ifndef COMPLAIN_H
#define COMPLAIN_H

enum {
    TOOL_OK = 0,
    TOOL_FAILED = 1,       /* the run failed: a peer, the network, divergence, a disk */
    TOOL_USAGE = 2,        /* bad usage or bad input: nothing was started */
    TOOL_SAVED = 75,       /* ended on request, after a checkpoint from which --resume goes on */
    TOOL_INTERRUPTED = 130 /* SIGINT, SIGTERM or SIGHUP; what was recorded so far is kept */
};

/* One line to stderr: "starling: ...". */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
