/* trace.h - what each node did when, as a file that Perfetto (ui.perfetto.dev) and chrome://tracing
 * show: `trace.json` of a simulation's run folder, `trace-RANK.json` of an agent's. A node is a
 * process of it; its gradients and waits are the first row, its messages to each other node a row
 * each, and so are messages from it, and an agent's own work. Times are in microseconds. */
#ifndef STARLING_TRACE_H
#define STARLING_TRACE_H

#include "starling/api.h"
#include "starling/error.h"
#include "starling/observer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_trace sl_trace;

/* Makes the file, or replaces it. Until it is closed, what is there can be read, too. origin_s is
 * added to all times. */
SL_API int sl_trace_open(sl_trace **out, const char *path, double origin_s, sl_error *error);
/* A failure is reported when the file is closed. */
SL_API void sl_trace_add(sl_trace *trace, const sl_span *span);
SL_API int sl_trace_close(sl_trace **trace, sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
