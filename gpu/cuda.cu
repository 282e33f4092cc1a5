/* cuda.cu - an NVIDIA GPU: memory, streams, the kernels of kernels.h and layer_kernels.h. Matrix
 * products are in cublas.c, and what there is in cuda_devices.c.
 *
 * A thread's lane is three streams: operations, copies in, copies out. The notices of a loop have
 * streams of their own, one for each of the three kinds, since events of one kind pass in the order
 * in which they were set. So a host callback delays neither copies nor kernels, and a slow caller
 * no other session's loop. Waiting is for events that sleep and do not spin; the device's own
 * flags, which are all of the process's, stay as they are. The CUDA runtime is linked statically:
 * only the driver must be installed. */
#include <cuda_runtime.h>

#include <mutex>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "gpu/cuda.h"
#include "gpu/launches.h"

namespace {

enum way { WORK, IN, OUT, WAYS };

/* Streams are opened on first use: a GPU runs eight at a time by default, and further ones wait. */
struct lane {
    bool entered, gives_way;
    cudaStream_t streams[WAYS]; /* NULL: not used yet */
    cudaEvent_t ready;  /* the state of `work` at the last request for a background copy out */
    cudaEvent_t waited; /* what the thread waits for */
    bool notes, fails;  /* its operations are captured; one of them could not be */
    bool visits;        /* its operations are work of `visited`, a stream of others */
    cudaStream_t visited;
    int before; /* then: the thread's own current device, and what others' captures forbid it */
    cudaStreamCaptureMode mode_before;
};

/* Where the notices of the events that wake one loop are asked for. None is closed: a loop's
 * descriptor comes again. */
struct bells {
    bells *next;
    int fd;
    cudaStream_t streams[WAYS];
};

int lowest, highest; /* priorities of streams; the highest is the least number */
int cache_bytes;
int chosen; /* device; a new thread's current device is 0 */
pthread_key_t leaving;
bells *all_bells;
std::mutex bells_mutex;
thread_local lane mine;
std::mutex failure_mutex;
const char *failure, *failed_operation; /* NULL: none */

bool check(cudaError_t result, const char *operation) {
    if (result != cudaSuccess)
        cuda_remember(cudaGetErrorString(result), operation);
    return result == cudaSuccess;
}

/* What somebody captures in the process meanwhile, as torch.cuda.graph does, forbids threads of
 * the usual mode to allocate or to ask after an event, and is spoiled where they try. Ours touch
 * no captured stream, and go on. Returns the thread's mode so far. */
cudaStreamCaptureMode exchange_mode(cudaStreamCaptureMode mode) {
    check(cudaThreadExchangeStreamCaptureMode(&mode), "choosing the mode of captures");
    return mode;
}

/* A thread that is not ours keeps the device that it has chosen, and its mode. */
class visit {
    int before = 0;
    cudaStreamCaptureMode mode = exchange_mode(cudaStreamCaptureModeRelaxed);

  public:
    visit() {
        check(cudaGetDevice(&before), "asking for the device");
        if (before != chosen)
            check(cudaSetDevice(chosen), "choosing the device");
    }
    ~visit() {
        if (before != chosen)
            check(cudaSetDevice(before), "choosing the device again");
        exchange_mode(mode);
    }
};

/* Runs when a thread ends, but not at the end of the program's first thread. */
void leave_lane(void *) {
    for (cudaStream_t stream : mine.streams)
        if (stream != NULL)
            check(cudaStreamDestroy(stream), "closing a stream");
    check(cudaEventDestroy(mine.ready), "closing an event");
    check(cudaEventDestroy(mine.waited), "closing an event");
    mine = lane();
}

/* The loop's kernels, which are short, and copies go before those of a gradient. */
bool open_stream(cudaStream_t *stream, bool gives_way) {
    return *stream != NULL || check(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking,
                                                                 gives_way ? lowest : highest),
                                    "creating a stream");
}

bool open_event(cudaEvent_t *event) {
    return check(cudaEventCreateWithFlags(event, cudaEventDisableTiming | cudaEventBlockingSync),
                 "creating an event");
}

lane *lane_of_thread() {
    if (!mine.entered) {
        mine.entered = true;
        exchange_mode(cudaStreamCaptureModeRelaxed);
        if (check(cudaSetDevice(chosen), "choosing the device") && open_event(&mine.ready) &&
            open_event(&mine.waited))
            pthread_setspecific(leaving, &mine);
    }
    return &mine;
}

cudaStream_t stream_of(way way) {
    lane *l = lane_of_thread();
    if (way == WORK && l->visits)
        return l->visited;
    open_stream(&l->streams[way], l->gives_way);
    return l->streams[way];
}

/* Waits for the stream's work so far. */
void await(cudaStream_t stream, const char *operation) {
    const cudaEvent_t waited = lane_of_thread()->waited;
    if (check(cudaEventRecord(waited, stream), "recording an event"))
        check(cudaEventSynchronize(waited), operation);
}

void await_way(way way, const char *operation) {
    const cudaStream_t stream = lane_of_thread()->streams[way];
    if (stream != NULL)
        await(stream, operation);
}

/* Of this loop, for events of this way. NULL: it cannot be opened. */
cudaStream_t bell_of(int fd, way way) {
    std::lock_guard<std::mutex> lock(bells_mutex);
    bells *b = all_bells;
    while (b != NULL && b->fd != fd)
        b = b->next;
    if (b == NULL && (b = (bells *)calloc(1, sizeof *b)) != NULL) {
        b->fd = fd;
        b->next = all_bells;
        all_bells = b;
    }
    return b != NULL && open_stream(&b->streams[way], false) ? b->streams[way] : NULL;
}

} // namespace

struct sl_vec_event {
    cudaEvent_t cuda;
    way way;       /* the stream on which it was last recorded */
    bool notified; /* a notification was requested since */
    /* and ever, of a time when it was last recorded there; NULL: none was */
    cudaStream_t notified_on[WAYS];
};

/* Keeps the first failure. What fails while it is captured has failed as a capture alone. */
void cuda_remember(const char *what, const char *operation) {
    if (mine.notes) {
        mine.fails = true;
        cudaGetLastError();
        return;
    }
    std::lock_guard<std::mutex> lock(failure_mutex);
    if (failure == NULL) {
        failure = what;
        failed_operation = operation;
    }
}

cudaStream_t cuda_work(void) {
    return stream_of(WORK);
}

/* ---- the device ---- */

bool device_open(int index, char text[DEVICE_TEXT_MAX]) {
    chosen = index;
    const bool opened =
        check(cudaSetDevice(index), "choosing the device") &&
        check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "asking for priorities") &&
        check(cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, index),
              "asking for the size of its cache") &&
        pthread_key_create(&leaving, leave_lane) == 0 && lane_of_thread()->waited != NULL &&
        stream_of(WORK) != NULL;
    if (!opened)
        snprintf(text, DEVICE_TEXT_MAX, "cuda:%d: %s failed: %s", index,
                 failed_operation ? failed_operation : "creating a key",
                 failure ? failure : "no key is left");
    return opened;
}

/* The next call reports what failed on a stream. */
int device_status(char text[DEVICE_TEXT_MAX]) {
    const cudaError_t now = cudaStreamQuery(stream_of(WORK));
    cudaGetLastError(); /* cudaErrorNotReady would stay */
    check(now == cudaErrorNotReady ? cudaSuccess : now, "a kernel or copy");
    std::lock_guard<std::mutex> lock(failure_mutex);
    if (failure == NULL)
        return 0;
    snprintf(text, DEVICE_TEXT_MAX, "%s failed: %s", failed_operation, failure);
    return -1;
}

int device_fence(char text[DEVICE_TEXT_MAX]) {
    await_way(WORK, "a kernel or copy");
    await_way(IN, "a background copy to the device");
    await_way(OUT, "a background copy from the device");
    return device_status(text);
}

/* ---- memory ---- */

void device_expect(const void *memory) {
    (void)memory; /* a GPU faults */
}

/* The caller reports a lack of memory; anything else is a failure of the device. */
static bool allocated(cudaError_t result) {
    if (result == cudaSuccess)
        return true;
    cudaGetLastError();
    return result != cudaErrorMemoryAllocation && check(result, "allocating memory");
}

void *device_allocate(size_t bytes) {
    void *memory = NULL;
    lane_of_thread(); /* a new thread would allocate on device 0 */
    if (!allocated(cudaMalloc(&memory, bytes)))
        return NULL;
    device_clear(memory, bytes);
    return memory;
}

size_t device_free_bytes(void) {
    size_t left = 0, total = 0;
    lane_of_thread();
    check(cudaMemGetInfo(&left, &total), "asking for free memory");
    return left;
}

void device_release(void *memory) {
    check(cudaFree(memory), "releasing memory");
}

size_t device_cache_bytes(void) {
    return (size_t)cache_bytes;
}

void *device_allocate_host(size_t bytes) {
    void *memory = NULL;
    lane_of_thread();
    return allocated(cudaMallocHost(&memory, bytes)) ? memory : NULL;
}

void device_release_host(void *memory) {
    check(cudaFreeHost(memory), "releasing host memory");
}

void device_clear(void *memory, size_t bytes) {
    check(cudaMemsetAsync(memory, 0, bytes, stream_of(WORK)), "clearing memory");
}

/* Waits for every kind of `host` memory: CUDA does not promise that pageable memory was read on
 * return. */
void device_copy_in(void *to, const void *host, size_t bytes) {
    const cudaStream_t work = stream_of(WORK);
    check(cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, work), "a copy to the device");
    await(work, "a copy to the device");
}

void device_copy_in_later(void *to, const void *host, size_t bytes) {
    check(cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, stream_of(WORK)),
          "a copy to the device");
}

void device_copy(void *to, const void *from, size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_of(WORK)),
          "a copy on the device");
}

void device_copy_out(void *host, const void *from, size_t bytes) {
    const cudaStream_t work = stream_of(WORK);
    check(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, work),
          "a copy from the device");
    await(work, "a copy from the device");
}

void device_give_way(void) {
    mine.gives_way = true;
}

/* ---- background copies and events ---- */

void device_order_out(void) {
    const cudaStream_t work = stream_of(WORK), out = stream_of(OUT);
    const cudaEvent_t ready = lane_of_thread()->ready;
    check(cudaEventRecord(ready, work), "recording an event");
    check(cudaStreamWaitEvent(out, ready, 0), "waiting for an event");
}

void device_begin_copy_out(void *host, const void *from, size_t bytes) {
    check(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, stream_of(OUT)),
          "a background copy from the device");
}

static void record_event(sl_vec_event *event, way way) {
    event->way = way;
    event->notified = false;
    check(cudaEventRecord(event->cuda, stream_of(way)), "recording an event");
}

static cudaError_t copy_rows_in(const sl_vec_rows *c, cudaStream_t in) {
    return c->rows == 1 ? cudaMemcpyAsync(c->to, c->from, c->bytes, cudaMemcpyHostToDevice, in)
                        : cudaMemcpy2DAsync(c->to, c->to_step, c->from, c->from_step, c->bytes,
                                            c->rows, cudaMemcpyHostToDevice, in);
}

void device_begin_copies_in(const sl_vec_rows *copies, size_t count, sl_vec_event *after,
                            sl_vec_event *copied) {
    const cudaStream_t in = stream_of(IN);
    check(cudaStreamWaitEvent(in, after->cuda, 0), "waiting for an event");
    for (size_t i = 0; i < count; i++)
        check(copy_rows_in(&copies[i], in), "a background copy to the device");
    record_event(copied, IN);
}

sl_vec_event *device_event_open(void) {
    lane_of_thread();
    sl_vec_event *event = (sl_vec_event *)calloc(1, sizeof *event);
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
            await(event->notified_on[way], "a notice");
    check(cudaEventDestroy(event->cuda), "closing an event");
    free(event);
}

void device_event_record(sl_vec_event *event) {
    record_event(event, WORK);
}

void device_event_record_out(sl_vec_event *event) {
    record_event(event, OUT);
}

void device_event_follow(sl_vec_event *event) {
    check(cudaStreamWaitEvent(stream_of(WORK), event->cuda, 0), "waiting for an event");
}

void device_event_wait(sl_vec_event *event) {
    check(cudaEventSynchronize(event->cuda), "a kernel or copy");
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
    check(cudaStreamWaitEvent(stream, event->cuda, 0), "waiting for an event");
    check(cudaLaunchHostFunc(stream, notify, (void *)(intptr_t)notify_fd), "asking for a notice");
}

bool device_event_passed(sl_vec_event *event, int notify_fd) {
    const cudaError_t now = cudaEventQuery(event->cuda);
    if (now != cudaErrorNotReady) {
        check(now, "a kernel or copy");
        return true;
    }
    cudaGetLastError(); /* cudaErrorNotReady would stay */
    if (notify_fd > 0 && !event->notified)
        ask_for_notice(event, notify_fd);
    return false;
}

/* ---- repeated operations ---- */

struct sl_vec_graph {
    cudaGraphExec_t cuda;
};

/* Other threads go on as ever. What cannot be captured is no failure of the device. */
bool device_graph_begin(void) {
    const cudaError_t result =
        cudaStreamBeginCapture(stream_of(WORK), cudaStreamCaptureModeThreadLocal);
    if (result != cudaSuccess)
        cudaGetLastError();
    mine.notes = result == cudaSuccess;
    mine.fails = false;
    return mine.notes;
}

sl_vec_graph *device_graph_end(void) {
    cudaGraph_t noted = NULL;
    sl_vec_graph *graph = (sl_vec_graph *)calloc(1, sizeof *graph);
    cudaError_t result = cudaStreamEndCapture(stream_of(WORK), &noted);
    mine.notes = false;
    if (result == cudaSuccess && mine.fails)
        result = cudaErrorStreamCaptureInvalidated;
    if (result == cudaSuccess && graph != NULL)
        result = cudaGraphInstantiateWithFlags(&graph->cuda, noted, 0);
    if (noted != NULL)
        check(cudaGraphDestroy(noted), "releasing a graph");
    if (result == cudaSuccess && graph != NULL)
        return graph;
    cudaGetLastError();
    free(graph);
    return NULL;
}

void device_graph_run(sl_vec_graph *graph) {
    launches_count(LAUNCH_graph);
    check(cudaGraphLaunch(graph->cuda, stream_of(WORK)), "launching a graph");
}

void device_graph_close(sl_vec_graph *graph) {
    if (graph == NULL)
        return;
    await_way(WORK, "a kernel or copy");
    check(cudaGraphExecDestroy(graph->cuda), "releasing a graph");
    free(graph);
}

/* ---- streams and memory of others ---- */

bool device_guest_owns(const void *memory, char *text, size_t text_size) {
    cudaPointerAttributes at;
    const cudaError_t result = cudaPointerGetAttributes(&at, memory);
    if (result != cudaSuccess)
        cudaGetLastError();
    const bool of_device = result == cudaSuccess &&
                           (at.type == cudaMemoryTypeDevice || at.type == cudaMemoryTypeManaged);
    if (of_device && at.device == chosen)
        return true;
    if (of_device)
        snprintf(text, text_size, "memory of cuda:%d", at.device);
    else
        snprintf(text, text_size, "memory of the host");
    return false;
}

/* The default stream cannot be asked while another that it waits for is captured. */
bool device_guest_is_captured(void *stream) {
    const visit device;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t result = cudaStreamIsCapturing((cudaStream_t)stream, &status);
    if (result == cudaErrorStreamCaptureImplicit)
        cudaGetLastError();
    else
        check(result, "asking for captures");
    return result == cudaErrorStreamCaptureImplicit || status != cudaStreamCaptureStatusNone;
}

void device_guest_record(sl_vec_event *event, void *stream) {
    const visit device;
    check(cudaEventRecord(event->cuda, (cudaStream_t)stream), "recording an event");
}

void device_guest_follow(sl_vec_event *event, void *stream) {
    const visit device;
    check(cudaStreamWaitEvent((cudaStream_t)stream, event->cuda, 0), "waiting for an event");
}

void device_guest_enter(void *stream) {
    int before = 0;
    check(cudaGetDevice(&before), "asking for the device");
    const cudaStreamCaptureMode mode = exchange_mode(cudaStreamCaptureModeRelaxed);
    lane *l = lane_of_thread(); /* a new thread's first operation chooses the device */
    l->mode_before = mode;
    if (before != chosen)
        check(cudaSetDevice(chosen), "choosing the device");
    l->before = before;
    l->visited = (cudaStream_t)stream;
    l->visits = true;
}

void device_guest_leave(void) {
    mine.visits = false;
    if (mine.before != chosen)
        check(cudaSetDevice(mine.before), "choosing the device again");
    exchange_mode(mine.mode_before);
}

/* ---- kernels: all of the lists in kernels.h and layer_kernels.h, and their launches ---- */

/* On each multiprocessor: so a thread has at most 64 registers, whichever compiler chooses. */
enum { BLOCKS_AT_ONCE = 4 };

#define DEFINE_KERNEL(name)                                                                        \
    static __global__ __launch_bounds__(BLOCK_THREADS, BLOCKS_AT_ONCE) void kernel_##name(         \
        const __grid_constant__ name##_args arguments, size_t threads) {                           \
        const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;                            \
        if (i < threads)                                                                           \
            name(&arguments, i);                                                                   \
    }
SL_KERNELS(DEFINE_KERNEL)
SL_LAYER_KERNELS(DEFINE_KERNEL)

#define DEFINE_BLOCK_KERNEL(name)                                                                  \
    static __global__ __launch_bounds__(BLOCK_THREADS, BLOCKS_AT_ONCE) void kernel_##name(         \
        const __grid_constant__ name##_args arguments) {                                           \
        __shared__ name##_memory memory;                                                           \
        const block_place at = {threadIdx.x, blockIdx.x, gridDim.x};                               \
        SL_UNROLL(8)                                                                               \
        for (uint32_t phase = 0; phase < name##_PHASES; phase++) {                                 \
            name(&arguments, &memory, at, phase);                                                  \
            __syncthreads();                                                                       \
        }                                                                                          \
    }
SL_BLOCK_KERNELS(DEFINE_BLOCK_KERNEL)
SL_LAYER_BLOCK_KERNELS(DEFINE_BLOCK_KERNEL)

static unsigned blocks_for(size_t threads) {
    return (unsigned)((threads + BLOCK_THREADS - 1) / BLOCK_THREADS);
}

#define DEFINE_LAUNCH(name)                                                                        \
    void launch_##name(const name##_args *arguments, size_t threads) {                             \
        if (threads == 0)                                                                          \
            return;                                                                                \
        launches_count(LAUNCH_##name);                                                             \
        kernel_##name<<<blocks_for(threads), BLOCK_THREADS, 0, stream_of(WORK)>>>(*arguments,      \
                                                                                  threads);        \
        check(cudaGetLastError(), "launching " #name);                                             \
    }
SL_KERNELS(DEFINE_LAUNCH)
SL_LAYER_KERNELS(DEFINE_LAUNCH)

#define DEFINE_BLOCK_LAUNCH(name)                                                                  \
    void launch_##name(const name##_args *arguments, uint32_t blocks) {                            \
        if (blocks == 0)                                                                           \
            return;                                                                                \
        launches_count(LAUNCH_##name);                                                             \
        kernel_##name<<<blocks, BLOCK_THREADS, 0, stream_of(WORK)>>>(*arguments);                  \
        check(cudaGetLastError(), "launching " #name);                                             \
    }
SL_BLOCK_KERNELS(DEFINE_BLOCK_LAUNCH)
SL_LAYER_BLOCK_KERNELS(DEFINE_BLOCK_LAUNCH)
