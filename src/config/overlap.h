/* overlap.h - may parts of a message leave before all of the gradient is there, and ranges of the
 * vector be exchanged one by one? */
#ifndef SL_CONFIG_OVERLAP_H
#define SL_CONFIG_OVERLAP_H

#include "starling/experiment.h"

/* SL_EINVAL names the key whose value needs the whole gradient, and the way out. */
int sl_overlap_check(const sl_experiment *experiment, sl_error *error);
/* Before it is checked: "auto" becomes what the experiment takes, where that is not the whole, so
 * that agents compare it, and a resolved experiment names it. */
void sl_buckets_resolve(sl_experiment *experiment);
/* The buckets that the vector is exchanged in; SL_OVERLAP_NONE: it is one. */
sl_overlap sl_buckets_of(const sl_experiment *experiment);
/* Does the order of ranges follow from what network.* says? */
bool sl_sending_is_planned(const sl_experiment *experiment);

#endif
