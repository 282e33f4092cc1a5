/* run_info.h - run.json in the run folder: what was run, by which version, where and when.
 *
 *   {"driver", "version", "protocol", "run_id", "resumed_from", "host", "command": [...],
 * "started", "ended", "outcome", "processor_s", "peak_memory_bytes", "bytes_sent",
 * "bytes_received"}
 *
 * run_id is text: whose the run's checkpoints are. resumed_from is a round, or null.
 * Times are UTC, ISO 8601. While the run goes on "ended" is null and "outcome" "running"; then the
 * outcome is "done", "failed", "stopped", "saved": ended after a checkpoint, or "left". What it has
 * cost is of all its processes, since it began or went on; memory is that of the largest. An agent
 * started by hand writes run-RANK.json.
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
    uint64_t run_id, resumed; /* resumed: the round; 0: from the beginning */
    uint64_t sent, received;  /* bytes of data, by its end */
} run_info;

/* rank -1: the whole run. */
int run_info_begin(run_info *out, const char *folder, const char *driver, int64_t rank,
                   const sl_checkpoints *checkpoints, sl_error *error);
bool run_info_is_there(const char *folder, int64_t rank);
/* The run_id that an earlier process has left, and the round that it went on from, 0: from the
 * beginning. *resumed (NULL: not asked). */
int run_info_read_id(uint64_t *out, uint64_t *resumed, const char *folder, int64_t rank,
                     sl_error *error);
/* Does nothing if no run has begun. */
int run_info_end(run_info *info, const char *outcome, sl_error *error);

#endif
