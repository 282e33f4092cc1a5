/* sim.h - the simulator: the same nodes as the agents', in one process, without a network. */
#ifndef STARLING_SIM_H
#define STARLING_SIM_H

#include "starling/api.h"
#include "starling/experiment.h"
#include "starling/observer.h"
#include "starling/task.h"
#include "starling/timeline.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the experiment to its end. `record` and `parameters` are called round by round, within a
 * round by rank (all n nodes of a round before any of the next); the models of a round stay as they
 * are until all of its records have been made. `timeline`, if not NULL, gets what was sent, for the
 * caller to close; of a run that fails what it sent until then, or NULL. `stop`, if not NULL, is
 * looked at between rounds: non-zero ends with SL_ESTOPPED. */
SL_API int sl_sim_run(const sl_experiment *experiment, const sl_task *task,
                      const sl_observer *observer, sl_timeline **timeline, const volatile int *stop,
                      sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
