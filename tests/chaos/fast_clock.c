/* fast_clock.c - preloaded into agents: each half second takes an hour more, so that keys which
 * serve for an hour are changed. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HOUR_S = 3700, HALF_NS = 500000000, SECOND_NS = 1000000000 };

static long long half_seconds(const struct timespec *t) {
    return ((long long)t->tv_sec * SECOND_NS + t->tv_nsec) / HALF_NS;
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    static long long first; /* every thread would find the same */
    const int result = (int)syscall(SYS_clock_gettime, clock, out);
    if (result != 0 || (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE))
        return result;
    if (first == 0)
        first = half_seconds(out);
    out->tv_sec += (half_seconds(out) - first) * HOUR_S;
    return 0;
}
