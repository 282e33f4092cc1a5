/* simulation.h - a run of the experiment in this process, for `starling sim` and `starling
 * compare`. */
#ifndef SIMULATION_H
#define SIMULATION_H

#include "run/collector.h"

/* Runs to the end and finishes the collector, whose folder is at `path`. predicts: gives the
 * collector a timeline, even if the run fails. */
int simulation_run(collector *c, const char *path, bool predicts, sl_summary *summary,
                   sl_error *error);

#endif
