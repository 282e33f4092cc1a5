/* overlap.h - may parts of a message leave before all of the gradient is there, and ranges of the
 * vector be exchanged one by one? */
#ifndef SL_CONFIG_OVERLAP_H
#define SL_CONFIG_OVERLAP_H

#include "starling/experiment.h"

/* SL_EINVAL names the key whose value needs the whole gradient, and the way out. */
int sl_overlap_check(const sl_experiment *experiment, sl_error *error);
/* The buckets that the vector is exchanged in; SL_OVERLAP_NONE: it is one. */
sl_overlap sl_buckets_of(const sl_experiment *experiment);
/* Does the order of ranges follow from what network.* says? */
bool sl_sending_is_planned(const sl_experiment *experiment);

#endif
