/* live.h - a run with one agent process per node on this machine, for `starling run` and `starling
 * compare`. */
#ifndef LIVE_H
#define LIVE_H

#include "run/board.h"

/* To its end, and finishes the board, whose folder is at `path`. Agents that fail are complained
 * of; quiet: the first cause is the error instead. */
int live_run_agents(board *b, const char *path, bool quiet, sl_summary *summary, sl_error *error);

#endif
