/* host.c - world/loop.h, world/worker.h and base/clock.h in virtual time. */
#include <stdlib.h>

#include "base/clock.h"
#include "virtual.h"
#include "wire/checksum.h"
#include "world/loop.h"
#include "world/worker.h"

static const double pass_s = 1e-6; /* what a pass takes that does not block */
static const double for_ever = 1e301;

/* ---- clock ---- */

double sl_clock_seconds(void) {
    return world_now();
}

uint64_t sl_clock_epoch_us(void) {
    return (uint64_t)(1e6 * world_now());
}

void sl_clock_sleep(double seconds) {
    const double until_s = world_now() + seconds;
    while (world_now() < until_s)
        process_wait(until_s);
}

void sl_clock_yield(void) {}

/* ---- signals ---- */

enum { SIGNALS_MAX = 1024, FIRST_FD = 100 };
static struct {
    process *owner; /* NULL: free */
    int number;     /* of the owner */
    bool ready;
} signals[SIGNALS_MAX];

static bool is_taken(int i) {
    const process *p = signals[i].owner;
    return p != NULL && p->alive && p->number == signals[i].number;
}

int sl_signal_open(void) {
    int i = 0;
    while (i < SIGNALS_MAX && is_taken(i))
        i++;
    if (i == SIGNALS_MAX)
        return -1;
    process *p = process_current();
    signals[i].owner = p;
    signals[i].number = p->number;
    signals[i].ready = false;
    return FIRST_FD + i;
}

void sl_signal_close(int fd) {
    if (fd >= 0)
        signals[fd - FIRST_FD].owner = NULL;
}

void sl_signal_give(int fd) {
    signals[fd - FIRST_FD].ready = true;
    process_wake(signals[fd - FIRST_FD].owner);
}

void sl_signal_take(int fd) {
    signals[fd - FIRST_FD].ready = false;
}

bool signal_is_ready(int fd) {
    const process *p = signals[fd - FIRST_FD].owner;
    return signals[fd - FIRST_FD].ready ||
           (p->fabric != NULL && fd == p->fabric_fd && fabric_has_news(p->fabric));
}

/* ---- the event loop ---- */

enum { WATCHES_MAX = 8 };
typedef struct watch {
    int fd; /* -1: a tick */
    double interval_s, due_s;
    sl_loop_handler handler;
    void *context;
} watch;

struct sl_loop {
    watch watches[WATCHES_MAX];
    int count;
};

int sl_loop_open(sl_loop **out, sl_error *error) {
    (void)error;
    *out = calloc(1, sizeof(sl_loop));
    return 0;
}

void sl_loop_close(sl_loop **loop) {
    free(*loop);
    *loop = NULL;
}

static int add(sl_loop *loop, watch w, sl_error *error) {
    if (loop->count == WATCHES_MAX)
        return sl_fail(error, SL_EINVAL, "event loop: more than %d events", WATCHES_MAX);
    loop->watches[loop->count++] = w;
    return 0;
}

int sl_loop_watch(sl_loop *loop, int fd, sl_loop_handler handler, void *context, sl_error *error) {
    return add(loop, (watch){.fd = fd, .handler = handler, .context = context}, error);
}

int sl_loop_tick(sl_loop *loop, int interval_ms, sl_loop_handler handler, void *context,
                 sl_error *error) {
    const double interval_s = 1e-3 * interval_ms;
    return add(loop, (watch){-1, interval_s, world_now() + interval_s, handler, context}, error);
}

static bool is_ready(const watch *w) {
    return w->fd < 0 ? w->due_s <= world_now() : signal_is_ready(w->fd);
}

/* When to look again, if nothing wakes the process. */
static double next_look_s(const sl_loop *loop) {
    double at_s = for_ever;
    for (int i = 0; i < loop->count; i++) {
        const watch *w = &loop->watches[i];
        if (is_ready(w))
            return world_now();
        if (w->fd < 0 && w->due_s < at_s)
            at_s = w->due_s;
    }
    return at_s;
}

int sl_loop_pass(sl_loop *loop, bool block, int limit_ms, sl_error *error) {
    (void)error;
    double until_s = block ? next_look_s(loop) : world_now() + pass_s;
    if (limit_ms > 0 && until_s > world_now() + 1e-3 * limit_ms)
        until_s = world_now() + 1e-3 * limit_ms;
    process_wait(until_s > world_now() + pass_s ? until_s : world_now() + pass_s);
    for (int i = 0; i < loop->count; i++) {
        watch *w = &loop->watches[i];
        if (!is_ready(w))
            continue;
        if (w->fd < 0)
            w->due_s = world_now() + w->interval_s;
        if (w->handler != NULL)
            w->handler(w->context);
    }
    return 0;
}

/* ---- the worker ---- */

struct worker_habits workers;

struct sl_worker {
    sl_job_means means;
    process *process;
    int number; /* of the process */
    int descriptor;
    bool busy, done;
    sl_job job;
    uint64_t point_sum, x_sum;
    sl_job_result result;
};

int sl_worker_open(sl_worker **out, const sl_vec_ops *vec, const sl_task *task,
                   const sl_observer *observer, uint32_t rank, sl_error *error) {
    sl_worker *w = calloc(1, sizeof *w);
    int result = sl_job_means_open(&w->means, vec, task, observer, rank, error);
    if (result != 0) {
        free(w);
        return result;
    }
    w->process = process_current();
    w->number = w->process->number;
    w->descriptor = sl_signal_open();
    *out = w;
    return 0;
}

int sl_worker_descriptor(const sl_worker *worker) {
    return worker->descriptor;
}

static uint64_t sum(const sl_worker *w, const float *x) {
    return x != NULL ? sl_checksum(x, w->means.task.dimension * sizeof *x) : 0;
}

static void work(void *of) {
    sl_worker *w = of;
    if (sum(w, w->job.point) != w->point_sum || sum(w, w->job.x) != w->x_sum)
        world_fail("agent %u changed its model while a gradient was computed", w->process->rank);
    w->result = sl_job_perform(&w->means, &w->job);
    w->done = true;
    sl_signal_give(w->descriptor);
}

static void finish(void *of, uint64_t place) {
    process *p = of;
    (void)place;
    if (!p->alive || p->worker == NULL)
        return;
    if (p->stopped) /* its threads are, all of them */
        world_at(world_now() + 1e-3, finish, p, 0);
    else
        process_do(p, work, p->worker);
}

void sl_worker_give(sl_worker *w, const sl_job *job) {
    if (w->busy)
        world_fail("agent %u gives its worker two jobs", w->process->rank);
    w->job = *job;
    w->busy = true;
    w->point_sum = sum(w, job->point);
    w->x_sum = sum(w, job->x);
    w->process->worker = w;
    world_at(world_now() + workers.gradient_s * world_uniform() * world_uniform(), finish,
             w->process, 0);
}

bool sl_worker_busy(const sl_worker *w) {
    return w->busy;
}

bool sl_worker_take(sl_worker *w, sl_job_result *out) {
    sl_signal_take(w->descriptor);
    if (!w->done)
        return false;
    *out = w->result;
    w->busy = w->done = false;
    w->process->worker = NULL;
    return true;
}

bool sl_worker_close(sl_worker **worker, double patience_s) {
    sl_worker *w = *worker;
    if (w == NULL)
        return true;
    *worker = NULL;
    const double until_s = world_now() + patience_s;
    while (w->busy && !w->done && world_now() < until_s)
        process_wait(until_s);
    if (w->busy && !w->done)
        world_fail("agent %u: its worker did not come back", w->process->rank);
    w->process->worker = NULL;
    sl_signal_close(w->descriptor);
    sl_job_means_close(&w->means);
    free(w);
    return true;
}
