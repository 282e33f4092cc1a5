/* streams.c - see fake.h: streams, copies, events, callbacks. A stream is a thread. */
#include "fake.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/emulated_graph.h"
#include "gpu/emulated_stream.h"
#include "gpu/launches.h"

struct CUstream_st {
    stream work;
    pthread_mutex_t mutex; /* one thread at a time gives it work */
    int device;
    bool ended;
    sl_vec_graph *graph; /* while it is captured */
    atomic_bool spoiled; /* by what the capture forbids */
};

struct CUgraph_st {
    sl_vec_graph *notes;
    bool taken; /* by an executable one */
};

struct CUgraphExec_st {
    sl_vec_graph *notes;
};

struct CUevent_st {
    counter passed;
    atomic_uint recorded;
    int device;
    bool ended;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER; /* nobody waits for a stream that ends */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static cudaStream_t *streams; /* all that were ever created */
static size_t streams_ever;
static bool kernels_held, callbacks_held;
static _Atomic(cudaStream_t) captured_for_all; /* in the global mode; NULL: none is */
static cudaError_t kernel_error;

/* The thread's device has a default stream, which nothing of ours waits for. */
static cudaStream_t named(cudaStream_t s) {
    static struct CUstream_st defaults[2] = {{.mutex = PTHREAD_MUTEX_INITIALIZER},
                                             {.mutex = PTHREAD_MUTEX_INITIALIZER, .device = 1}};
    return s != NULL || fake_mine.device < 0 ? s : &defaults[fake_mine.device % 2];
}

static void expect_stream(cudaStream_t s, const char *function) {
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
    pthread_mutex_lock(&mutex);
    kernel_error = error;
    pthread_mutex_unlock(&mutex);
}

static void hold(bool *what, bool held) {
    pthread_mutex_lock(&mutex);
    *what = held;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

void fake_hold_kernels(bool held) {
    hold(&kernels_held, held);
}

void fake_hold_callbacks(bool held) {
    hold(&callbacks_held, held);
}

static void wait_while(const bool *held) {
    pthread_mutex_lock(&mutex);
    while (*held)
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
    cudaStream_t s = calloc(1, sizeof *s);
    pthread_mutex_lock(&mutex);
    cudaStream_t *grown = realloc(streams, (streams_ever + 1) * sizeof *streams);
    if (s == NULL || grown == NULL)
        fake_stop("cudaStreamCreateWithPriority", "the host is out of memory");
    pthread_mutex_init(&s->mutex, NULL);
    s->device = fake_mine.device;
    streams = grown;
    streams[streams_ever++] = s;
    pthread_mutex_unlock(&mutex);
    fake_add(FAKE_STREAMS, 1);
    fake_add(FAKE_STREAMS_FIRST, priority == HIGHEST);
    *out = s;
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

void fake_await_all(void) {
    pthread_mutex_lock(&mutex);
    const size_t count = streams_ever;
    pthread_mutex_unlock(&mutex);
    for (size_t i = 0; i < count; i++) {
        pthread_mutex_lock(&mutex);
        const cudaStream_t s = streams[i];
        pthread_mutex_unlock(&mutex);
        pthread_mutex_lock(&ending);
        if (!s->ended)
            stream_await(&s->work);
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
    stream_close(&s->work);
    s->ended = true;
    pthread_mutex_unlock(&ending);
    fake_add(FAKE_STREAMS, -1);
    return fake_keep(fake_stays());
}

/* After an error that stays, nothing runs. */
typedef struct job {
    void (*work)(void *arguments);
    _Alignas(max_align_t) char arguments[FAKE_BYTES_MAX];
} job;
static_assert(sizeof(job) <= STREAM_BYTES_MAX, "a job fits into a task");

static void do_job(void *job_) {
    job *j = job_;
    if (fake_stays() == cudaSuccess)
        j->work(j->arguments);
}

static void give(cudaStream_t s, task_function *function, const void *arguments, size_t bytes) {
    if (s == fake_mine.captured) {
        graph_add(s->graph, function, arguments, bytes);
        return;
    }
    pthread_mutex_lock(&s->mutex);
    stream_give(&s->work, function, arguments, bytes);
    pthread_mutex_unlock(&s->mutex);
}

void fake_give(cudaStream_t on, void (*work)(void *), const void *arguments, size_t bytes) {
    const cudaStream_t s = named(on);
    expect_stream(s, "work on a stream");
    job j = {.work = work};
    if (bytes > sizeof j.arguments)
        fake_stop("work on a stream", "%zu bytes of arguments", bytes);
    memcpy(j.arguments, arguments, bytes);
    give(s, do_job, &j, sizeof j);
}

cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    s = named(s);
    if (fake_mine.to_wait_for == s)
        fake_mine.to_wait_for = NULL;
    fake_enter("cudaStreamSynchronize");
    fake_expect_no_capture("cudaStreamSynchronize");
    costs_count(COST_WAITS, 1);
    if (s == NULL || s->ended)
        fake_stop("cudaStreamSynchronize", "an ended stream");
    stream_await(&s->work);
    return fake_keep(fake_stays());
}

cudaError_t cudaStreamQuery(cudaStream_t s) {
    fake_enter("cudaStreamQuery");
    fake_expect_no_capture("cudaStreamQuery");
    expect_stream(s, "cudaStreamQuery");
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
    if (host != NULL && bytes > 0 && !fake_is_locked(host, bytes))
        fake_expect_no_capture(function);
    if (host != NULL && bytes > 0 && !fake_is_locked(host, bytes))
        fake_mine.to_wait_for = named(s);
    return cudaSuccess;
}

typedef struct rows {
    char *to;
    const char *from;
    size_t to_step, from_step, bytes, count;
} rows;

static void do_copy_rows(void *rows_) {
    const rows *r = rows_;
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
    memset(m->memory, m->value, m->bytes);
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
    cudaEvent_t e = calloc(1, sizeof *e);
    if (e == NULL)
        fake_stop("cudaEventCreateWithFlags", "the host is out of memory");
    e->device = fake_mine.device;
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
    s = named(s);
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
    expect_stream(s, "cudaEventRecord");
    if (e->device != s->device)
        fake_stop("cudaEventRecord", "an event of device %d", e->device);
    const moment m = {e, atomic_fetch_add(&e->recorded, 1) + 1};
    give(s, do_raise, &m, sizeof m);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) {
    (void)flags;
    fake_enter_device("cudaStreamWaitEvent");
    fake_expect_no_capture("cudaStreamWaitEvent");
    s = named(s);
    expect_event(e, "cudaStreamWaitEvent");
    expect_stream(s, "cudaStreamWaitEvent");
    const moment m = {e, atomic_load(&e->recorded)};
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
    return fake_keep(counter_has(&e->passed, atomic_load(&e->recorded)) ? cudaSuccess
                                                                        : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    if (fake_mine.to_wait_with == e)
        fake_mine.to_wait_with = NULL;
    fake_enter("cudaEventSynchronize");
    fake_expect_no_capture("cudaEventSynchronize");
    costs_count(COST_WAITS, 1);
    expect_event(e, "cudaEventSynchronize");
    counter_await(&e->passed, atomic_load(&e->recorded));
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
    expect_stream(s, "cudaLaunchHostFunc");
    costs_count(COST_BELLS, 1);
    fake_add(FAKE_CALLBACKS, 1);
    const callback c = {function, context};
    give(s, do_call, &c, sizeof c);
    return cudaSuccess;
}

/* ---- graphs ---- */

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
    const enum cudaStreamCaptureMode before = fake_mine.mode;
    fake_enter("cudaThreadExchangeStreamCaptureMode");
    fake_mine.mode = *mode;
    *mode = before;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *out) {
    fake_enter_device("cudaStreamIsCapturing");
    s = named(s);
    expect_stream(s, "cudaStreamIsCapturing");
    *out = s->graph != NULL ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return fake_keep(fake_stays());
}

cudaError_t fake_check_captures(void) {
    const cudaStream_t s = captured_for_all;
    if (s == NULL || fake_mine.mode == cudaStreamCaptureModeRelaxed)
        return cudaSuccess;
    s->spoiled = true;
    return fake_keep(cudaErrorStreamCaptureUnsupported);
}

void fake_spoil_capture(void) {
    if (fake_mine.captured != NULL)
        fake_mine.captured->spoiled = true;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode) {
    const cudaError_t result = fake_begin("cudaStreamBeginCapture", FAKE_CAPTURE);
    if (result != cudaSuccess)
        return result;
    expect_stream(s, "cudaStreamBeginCapture");
    if (mode == cudaStreamCaptureModeRelaxed || fake_mine.captured != NULL)
        fake_stop("cudaStreamBeginCapture", "the relaxed mode, or a second capture");
    if (mode == cudaStreamCaptureModeGlobal)
        captured_for_all = s;
    fake_mine.captured = s;
    s->spoiled = false;
    s->graph = graph_open();
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out) {
    fake_enter_device("cudaStreamEndCapture");
    if (s == NULL || fake_mine.captured != s)
        fake_stop("cudaStreamEndCapture", "a stream that is not captured");
    fake_mine.captured = NULL;
    if (captured_for_all == s)
        captured_for_all = NULL;
    sl_vec_graph *notes = s->graph;
    s->graph = NULL;
    if (s->spoiled) {
        graph_close(notes);
        return fake_keep(cudaErrorStreamCaptureInvalidated);
    }
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        fake_stop("cudaStreamEndCapture", "the host is out of memory");
    (*out)->notes = notes;
    fake_add(FAKE_GRAPHS, 1);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                          unsigned long long flags) {
    (void)flags;
    const cudaError_t result = fake_begin("cudaGraphInstantiateWithFlags", FAKE_GRAPH);
    if (result != cudaSuccess)
        return result;
    *out = calloc(1, sizeof **out);
    if (*out == NULL || graph->taken)
        fake_stop("cudaGraphInstantiateWithFlags", "the host is out of memory, or a second time");
    (*out)->notes = graph->notes;
    graph->taken = true;
    fake_add(FAKE_GRAPHS, 1);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    fake_enter("cudaGraphDestroy");
    if (!graph->taken)
        graph_close(graph->notes);
    free(graph);
    fake_add(FAKE_GRAPHS, -1);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t s) {
    fake_enter_device("cudaGraphLaunch");
    fake_expect_no_capture("cudaGraphLaunch");
    const cudaError_t result = fake_result(FAKE_LAUNCH);
    if (result != cudaSuccess)
        return result;
    expect_stream(s, "cudaGraphLaunch");
    pthread_mutex_lock(&s->mutex);
    graph_give(graph->notes, &s->work);
    pthread_mutex_unlock(&s->mutex);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    fake_enter("cudaGraphExecDestroy");
    graph_close(graph->notes);
    free(graph);
    fake_add(FAKE_GRAPHS, -1);
    return fake_keep(fake_stays());
}

/* ---- kernels ---- */

bool fake_kernel_begins(void) {
    wait_while(&kernels_held);
    pthread_mutex_lock(&mutex);
    const cudaError_t error = kernel_error;
    kernel_error = cudaSuccess;
    pthread_mutex_unlock(&mutex);
    if (error != cudaSuccess)
        fake_break(error);
    return error == cudaSuccess;
}
