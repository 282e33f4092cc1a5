/* worker.c - see worker.h. */
#include "world/worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "world/loop.h"

static const double quick_s = 1e-3; /* a job that takes less is not slept for */
enum { LOOKS_FOR_JOB = 32 };        /* after one */

struct sl_worker {
    sl_job_means means;
    int descriptor;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool has_job, has_result, quit, ended; /* under mutex */
    sl_job job;
    sl_job_result result;       /* its last range, or all of it */
    sl_vec_event *given, *done; /* behind the giver's operations before a job, and the worker's of
                              it; NULL where operations are finished on return */
    bool busy;                  /* the giver's side only, like the next two */
    double given_s, took_s;     /* when the last job was given; how long one took; 0: none was */
};

/* ---- handing over ---- */

static bool open_events(sl_worker *w) {
    const sl_async_ops *async = w->means.host.vec->async;
    if (async == NULL)
        return true;
    w->given = async->event_open();
    w->done = async->event_open();
    return w->given != NULL && w->done != NULL;
}

static void close_events(sl_worker *w) {
    const sl_async_ops *async = w->means.host.vec->async;
    if (async == NULL)
        return;
    async->event_close(w->given);
    async->event_close(w->done);
}

static void record(const sl_worker *w, sl_vec_event *event) {
    if (event != NULL)
        w->means.host.vec->async->event_record(event);
}

static void follow(const sl_worker *w, sl_vec_event *event) {
    if (event != NULL)
        w->means.host.vec->async->event_follow(event);
}

/* ---- the worker's thread ---- */

static bool is_called(sl_worker *w) {
    pthread_mutex_lock(&w->mutex);
    const bool called = w->has_job || w->quit;
    pthread_mutex_unlock(&w->mutex);
    return called;
}

/* Until there is a job: false when the worker is to end. After a quick one the next may come before
 * the worker had fallen asleep: it looks first, and offers the processor before each look, as long
 * as that comes back soon. */
static bool await_job(sl_worker *w, bool looks) {
    for (int look = 0; looks && look < LOOKS_FOR_JOB && !is_called(w); look++)
        looks = sl_clock_yield();
    pthread_mutex_lock(&w->mutex);
    while (!w->has_job && !w->quit)
        pthread_cond_wait(&w->changed, &w->mutex);
    const bool there = w->has_job;
    w->has_job = false;
    pthread_mutex_unlock(&w->mutex);
    return there;
}

/* Whoever is woken needs the mutex: it is free by then. */
static void leave_result(sl_worker *w, const sl_job_result *result) {
    pthread_mutex_lock(&w->mutex);
    w->result = *result;
    w->has_result = true;
    pthread_mutex_unlock(&w->mutex);
    sl_signal_give(w->descriptor);
}

/* A loop that has not taken the range before takes both. */
static void leave_range(void *worker, double loss, size_t from) {
    const sl_job_result result = {.computed = true, .from = from, .loss = loss};
    leave_result(worker, &result);
}

static void *work(void *argument) {
    sl_worker *w = argument;
    const sl_async_ops *async = w->means.host.vec->async;
    if (async != NULL)
        async->give_way(); /* a neighbour waits for what the loop does meanwhile */
    for (double took_s = quick_s; await_job(w, took_s < quick_s);) {
        const double began_s = sl_clock_seconds();
        follow(w, w->given);
        const sl_job_result result = sl_job_perform(&w->means, &w->job);
        record(w, w->done);
        took_s = sl_clock_seconds() - began_s;
        leave_result(w, &result);
    }
    pthread_mutex_lock(&w->mutex);
    w->ended = true;
    pthread_mutex_unlock(&w->mutex);
    pthread_cond_signal(&w->changed);
    return NULL;
}

/* ---- the giver's ---- */

int sl_worker_open(sl_worker **out, const sl_vec_ops *vec, const sl_task *task,
                   const sl_observer *observer, uint32_t rank, const sl_ranges *leaves,
                   sl_error *error) {
    sl_worker *w = calloc(1, sizeof *w);
    if (w == NULL)
        return sl_fail(error, SL_ENOMEM, "worker: out of memory");
    int result = sl_job_means_open(&w->means, vec, task, observer, rank, leaves,
                                   (sl_progress){leave_range, w}, error);
    if (result != 0) {
        free(w);
        return result;
    }
    pthread_condattr_t monotonic; /* the other clock may jump while a job is waited for */
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    w->descriptor = sl_signal_open();
    if (w->descriptor < 0 || !open_events(w) || pthread_create(&w->thread, NULL, work, w) != 0) {
        sl_signal_close(w->descriptor);
        close_events(w);
        sl_job_means_close(&w->means);
        free(w);
        return sl_fail(error, SL_ENOMEM,
                       "worker: no thread could be started, or no descriptor is left (ulimit -n)");
    }
    *out = w;
    return 0;
}

int sl_worker_descriptor(const sl_worker *worker) {
    return worker->descriptor;
}

void sl_worker_give(sl_worker *w, const sl_job *job) {
    w->busy = true;
    w->given_s = sl_clock_seconds();
    record(w, w->given);
    pthread_mutex_lock(&w->mutex);
    w->job = *job;
    w->has_job = true;
    pthread_mutex_unlock(&w->mutex);
    pthread_cond_signal(&w->changed);
}

bool sl_worker_busy(const sl_worker *worker) {
    return worker->busy;
}

bool sl_worker_is_quick(const sl_worker *worker) {
    return worker->took_s < quick_s;
}

bool sl_worker_done(sl_worker *w) {
    pthread_mutex_lock(&w->mutex);
    const bool there = w->has_result;
    pthread_mutex_unlock(&w->mutex);
    return there;
}

bool sl_worker_take(sl_worker *w, sl_job_result *out) {
    sl_signal_take(w->descriptor);
    pthread_mutex_lock(&w->mutex);
    bool there = w->has_result;
    if (there)
        *out = w->result;
    w->has_result = false;
    pthread_mutex_unlock(&w->mutex);
    if (there && out->from == 0) {
        w->busy = false;
        w->took_s = sl_clock_seconds() - w->given_s;
        follow(w, w->done);
    }
    return there;
}

/* Tells the thread to end. Has it, at the latest after patience_s? */
static bool end_thread(sl_worker *w, double patience_s) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)patience_s + 1;
    pthread_mutex_lock(&w->mutex);
    w->quit = true;
    pthread_cond_signal(&w->changed);
    while (!w->ended && pthread_cond_timedwait(&w->changed, &w->mutex, &until) == 0)
        ;
    const bool ended = w->ended;
    pthread_mutex_unlock(&w->mutex);
    return ended && pthread_join(w->thread, NULL) == 0;
}

bool sl_worker_close(sl_worker **worker, double patience_s) {
    sl_worker *w = *worker;
    if (w == NULL)
        return true;
    *worker = NULL;
    if (!end_thread(w, patience_s))
        return false;
    sl_signal_close(w->descriptor);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
    close_events(w);
    sl_job_means_close(&w->means);
    free(w);
    return true;
}
