/* replay.h - `starling sim RUN --replay`: repeats a run from its folder, with its stops. */
#ifndef REPLAY_H
#define REPLAY_H

#include "cli/tool.h"

/* Repeats the run in the folder o->file and compares: an exit code. */
int replay_run(options *o);

extern const command_option option_replay, option_end_after, option_history;

#endif
