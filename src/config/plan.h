/* plan.h - the plan of an experiment's algorithm, and what hangs on how far nodes come apart in it.
 */
#ifndef SL_CONFIG_PLAN_H
#define SL_CONFIG_PLAN_H

#include "starling/experiment.h"

/* Nodes may be as many rounds apart as news takes to reach all of them: each must still have a
 * file of the round that the last of them has saved. */
int sl_plan_check_checkpoint(const sl_experiment *e, const sl_algorithm_config *algorithm,
                             sl_error *error);

#endif
