/* watch.h - tells whoever watches how far something is; see sl_watch in starling/types.h. */
#ifndef SL_WATCH_H
#define SL_WATCH_H

#include <math.h>
#include <stddef.h>

#include "starling/types.h"

/* watch may be NULL. */
static inline void sl_watch_tell(const sl_watch *watch, double share) {
    if (watch != NULL)
        watch->tell(watch->context, share);
}

/* Of what falls from 1 to `goal` by equal factors: where `value` is, as a share. */
static inline double sl_watch_fallen(double value, double goal) {
    const double share = log(value) / log(goal);
    return share > 0 ? fmin(share, 1) : 0;
}

#endif
