/* simulation.h - a run of the experiment in this process, for `starling sim` and `starling
 * compare`. */
#ifndef SIMULATION_H
#define SIMULATION_H

#include "run/board.h"

/* To its end, and finishes the board. predicts: the board gets a timeline, also of a run that
 * fails. */
int simulation_run(board *b, bool predicts, sl_summary *summary, sl_error *error);

#endif
