/* cuda_streams.c - a GPU's streams, events, and background copies.
 *
 * A thread's lane is three streams: operations, copies in, copies out. The notices of a loop have
 * streams of their own, one for each of the three kinds, since events of one kind pass in the order
 * in which they were set. So a host callback delays neither copies nor kernels, and a slow caller
 * no other session's loop. Waiting is for events that sleep and do not spin; the device's own
 * flags, which are all of the process's, stay as they are. The CUDA runtime is linked statically:
 * only the driver must be installed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "gpu/cuda.h"

/* Where the notices of the events that wake one loop are asked for. None is closed: a loop's
 * descriptor comes again. */
typedef struct bells {
    struct bells *next;
    int fd;
    cudaStream_t streams[WAYS];
} bells;

/* Set at open, then constant. */
static int lowest, highest; /* priorities of streams; the highest is the least number */
static int cache_bytes;
static int chosen; /* device; a new thread's current device is 0 */
static pthread_key_t leaving;

static _Thread_local lane mine;
static bells *all_bells;
static pthread_mutex_t bells_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t failure_mutex = PTHREAD_MUTEX_INITIALIZER;
static const char *failure, *failed_operation; /* NULL: none */

/* ---- failures ---- */

/* Keeps the first failure. What fails while it is captured has failed as a capture alone. */
void cuda_remember(const char *what, const char *operation) {
    if (mine.notes) {
        mine.fails = true;
        cudaGetLastError();
        return;
    }
    pthread_mutex_lock(&failure_mutex);
    if (failure == NULL) {
        failure = what;
        failed_operation = operation;
    }
    pthread_mutex_unlock(&failure_mutex);
}

bool cuda_check(cudaError_t result, const char *operation) {
    if (result != cudaSuccess)
        cuda_remember(cudaGetErrorString(result), operation);
    return result == cudaSuccess;
}

/* ---- lanes ---- */

/* What somebody captures in the process meanwhile, as torch.cuda.graph does, forbids threads of
 * the usual mode to allocate or to ask after an event, and is spoiled where they try. Ours touch
 * no captured stream, and go on. */
enum cudaStreamCaptureMode cuda_exchange_mode(enum cudaStreamCaptureMode mode) {
    cuda_check(cudaThreadExchangeStreamCaptureMode(&mode), "choosing the mode of captures");
    return mode;
}

/* Runs when a thread ends, but not at the end of the program's first thread. */
static void leave_lane(void *unused) {
    (void)unused;
    for (int way = 0; way < WAYS; way++)
        if (mine.streams[way] != NULL)
            cuda_check(cudaStreamDestroy(mine.streams[way]), "closing a stream");
    cuda_check(cudaEventDestroy(mine.ready), "closing an event");
    cuda_check(cudaEventDestroy(mine.waited), "closing an event");
    mine = (lane){0};
}

/* The loop's kernels, which are short, and copies go before those of a gradient. */
static bool open_stream(cudaStream_t *stream, bool gives_way) {
    return *stream != NULL || cuda_check(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking,
                                                                      gives_way ? lowest : highest),
                                         "creating a stream");
}

static bool open_event(cudaEvent_t *event) {
    return cuda_check(
        cudaEventCreateWithFlags(event, cudaEventDisableTiming | cudaEventBlockingSync),
        "creating an event");
}

lane *cuda_lane(void) {
    if (!mine.entered) {
        mine.entered = true;
        cuda_exchange_mode(cudaStreamCaptureModeRelaxed);
        if (cuda_check(cudaSetDevice(chosen), "choosing the device") && open_event(&mine.ready) &&
            open_event(&mine.waited))
            pthread_setspecific(leaving, &mine);
    }
    return &mine;
}

cudaStream_t cuda_stream(cuda_way way) {
    lane *l = cuda_lane();
    if (way == WORK && l->visits)
        return l->visited;
    open_stream(&l->streams[way], l->gives_way);
    return l->streams[way];
}

void cuda_await(cudaStream_t stream, const char *operation) {
    const cudaEvent_t waited = cuda_lane()->waited;
    if (cuda_check(cudaEventRecord(waited, stream), "recording an event"))
        cuda_check(cudaEventSynchronize(waited), operation);
}

int cuda_chosen(void) {
    return chosen;
}

void device_give_way(void) {
    mine.gives_way = true;
}

/* ---- the device ---- */

bool device_open(int index, char text[DEVICE_TEXT_MAX]) {
    chosen = index;
    const bool opened =
        cuda_check(cudaSetDevice(index), "choosing the device") &&
        cuda_check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "asking for priorities") &&
        cuda_check(cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, index),
                   "asking for the size of its cache") &&
        pthread_key_create(&leaving, leave_lane) == 0 && cuda_lane()->waited != NULL &&
        cuda_stream(WORK) != NULL;
    if (!opened)
        snprintf(text, DEVICE_TEXT_MAX, "cuda:%d: %s failed: %s", index,
                 failed_operation != NULL ? failed_operation : "creating a key",
                 failure != NULL ? failure : "no key is left");
    return opened;
}

size_t device_cache_bytes(void) {
    return (size_t)cache_bytes;
}

/* The next call reports what failed on a stream. */
int device_status(char text[DEVICE_TEXT_MAX]) {
    const cudaError_t now = cudaStreamQuery(cuda_stream(WORK));
    cudaGetLastError(); /* cudaErrorNotReady would stay */
    cuda_check(now == cudaErrorNotReady ? cudaSuccess : now, "a kernel or copy");
    pthread_mutex_lock(&failure_mutex);
    const bool failed = failure != NULL;
    if (failed)
        snprintf(text, DEVICE_TEXT_MAX, "%s failed: %s", failed_operation, failure);
    pthread_mutex_unlock(&failure_mutex);
    return failed ? -1 : 0;
}

int device_fence(char text[DEVICE_TEXT_MAX]) {
    static const char *const operations[WAYS] = {
        "a kernel or copy", "a background copy to the device", "a background copy from the device"};
    for (int way = 0; way < WAYS; way++) {
        const cudaStream_t stream = cuda_lane()->streams[way];
        if (stream != NULL)
            cuda_await(stream, operations[way]);
    }
    return device_status(text);
}

/* ---- background copies ---- */

void device_order_out(void) {
    const cudaStream_t work = cuda_stream(WORK), out = cuda_stream(OUT);
    const cudaEvent_t ready = cuda_lane()->ready;
    cuda_check(cudaEventRecord(ready, work), "recording an event");
    cuda_check(cudaStreamWaitEvent(out, ready, 0), "waiting for an event");
}

void device_begin_copy_out(void *host, const void *from, size_t bytes) {
    cuda_check(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, cuda_stream(OUT)),
               "a background copy from the device");
}

void device_begin_copy(void *to, const void *from, size_t bytes) {
    cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda_stream(OUT)),
               "a background copy on the device");
}

static void record_event(sl_vec_event *event, cuda_way way) {
    event->way = way;
    event->notified = false;
    cuda_check(cudaEventRecord(event->cuda, cuda_stream(way)), "recording an event");
}

static cudaError_t copy_rows_in(const sl_vec_rows *c, cudaStream_t in) {
    return c->rows == 1 ? cudaMemcpyAsync(c->to, c->from, c->bytes, cudaMemcpyHostToDevice, in)
                        : cudaMemcpy2DAsync(c->to, c->to_step, c->from, c->from_step, c->bytes,
                                            c->rows, cudaMemcpyHostToDevice, in);
}

void device_begin_copies_in(const sl_vec_rows *copies, size_t count, sl_vec_event *after,
                            sl_vec_event *copied) {
    const cudaStream_t in = cuda_stream(IN);
    cuda_check(cudaStreamWaitEvent(in, after->cuda, 0), "waiting for an event");
    for (size_t i = 0; i < count; i++)
        cuda_check(copy_rows_in(&copies[i], in), "a background copy to the device");
    record_event(copied, IN);
}

/* ---- events ---- */

sl_vec_event *device_event_open(void) {
    cuda_lane();
    sl_vec_event *event = calloc(1, sizeof *event);
    if (event != NULL && !open_event(&event->cuda)) {
        free(event);
        return NULL;
    }
    return event;
}

void device_event_close(sl_vec_event *event) {
    if (event == NULL)
        return;
    device_event_wait(event);
    for (int way = 0; way < WAYS; way++)
        if (event->notified_on[way] != NULL)
            cuda_await(event->notified_on[way], "a notice");
    cuda_check(cudaEventDestroy(event->cuda), "closing an event");
    free(event);
}

void device_event_record(sl_vec_event *event) {
    record_event(event, WORK);
}

void device_event_record_out(sl_vec_event *event) {
    record_event(event, OUT);
}

void device_event_follow(sl_vec_event *event) {
    cuda_check(cudaStreamWaitEvent(cuda_stream(WORK), event->cuda, 0), "waiting for an event");
}

void device_event_wait(sl_vec_event *event) {
    cuda_check(cudaEventSynchronize(event->cuda), "a kernel or copy");
}

/* Of this loop, for events of this way. NULL: it cannot be opened. */
static cudaStream_t bell_of(int fd, cuda_way way) {
    pthread_mutex_lock(&bells_mutex);
    bells *b = all_bells;
    while (b != NULL && b->fd != fd)
        b = b->next;
    if (b == NULL && (b = calloc(1, sizeof *b)) != NULL) {
        b->fd = fd;
        b->next = all_bells;
        all_bells = b;
    }
    const cudaStream_t bell =
        b != NULL && open_stream(&b->streams[way], false) ? b->streams[way] : NULL;
    pthread_mutex_unlock(&bells_mutex);
    return bell;
}

static void CUDART_CB notify(void *notify_fd) {
    eventfd_write((int)(intptr_t)notify_fd, 1);
}

static void ask_for_notice(sl_vec_event *event, int notify_fd) {
    const cudaStream_t stream = bell_of(notify_fd, event->way);
    if (stream == NULL) {
        cuda_remember("no stream could be opened", "asking for a notice");
        return;
    }
    event->notified_on[event->way] = stream;
    event->notified = true;
    cuda_check(cudaStreamWaitEvent(stream, event->cuda, 0), "waiting for an event");
    cuda_check(cudaLaunchHostFunc(stream, notify, (void *)(intptr_t)notify_fd),
               "asking for a notice");
}

bool device_event_passed(sl_vec_event *event, int notify_fd) {
    const cudaError_t now = cudaEventQuery(event->cuda);
    if (now != cudaErrorNotReady) {
        cuda_check(now, "a kernel or copy");
        return true;
    }
    cudaGetLastError(); /* cudaErrorNotReady would stay */
    if (notify_fd > 0 && !event->notified)
        ask_for_notice(event, notify_fd);
    return false;
}
