/* clock.h - monotonic seconds, for drivers. Rooms below them read no clock. */
#ifndef SL_CLOCK_H
#define SL_CLOCK_H

#include <time.h>

static inline double sl_clock_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
