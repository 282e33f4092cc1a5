/* sim.h - the simulator: the agents' nodes in one process, without a network. */
#ifndef STARLING_SIM_H
#define STARLING_SIM_H

#include "starling/api.h"
#include "starling/checkpoint.h"
#include "starling/experiment.h"
#include "starling/observer.h"
#include "starling/task.h"
#include "starling/timeline.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the experiment to its end. Calls `record` and `parameters` round by round, and within a
 * round by rank. The models of a round do not change before all its records were made. `timeline`,
 * if not NULL, receives the messages, and the caller closes it; if the run fails, those so far, or
 * NULL. `stop`, if not NULL, is read between rounds; non-zero ends the run with SL_ESTOPPED.
 * `checkpoints`: NULL: none are written or read. A run that goes on must be told the round, records
 * that round again first, and has no timeline. Without checkpoints nothing is logged. */
SL_API int sl_sim_run(const sl_experiment *experiment, const sl_task *task,
                      const sl_observer *observer, const sl_checkpoints *checkpoints,
                      sl_timeline **timeline, const volatile int *stop, sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
