/* simulation.h - a run of the experiment in this process, for `starling sim` and `starling
 * compare`. */
#ifndef SIMULATION_H
#define SIMULATION_H

#include "run/collector.h"

/* Runs to the end and finishes the collector. predicts: gives the collector a timeline, even if
 * the run fails. */
int simulation_run(collector *c, bool predicts, sl_summary *summary, sl_error *error);

#endif
