/* clock.c - see clock.h. */
#include "base/clock.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

static const double late_s = 1e-3;

double sl_clock_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

uint64_t sl_clock_epoch_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void sl_clock_sleep(double seconds) {
    usleep((useconds_t)(1e6 * seconds));
}

bool sl_clock_yield(void) {
    const double offered_s = sl_clock_seconds();
    sched_yield();
    return sl_clock_seconds() - offered_s < late_s;
}
