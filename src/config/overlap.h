/* overlap.h - may parts of a message leave before all of the gradient is there? */
#ifndef SL_CONFIG_OVERLAP_H
#define SL_CONFIG_OVERLAP_H

#include "starling/experiment.h"

/* SL_EINVAL names the key whose value needs the whole gradient, and the way out. */
int sl_overlap_check(const sl_experiment *experiment, sl_error *error);

#endif
