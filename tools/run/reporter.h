/* reporter.h - an agent of `starling run` reports what happens to it, and is told the rest. */
#ifndef REPORTER_H
#define REPORTER_H

#include <pthread.h>

#include "run/agent_report.h"
#include "starling/trace.h"

typedef struct reporter {
    int fd;
    size_t dimension;
    pthread_mutex_t telling; /* one report at a time */
    double told_round;       /* when it last reported a round */
    sl_event_log *log;       /* in the run folder; borrowed, as the next one is */
    sl_trace *trace;         /* likewise; NULL: there is none */
} reporter;

#define REPORTER_OF(descriptor)                                                                    \
    { .fd = (descriptor), .telling = PTHREAD_MUTEX_INITIALIZER }

/* Of its agent, once `dimension` is there. Borrows the reporter. */
sl_observer reporter_observer(reporter *r);
/* Says where it listens, and waits for all others to. The caller closes the roster. SL_ESTOPPED:
 * nobody listens to it, or a signal asks to stop. */
int reporter_join(reporter *r, uint16_t port, sl_roster **out, sl_error *error);
/* The last report. result 0: it has trained to the end. Does not wait long if it has failed: the
 * error may then go to standard error. */
void reporter_end(reporter *r, int result, const sl_error *error);

#endif
