/* event_log.h - the log of events in a run folder: a line of JSON for each.
 *
 *   events-<rank>.jsonl  of an agent; events.jsonl: of the simulator, all nodes in one file
 *   acts-<rank>.jsonl    what an agent's node, which goes at its own times, has applied
 *
 * A line is there when sl_event_log_write returns, so that whatever ends the process leaves all
 * events before it. It is not synced: a host that loses power may lose the last ones.
 * docs/outputs.md describes each kind and field. */
#ifndef STARLING_EVENT_LOG_H
#define STARLING_EVENT_LOG_H

#include <stdint.h>

#include "starling/api.h"
#include "starling/experiment.h"
#include "starling/observer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_event_log sl_event_log;

enum { SL_EVENT_LOG_PATH_MAX = SL_PATH_MAX + 32 };

/* Where the log of `rank` is, or for rank -1 the simulator's. */
SL_API void sl_event_log_path(char out[SL_EVENT_LOG_PATH_MAX], const char *folder, int64_t rank);

/* Opens no file yet. `notice` is told once that a line could not be written. */
SL_API int sl_event_log_open(sl_event_log **out, const char *folder, int64_t rank,
                             void (*notice)(void *context, const char *text), void *context,
                             sl_error *error);
/* Appends a line, to the log that an earlier process has begun if there is one. From any thread. A
 * line that cannot be written is told, and never ends a run. */
SL_API void sl_event_log_write(sl_event_log *log, const sl_log_entry *entry);
/* Into acts-<rank>.jsonl; likewise. */
SL_API void sl_event_log_act(sl_event_log *log, const sl_act *act);
SL_API void sl_event_log_close(sl_event_log **log);

/* Reads the file line by line: calls `each` for every entry, until it returns other than 0, which
 * is returned, with file and line before its text. `line` counts from 1. SL_EFILE names file, line
 * and field, or a process that still writes to it. *torn (may be NULL): its last line has no end,
 * as a process that was killed leaves it, and is left out. */
SL_API int sl_event_log_read(const char *path,
                             int (*each)(void *context, uint64_t line, const sl_log_entry *entry,
                                         sl_error *error),
                             void *context, bool *torn, sl_error *error);

SL_API void sl_act_log_path(char out[SL_EVENT_LOG_PATH_MAX], const char *folder, uint32_t rank);
/* All whole lines; none, if there is no file. The caller frees them with sl_acts_free. SL_EFILE
 * names file and line. */
SL_API int sl_act_log_read(sl_act **out, size_t *count, const char *path, sl_error *error);
SL_API void sl_acts_free(sl_act *acts, size_t count);

#ifdef __cplusplus
}
#endif
#endif
