/* outcome.h - how runs have ended, as their files say: run.json, or run-RANK.json of agents by
 * hand, in the run folder.
 *
 * A process of a run holds the lock of its file (flock) as long as it lives. A file that says that
 * its run goes on, and that nobody holds, is of a process that is gone without a word: killed, or
 * with its host. */
#ifndef OUTCOME_H
#define OUTCOME_H

#include <stdint.h>

#include "cli/tool.h"

enum { OUTCOME_PATH_MAX = SL_PATH_MAX + 32 };

#define OUTCOME_RUNNING "running"
#define OUTCOME_DONE "done"
#define OUTCOME_DIVERGED "diverged"
#define OUTCOME_CRASHED "crashed" /* a signal has ended it, as SIGSEGV does */

/* Of the whole run: rank -1. */
void outcome_path(char out[OUTCOME_PATH_MAX], const char *folder, int64_t rank);
/* A line for each process of the folder's that has crashed, or is gone without a word. */
void outcomes_tell(const char *folder);

#endif
