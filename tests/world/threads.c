/* threads.c - the library's threads in the virtual world: stacks of their process, of which one
 * runs. The linker sends calls here (meson.build). */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "virtual.h"

int __real_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*body)(void *),
                          void *argument);
int __real_pthread_join(pthread_t which, void **out);
int __real_pthread_cond_wait(pthread_cond_t *what, pthread_mutex_t *mutex);
int __real_pthread_cond_timedwait(pthread_cond_t *what, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __real_pthread_cond_signal(pthread_cond_t *what);
int __real_pthread_cond_broadcast(pthread_cond_t *what);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
                                   const struct timespec *until);
int __real_clock_gettime(clockid_t clock, struct timespec *out);

static const double look_s = 1e-5, for_ever_s = 1e301;

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*body)(void *),
                          void *argument) {
    if (process_current() == NULL)
        return __real_pthread_create(out, how, body, argument);
    *out = (pthread_t)thread_start(body, argument);
    return 0;
}

int __wrap_pthread_join(pthread_t which, void **out) {
    if (process_current() == NULL)
        return __real_pthread_join(which, out);
    thread_join((int)which, for_ever_s);
    return 0;
}

static double seconds(const struct timespec *time) {
    return (double)time->tv_sec + 1e-9 * (double)time->tv_nsec;
}

/* Another thread may wait while it holds it: for a disk, say. */
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
    if (process_current() == NULL)
        return __real_pthread_mutex_lock(mutex);
    while (pthread_mutex_trylock(mutex) != 0)
        process_wait(world_now() + look_s);
    return 0;
}

int __wrap_pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
                                   const struct timespec *until) {
    if (process_current() == NULL)
        return __real_pthread_mutex_clocklock(mutex, clock, until);
    while (pthread_mutex_trylock(mutex) != 0) {
        if (world_now() >= seconds(until))
            return ETIMEDOUT;
        process_wait(world_now() + 1e-3);
    }
    return 0;
}

static void wait_without(pthread_mutex_t *mutex, const void *what, double until_s) {
    pthread_mutex_unlock(mutex);
    thread_wait(what, until_s);
    __wrap_pthread_mutex_lock(mutex);
}

int __wrap_pthread_cond_wait(pthread_cond_t *what, pthread_mutex_t *mutex) {
    if (process_current() == NULL)
        return __real_pthread_cond_wait(what, mutex);
    wait_without(mutex, what, for_ever_s);
    return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *what, pthread_mutex_t *mutex,
                                  const struct timespec *until) {
    if (process_current() == NULL)
        return __real_pthread_cond_timedwait(what, mutex, until);
    wait_without(mutex, what, seconds(until));
    return world_now() >= seconds(until) ? ETIMEDOUT : 0;
}

int __wrap_pthread_cond_signal(pthread_cond_t *what) {
    if (process_current() == NULL)
        return __real_pthread_cond_signal(what);
    thread_wake(what);
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *what) {
    if (process_current() == NULL)
        return __real_pthread_cond_broadcast(what);
    thread_wake(what);
    return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out) {
    if (process_current() == NULL)
        return __real_clock_gettime(clock, out);
    out->tv_sec = (time_t)world_now();
    out->tv_nsec = (long)((world_now() - (double)out->tv_sec) * 1e9);
    return 0;
}
