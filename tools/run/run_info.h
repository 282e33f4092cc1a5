/* run_info.h - run.json in the run folder: what was run, by which version, where and when.
 *
 *   {"driver", "version", "protocol", "host", "command": [...], "started", "ended", "outcome"}
 *
 * Times are UTC, ISO 8601. While the run goes on "ended" is null and "outcome" "running"; then the
 * outcome is "done", "failed" or "stopped". An agent started by hand writes run-RANK.json.
 */
#ifndef RUN_INFO_H
#define RUN_INFO_H

#include <stdint.h>
#include <time.h>

#include "cli/tool.h"

typedef struct run_info {
    char path[SL_PATH_MAX + 32]; /* path of the file; "": not begun, or ended */
    const char *driver;
    time_t started;
} run_info;

/* rank -1: the whole run. */
int run_info_begin(run_info *out, const char *folder, const char *driver, int64_t rank,
                   sl_error *error);
/* Does nothing if no run has begun. */
int run_info_end(run_info *info, const char *outcome, sl_error *error);

#endif
