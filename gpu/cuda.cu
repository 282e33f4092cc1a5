/* cuda.cu - an NVIDIA GPU: memory, streams, the kernels of kernels.h and layer_kernels.h, and
 * matrix products by cuBLAS.
 *
 * A thread's lane is three streams: operations, copies in, copies out. Notifications have streams
 * of their own, one for each of the three kinds, since events of one kind pass in the order in
 * which they were set. So a host callback delays neither copies nor kernels. Waiting is for events
 * that sleep and do not spin; the device's own flags, which are all of the process's, stay as they
 * are. The CUDA runtime is linked statically: only the driver must be installed. */
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <mutex>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "gpu/device.h"
#include "gpu/launches.h"

/* The work space that cuBLAS takes on these GPUs by default. It is passed in, so that results do
 * not depend on what else runs. */
#define PRODUCT_BYTES ((size_t)32 << 20)

enum { CAPABILITY_MAJOR_MIN = 8 };

namespace {

enum way { WORK, IN, OUT, WAYS };

/* Streams are opened on first use: a GPU runs eight at a time by default, and further ones wait. */
struct lane {
    bool entered, gives_way;
    cudaStream_t streams[WAYS]; /* NULL: not used yet */
    cudaEvent_t ready;  /* the state of `work` at the last request for a background copy out */
    cudaEvent_t waited; /* what the thread waits for */
    bool visits;        /* its operations are work of `visited`, a stream of others */
    cudaStream_t visited;
    int before; /* then: the thread's own current device */
};

int lowest, highest; /* priorities of streams; the highest is the least number */
int cache_bytes;
int chosen; /* device; a new thread's current device is 0 */
pthread_key_t leaving;
cudaStream_t notices[WAYS];
thread_local lane mine;
cublasHandle_t products;
cudaStream_t products_on; /* its current stream */
void *products_space;
std::mutex failure_mutex;
const char *failure, *failed_operation; /* NULL: none */

/* Keeps the first failure. */
void remember(const char *what, const char *operation) {
    std::lock_guard<std::mutex> lock(failure_mutex);
    if (failure == NULL) {
        failure = what;
        failed_operation = operation;
    }
}

bool check(cudaError_t result, const char *operation) {
    if (result != cudaSuccess)
        remember(cudaGetErrorString(result), operation);
    return result == cudaSuccess;
}

bool check(cublasStatus_t result, const char *operation) {
    if (result != CUBLAS_STATUS_SUCCESS)
        remember(cublasGetStatusString(result), operation);
    return result == CUBLAS_STATUS_SUCCESS;
}

/* Products in single precision (no TF32). cuBLAS fixes the order of sums by shape. */
bool open_products(void) {
    return check(cublasCreate(&products), "opening cuBLAS") &&
           check(cublasSetMathMode(products, CUBLAS_DEFAULT_MATH), "opening cuBLAS") &&
           check(cublasSetAtomicsMode(products, CUBLAS_ATOMICS_NOT_ALLOWED), "opening cuBLAS");
}

/* Setting the stream makes cuBLAS drop its work space. */
void put_products_on(cudaStream_t stream) {
    if (stream == products_on)
        return;
    products_on = stream;
    check(cublasSetStream(products, stream), "choosing cuBLAS's stream");
    check(cublasSetWorkspace(products, products_space, PRODUCT_BYTES), "choosing cuBLAS's memory");
}

/* A thread that is not ours keeps the device that it has chosen. */
class visit {
    int before = 0;

  public:
    visit() {
        check(cudaGetDevice(&before), "asking for the device");
        if (before != chosen)
            check(cudaSetDevice(chosen), "choosing the device");
    }
    ~visit() {
        if (before != chosen)
            check(cudaSetDevice(before), "choosing the device again");
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

} // namespace

struct sl_vec_event {
    cudaEvent_t cuda;
    way way;                /* the stream on which it was last recorded */
    bool notified;          /* a notification was requested since */
    bool notified_on[WAYS]; /* and ever, of a time when it was last recorded there */
};

/* ---- devices ---- */

/* Why there is no GPU; a list of those that this process may see may name none that is there: an
 * index, the UUID of a GPU or of a part of one (MIG). */
static void explain_none(cudaError_t result, char text[DEVICE_TEXT_MAX]) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    const bool none = result == cudaSuccess || result == cudaErrorNoDevice;
    if (result == cudaErrorInsufficientDriver)
        snprintf(text, DEVICE_TEXT_MAX, "no NVIDIA driver, or one that is older than CUDA %d.%d",
                 CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    else if (none && visible != NULL)
        snprintf(
            text, DEVICE_TEXT_MAX,
            "no NVIDIA GPU that CUDA_VISIBLE_DEVICES=\"%.100s\" names; \"nvidia-smi -L\" lists "
            "indices and UUIDs, those of MIG parts too",
            visible);
    else
        snprintf(text, DEVICE_TEXT_MAX, "%s", none ? "no NVIDIA GPU" : cudaGetErrorString(result));
}

int device_count(char text[DEVICE_TEXT_MAX]) {
    int count = 0;
    cudaError_t result = cudaGetDeviceCount(&count);
    cudaGetLastError();
    if (result == cudaSuccess && count > 0)
        return count;
    explain_none(result, text);
    return 0;
}

bool device_describe(int index, device_properties *out, char text[DEVICE_TEXT_MAX]) {
    cudaDeviceProp p;
    cudaError_t result = cudaGetDeviceProperties(&p, index);
    if (result != cudaSuccess) {
        cudaGetLastError();
        snprintf(text, DEVICE_TEXT_MAX, "cuda:%d: %s", index, cudaGetErrorString(result));
        return false;
    }
    snprintf(out->name, sizeof out->name, "%s", p.name);
    out->major = p.major;
    out->minor = p.minor;
    out->bytes = p.totalGlobalMem;
    out->emulated = false;
    if (p.major < CAPABILITY_MAJOR_MIN)
        snprintf(text, DEVICE_TEXT_MAX,
                 "cuda:%d (%.100s) has compute capability %d.%d; %d.0 or more is needed", index,
                 p.name, p.major, p.minor, CAPABILITY_MAJOR_MIN);
    return p.major >= CAPABILITY_MAJOR_MIN;
}

bool device_open(int index, char text[DEVICE_TEXT_MAX]) {
    chosen = index;
    const bool opened =
        check(cudaSetDevice(index), "choosing the device") &&
        check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "asking for priorities") &&
        check(cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, index),
              "asking for the size of its cache") &&
        open_stream(&notices[WORK], false) && open_stream(&notices[IN], false) &&
        open_stream(&notices[OUT], false) && pthread_key_create(&leaving, leave_lane) == 0 &&
        lane_of_thread()->waited != NULL && open_products();
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
        if (event->notified_on[way])
            await(notices[way], "a notice");
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

bool device_event_passed(sl_vec_event *event, int notify_fd) {
    const cudaError_t now = cudaEventQuery(event->cuda);
    if (now != cudaErrorNotReady) {
        check(now, "a kernel or copy");
        return true;
    }
    cudaGetLastError(); /* cudaErrorNotReady would stay */
    if (notify_fd > 0 && !event->notified) {
        event->notified = event->notified_on[event->way] = true;
        check(cudaStreamWaitEvent(notices[event->way], event->cuda, 0), "waiting for an event");
        check(cudaLaunchHostFunc(notices[event->way], notify, (void *)(intptr_t)notify_fd),
              "asking for a notice");
    }
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
    return result == cudaSuccess;
}

sl_vec_graph *device_graph_end(void) {
    cudaGraph_t noted = NULL;
    sl_vec_graph *graph = (sl_vec_graph *)calloc(1, sizeof *graph);
    cudaError_t result = cudaStreamEndCapture(stream_of(WORK), &noted);
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
    lane *l = lane_of_thread(); /* a new thread's first operation chooses the device */
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
}

/* ---- kernels: all of the lists in kernels.h and layer_kernels.h, and their launches ---- */

#define DEFINE_KERNEL(name)                                                                        \
    static __global__ __launch_bounds__(BLOCK_THREADS) void kernel_##name(                         \
        const __grid_constant__ name##_args arguments, size_t threads) {                           \
        const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;                            \
        if (i < threads)                                                                           \
            name(&arguments, i);                                                                   \
    }
SL_KERNELS(DEFINE_KERNEL)
SL_LAYER_KERNELS(DEFINE_KERNEL)

#define DEFINE_BLOCK_KERNEL(name)                                                                  \
    static __global__ __launch_bounds__(BLOCK_THREADS) void kernel_##name(                         \
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

/* ---- matrix products ---- */

size_t device_product_bytes(void) {
    return PRODUCT_BYTES;
}

void device_place_products(void *memory) {
    products_space = memory;
}

/* cuBLAS is column-major. Row-major data is the transpose, and c^T = b^T a^T. A batch of one may
 * be split along k. */
void device_multiply(const device_product *p) {
    static const float zero = 0, one = 1;
    const cublasOperation_t b = p->b.turned ? CUBLAS_OP_T : CUBLAS_OP_N,
                            a = p->a.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int n = (int)p->n, m = (int)p->m, k = (int)p->k, b_line = (int)p->b.line,
              a_line = (int)p->a.line, c_line = (int)p->c_line;
    const float *kept = p->add ? &one : &zero;
    launches_count(LAUNCH_product);
    put_products_on(stream_of(WORK));
    if (p->count == 1)
        check(cublasSgemm(products, b, a, n, m, k, &p->scale, p->b.at, b_line, p->a.at, a_line,
                          kept, p->c, c_line),
              "a matrix product");
    else
        check(cublasSgemmStridedBatched(products, b, a, n, m, k, &p->scale, p->b.at, b_line,
                                        (long long)p->b.step, p->a.at, a_line, (long long)p->a.step,
                                        kept, p->c, c_line, (long long)p->c_step, (int)p->count),
              "a matrix product");
}
