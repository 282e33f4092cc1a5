/* logbook.h - what an agent of the virtual world has put into its log of events, and whether that
 * makes sense: a replay relies on it. */
#ifndef SL_LOGBOOK_H
#define SL_LOGBOOK_H

#include "scenario.h"
#include "starling/agent.h"

typedef struct logbook {
    bool begun, ended, is_cut;
    bool down[NODES_MAX]; /* connections to these */
    uint64_t from, saved; /* the round that it went on from; the last that was saved */
    sl_log_kind last;
    sl_log_outcome outcome;
} logbook;

/* The next line of a process; the first one of another process of this rank is its start. */
void logbook_take(logbook *book, const sl_log_entry *entry, uint64_t rounds);
/* The process has ended with this code. */
void logbook_close(const logbook *book, uint32_t rank, int code);

#endif
