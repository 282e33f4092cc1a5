/* run_info.h - run.json in the run folder: what was run, by which version, where and when.
 *
 *   {"outcome", "ended", "why", "processor_s", "peak_memory_bytes", "bytes_sent",
 *    "bytes_received", "diverged_in", "driver", "version", "protocol", "run_id",
 *    "resumed_from", "host", "started", "command": [...]}
 *
 * run_id is text: whose the run's checkpoints are. resumed_from is a round, or null. Times are UTC,
 * ISO 8601. While the run goes on "outcome" is "running", and "ended" is null; docs/outputs.md has
 * the others. What it has cost is of all its processes, since it began or went on; memory is that
 * of the largest. An agent started by hand writes run-RANK.json.
 *
 * The end is written in place, over spaces that the beginning has left: a full disk has room for
 * it, and so does a process that crashes (last_words.h). As long as the process lives, it holds the
 * file's lock (outcome.h).
 */
#ifndef RUN_INFO_H
#define RUN_INFO_H

#include <stdint.h>
#include <time.h>

#include "cli/outcome.h"

typedef struct run_info {
    char path[OUTCOME_PATH_MAX]; /* path of the file; "": not begun, or ended */
    int fd;
    const char *driver;
    time_t started;
    uint64_t run_id, resumed; /* resumed: the round; 0: from the beginning */
    uint64_t sent, received;  /* bytes of data, by its end */
    uint64_t diverged_in;     /* round; 0: it did not, or nobody knows */
} run_info;

/* rank -1: the whole run. `out` stays where it is until the end. */
int run_info_begin(run_info *out, const char *folder, const char *driver, int64_t rank,
                   const sl_checkpoints *checkpoints, sl_error *error);
bool run_info_is_there(const char *folder, int64_t rank);
/* The run_id that an earlier process has left, and the round that it went on from, 0: from the
 * beginning. *resumed (NULL: not asked). */
int run_info_read_id(uint64_t *out, uint64_t *resumed, const char *folder, int64_t rank,
                     sl_error *error);
/* why: a sentence; NULL: there is nothing to say. Does nothing if no run has begun. */
int run_info_end(run_info *info, const char *outcome, const char *why, sl_error *error);

#endif
