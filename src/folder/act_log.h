/* act_log.h - acts of a node at its own times, in order, as lines: acts-<rank>.jsonl of a run
 * folder. Parts of a message that follow one another are one line.
 */
#ifndef SL_ACT_LOG_H
#define SL_ACT_LOG_H

#include "folder/files.h"
#include "starling/event_log.h"

typedef struct sl_act_log {
    char path[SL_EVENT_LOG_PATH_MAX];
    sl_lines lines;
    sl_act last; /* not written: the next one may go on with it */
    bool has_last;
} sl_act_log;

int sl_act_log_add(sl_act_log *log, sl_files *files, const sl_act *act, sl_error *error);
/* Writes all that has come. */
int sl_act_log_flush(sl_act_log *log, sl_files *files, sl_error *error);

#endif
