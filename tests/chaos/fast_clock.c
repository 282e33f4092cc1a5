/* fast_clock.c - preloaded into agents: each quarter of a second takes an hour more, so that keys
 * which serve for an hour are changed. No more hours than a day has: nobody then waits too long. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HOUR_S = 3700, HOURS = 20, QUARTERS = 4, QUARTER_NS = 1000000000 / QUARTERS };

static long long quarters(const struct timespec *t) {
    return (long long)t->tv_sec * QUARTERS + t->tv_nsec / QUARTER_NS;
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    static long long first; /* every thread would find the same */
    const int result = (int)syscall(SYS_clock_gettime, clock, out);
    if (result != 0 || (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE))
        return result;
    if (first == 0)
        first = quarters(out);
    const long long passed = quarters(out) - first;
    out->tv_sec += (passed < HOURS ? passed : HOURS) * HOUR_S;
    return 0;
}
