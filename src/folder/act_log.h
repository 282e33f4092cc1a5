/* act_log.h - acts of a node at its own times, in order, as lines: acts-<rank>.jsonl of a run
 * folder.
 */
#ifndef SL_ACT_LOG_H
#define SL_ACT_LOG_H

#include "folder/files.h"
#include "starling/event_log.h"

typedef struct sl_act_log {
    char path[SL_EVENT_LOG_PATH_MAX];
    sl_lines lines;
} sl_act_log;

/* The line is written when this returns. */
int sl_act_log_add(sl_act_log *log, sl_files *files, const sl_act *act, sl_error *error);

/* A process goes on from the checkpoint that was written before this view: the view's line, what
 * was done as it began, and all later lines go. */
int sl_act_log_cut(const sl_act_log *log, uint64_t view, sl_error *error);

#endif
