/* streams.c - see fake.h: streams, copies, events, callbacks. */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/emulated/streams.h"
#include "gpu/launches.h"

struct CUevent_st {
    struct CUevent_st *next;
    counter passed;
    unsigned recorded; /* how often; one thread at a time */
    int device;
    bool ended;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  /* of the next three */
static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER; /* nobody waits for a stream that ends */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* All that were ever created. */
static _Atomic(cudaStream_t) streams;
static cudaEvent_t events;
static atomic_bool kernels_held, callbacks_held;
static atomic_int kernel_error; /* a cudaError_t */

/* ---- what a stream is ---- */

static cudaStream_t open_stream(int device) {
    cudaStream_t s = fake_claim(sizeof *s);
    pthread_mutex_init(&s->mutex, NULL);
    s->device = device;
    pthread_mutex_lock(&mutex);
    s->next = streams;
    streams = s;
    pthread_mutex_unlock(&mutex);
    return s;
}

/* Those for all threads, and those for each thread, which are one here, of each device. */
static cudaStream_t defaults[FAKE_DEVICES_MAX][2];

static void open_defaults(void) {
    for (int i = 0; i < FAKE_DEVICES_MAX; i++)
        for (int j = 0; j < 2; j++)
            defaults[i][j] = open_stream(i);
}

cudaStream_t fake_stream_of(cudaStream_t s) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (s != NULL && s != cudaStreamLegacy && s != cudaStreamPerThread)
        return s;
    pthread_once(&once, open_defaults);
    return fake_mine.device < 0 ? NULL : defaults[fake_mine.device][s == cudaStreamPerThread];
}

void fake_expect_stream(cudaStream_t s, const char *function) {
    if (s == NULL || s->ended)
        fake_stop(function, "an ended stream");
    if (s->device != fake_mine.device)
        fake_stop(function, "a stream of device %d, called for device %d", s->device,
                  fake_mine.device);
}

static void expect_event(cudaEvent_t e, const char *function) {
    if (e == NULL || e->ended)
        fake_stop(function, "%s event", e == NULL ? "no" : "an ended");
}

/* ---- what a test sets and asks for ---- */

void fake_fail_kernel(cudaError_t error) {
    atomic_store(&kernel_error, (int)error);
}

static void hold(atomic_bool *what, bool held) {
    pthread_mutex_lock(&mutex);
    atomic_store(what, held);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

void fake_hold_kernels(bool held) {
    hold(&kernels_held, held);
}

void fake_hold_callbacks(bool held) {
    hold(&callbacks_held, held);
}

/* The mutex would be an order between streams. */
static void wait_while(atomic_bool *held) {
    if (!atomic_load_explicit(held, memory_order_relaxed))
        return;
    pthread_mutex_lock(&mutex);
    while (atomic_load(held))
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

/* ---- streams ---- */

enum { LOWEST = 0, HIGHEST = -5 };

cudaError_t cudaDeviceGetStreamPriorityRange(int *lowest, int *highest) {
    fake_enter_device("cudaDeviceGetStreamPriorityRange");
    *lowest = LOWEST;
    *highest = HIGHEST;
    return fake_result(FAKE_PRIORITIES);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
    return cudaStreamCreateWithPriority(out, flags, LOWEST);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority) {
    const cudaError_t result = fake_begin("cudaStreamCreateWithPriority", FAKE_STREAM_CREATE);
    if (result != cudaSuccess)
        return result;
    if (flags != cudaStreamNonBlocking)
        fake_stop("cudaStreamCreateWithPriority", "a stream that waits for the default stream");
    if (priority > LOWEST || priority < HIGHEST)
        fake_stop("cudaStreamCreateWithPriority", "priority %d", priority);
    *out = open_stream(fake_mine.device);
    fake_add(FAKE_STREAMS, 1);
    fake_add(FAKE_STREAMS_FIRST, priority == HIGHEST);
    return cudaSuccess;
}

/* The driver's names of some of these, by which a caller's side may know them. */
cudaError_t cuStreamCreate(cudaStream_t *out, unsigned flags);
cudaError_t cuStreamCreate(cudaStream_t *out, unsigned flags) {
    return cudaStreamCreateWithFlags(out, flags);
}

cudaError_t cuStreamBeginCapture_v2(cudaStream_t s, enum cudaStreamCaptureMode mode);
cudaError_t cuStreamBeginCapture_v2(cudaStream_t s, enum cudaStreamCaptureMode mode) {
    return cudaStreamBeginCapture(s, mode);
}

cudaError_t cuStreamEndCapture(cudaStream_t s, cudaGraph_t *out);
cudaError_t cuStreamEndCapture(cudaStream_t s, cudaGraph_t *out) {
    return cudaStreamEndCapture(s, out);
}

cudaError_t cuGraphDestroy(cudaGraph_t graph);
cudaError_t cuGraphDestroy(cudaGraph_t graph) {
    return cudaGraphDestroy(graph);
}

void fake_await_all(void) {
    for (cudaStream_t s = streams; s != NULL; s = s->next) {
        pthread_mutex_lock(&ending);
        if (!s->ended)
            queue_await(&s->work);
        pthread_mutex_unlock(&ending);
    }
}

/* What it was stays known, so that a later use is found. */
cudaError_t cudaStreamDestroy(cudaStream_t s) {
    fake_enter("cudaStreamDestroy");
    fake_expect_no_capture("cudaStreamDestroy");
    if (s == NULL || s->ended)
        fake_stop("cudaStreamDestroy", "an ended stream");
    pthread_mutex_lock(&ending);
    queue_close(&s->work);
    s->ended = true;
    pthread_mutex_unlock(&ending);
    fake_add(FAKE_STREAMS, -1);
    return fake_keep(fake_stays());
}

/* After an error that stays, nothing runs. */
typedef struct job {
    void (*work)(void *arguments);
    bool fails;
    _Alignas(max_align_t) char arguments[FAKE_BYTES_MAX];
} job;
static_assert(sizeof(job) <= QUEUE_BYTES_MAX, "a job fits into a task");

static void do_job(void *job_) {
    job *j = job_;
    if (j->fails && fake_stays() == cudaSuccess)
        fake_break(cudaErrorUnknown);
    if (fake_stays() != cudaSuccess)
        return;
    fake_unlock_memory();
    j->work(j->arguments);
    fake_lock_memory();
}

static void give(cudaStream_t s, task_function *function, const void *arguments, size_t bytes) {
    if (s == fake_mine.captured) {
        fake_note(s->notes, function, arguments, bytes);
        return;
    }
    pthread_mutex_lock(&s->mutex);
    queue_give(&s->work, function, arguments, bytes);
    pthread_mutex_unlock(&s->mutex);
}

void fake_give(cudaStream_t on, void (*work)(void *), const void *arguments, size_t bytes) {
    const cudaStream_t s = fake_stream_of(on);
    fake_expect_stream(s, "work on a stream");
    job j = {.work = work, .fails = fake_counts_out()};
    if (bytes > sizeof j.arguments)
        fake_stop("work on a stream", "%zu bytes of arguments", bytes);
    memcpy(j.arguments, arguments, bytes);
    give(s, do_job, &j, offsetof(job, arguments) + bytes);
}

cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    s = fake_stream_of(s);
    if (fake_mine.to_wait_for == s)
        fake_mine.to_wait_for = NULL;
    fake_enter("cudaStreamSynchronize");
    fake_expect_no_capture("cudaStreamSynchronize");
    costs_count(COST_WAITS, 1);
    if (s == NULL || s->ended)
        fake_stop("cudaStreamSynchronize", "an ended stream");
    queue_await(&s->work);
    return fake_keep(fake_stays());
}

cudaError_t cudaStreamQuery(cudaStream_t s) {
    fake_enter("cudaStreamQuery");
    fake_expect_no_capture("cudaStreamQuery");
    fake_expect_stream(s, "cudaStreamQuery");
    if (fake_stays() != cudaSuccess)
        return fake_keep(fake_stays());
    const unsigned given = atomic_load(&s->work.given.value);
    return fake_keep(counter_has(&s->work.done, given) ? cudaSuccess : cudaErrorNotReady);
}

/* ---- copies ---- */

typedef struct copy {
    void *to;
    const void *from;
    size_t bytes;
} copy;

static void do_copy(void *copy_) {
    const copy *c = copy_;
    fake_sleep_for_copy(c->bytes);
    memcpy(c->to, c->from, c->bytes);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t s) {
    static const char function[] = "cudaMemcpyAsync";
    const cudaError_t result = fake_begin(function, FAKE_MEMCPY);
    if (result != cudaSuccess)
        return result;
    const void *host = kind == cudaMemcpyHostToDevice   ? from
                       : kind == cudaMemcpyDeviceToHost ? to
                                                        : NULL;
    if (host != to)
        fake_expect_on_device(to, bytes, function);
    if (host != from)
        fake_expect_on_device(from, bytes, function);
    fake_give(s, do_copy, &(copy){to, from, bytes}, sizeof(copy));
    if (host != NULL && !fake_is_locked(host, bytes)) {
        fake_expect_no_capture(function);
        fake_mine.to_wait_for = fake_stream_of(s);
    }
    return cudaSuccess;
}

typedef struct rows {
    char *to;
    const char *from;
    size_t to_step, from_step, bytes, count;
} rows;

static void do_copy_rows(void *rows_) {
    const rows *r = rows_;
    fake_sleep_for_copy(r->bytes * r->count);
    for (size_t i = 0; i < r->count; i++)
        memcpy(r->to + i * r->to_step, r->from + i * r->from_step, r->bytes);
}

/* From the first byte to the last, all is one allocation on each side. */
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_step, const void *from, size_t from_step,
                              size_t bytes, size_t count, enum cudaMemcpyKind kind,
                              cudaStream_t s) {
    static const char function[] = "cudaMemcpy2DAsync";
    const cudaError_t result = fake_begin(function, FAKE_MEMCPY);
    if (result != cudaSuccess)
        return result;
    if (kind != cudaMemcpyHostToDevice || to_step < bytes || from_step < bytes || count == 0)
        fake_stop(function, "%zu rows of %zu bytes at %zu from %zu", count, bytes, to_step,
                  from_step);
    fake_expect_on_device(to, (count - 1) * to_step + bytes, function);
    if (!fake_is_locked(from, (count - 1) * from_step + bytes))
        fake_stop(function, "memory that is not page-locked");
    fake_give(s, do_copy_rows, &(rows){to, from, to_step, from_step, bytes, count}, sizeof(rows));
    return cudaSuccess;
}

typedef struct setting {
    void *memory;
    int value;
    size_t bytes;
} setting;

static void do_set(void *setting_) {
    const setting *m = setting_;
    fake_set_memory(m->memory, m->value, m->bytes);
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t s) {
    const cudaError_t result = fake_begin("cudaMemsetAsync", FAKE_MEMSET);
    if (result != cudaSuccess)
        return result;
    fake_expect_on_device(memory, bytes, "cudaMemsetAsync");
    fake_give(s, do_set, &(setting){memory, value, bytes}, sizeof(setting));
    return cudaSuccess;
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
    const cudaError_t result = fake_begin("cudaEventCreateWithFlags", FAKE_EVENT_CREATE);
    if (result != cudaSuccess)
        return result;
    if (flags != (cudaEventDisableTiming | cudaEventBlockingSync))
        fake_stop("cudaEventCreateWithFlags", "flags %u spin or take times", flags);
    cudaEvent_t e = fake_claim(sizeof *e);
    e->device = fake_mine.device;
    pthread_mutex_lock(&mutex);
    e->next = events;
    events = e;
    pthread_mutex_unlock(&mutex);
    fake_add(FAKE_EVENTS, 1);
    *out = e;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e) {
    fake_enter("cudaEventDestroy");
    expect_event(e, "cudaEventDestroy");
    e->ended = true;
    fake_add(FAKE_EVENTS, -1);
    return fake_keep(fake_stays());
}

typedef struct moment {
    cudaEvent_t event;
    unsigned number;
} moment;

static void do_raise(void *moment_) {
    const moment *m = moment_;
    counter_raise(&m->event->passed, m->number);
}

static void do_await(void *moment_) {
    const moment *m = moment_;
    counter_await(&m->event->passed, m->number);
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    s = fake_stream_of(s);
    const bool behind_copy = s != NULL && fake_mine.to_wait_for == s;
    if (behind_copy)
        fake_mine.to_wait_for = NULL;
    fake_enter_device("cudaEventRecord");
    fake_expect_no_capture("cudaEventRecord");
    const cudaError_t result = fake_result(FAKE_EVENT_RECORD);
    if (result != cudaSuccess)
        return result;
    fake_mine.to_wait_with = behind_copy ? e : NULL;
    expect_event(e, "cudaEventRecord");
    fake_expect_stream(s, "cudaEventRecord");
    if (e->device != s->device)
        fake_stop("cudaEventRecord", "an event of device %d", e->device);
    const moment m = {e, ++e->recorded};
    give(s, do_raise, &m, sizeof m);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) {
    (void)flags;
    fake_enter_device("cudaStreamWaitEvent");
    fake_expect_no_capture("cudaStreamWaitEvent");
    s = fake_stream_of(s);
    expect_event(e, "cudaStreamWaitEvent");
    fake_expect_stream(s, "cudaStreamWaitEvent");
    const moment m = {e, e->recorded};
    give(s, do_await, &m, sizeof m);
    return fake_keep(fake_stays());
}

cudaError_t cudaEventQuery(cudaEvent_t e) {
    fake_enter("cudaEventQuery");
    expect_event(e, "cudaEventQuery");
    const cudaError_t forbidden = fake_check_captures();
    if (forbidden != cudaSuccess)
        return forbidden;
    if (fake_stays() != cudaSuccess)
        return fake_keep(fake_stays());
    return fake_keep(counter_has(&e->passed, e->recorded) ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    if (fake_mine.to_wait_with == e)
        fake_mine.to_wait_with = NULL;
    fake_enter("cudaEventSynchronize");
    fake_expect_no_capture("cudaEventSynchronize");
    costs_count(COST_WAITS, 1);
    expect_event(e, "cudaEventSynchronize");
    counter_await(&e->passed, e->recorded);
    return fake_keep(fake_stays());
}

/* ---- callbacks ---- */

typedef struct callback {
    cudaHostFn_t function;
    void *context;
} callback;

static void do_call(void *callback_) {
    const callback *c = callback_;
    wait_while(&callbacks_held);
    if (fake_stays() == cudaSuccess) { /* a failed GPU calls nobody back */
        fake_mine.in_callback = true;
        c->function(c->context);
        fake_mine.in_callback = false;
    }
    fake_add(FAKE_CALLBACKS, -1);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t function, void *context) {
    const cudaError_t result = fake_begin("cudaLaunchHostFunc", FAKE_CALLBACK);
    if (result != cudaSuccess)
        return result;
    fake_expect_stream(s, "cudaLaunchHostFunc");
    costs_count(COST_BELLS, 1);
    fake_add(FAKE_CALLBACKS, 1);
    const callback c = {function, context};
    give(s, do_call, &c, sizeof c);
    return cudaSuccess;
}

/* ---- kernels ---- */

bool fake_kernel_begins(void) {
    wait_while(&kernels_held);
    const cudaError_t error =
        (cudaError_t)atomic_exchange_explicit(&kernel_error, cudaSuccess, memory_order_relaxed);
    if (error != cudaSuccess)
        fake_break(error);
    return error == cudaSuccess;
}
