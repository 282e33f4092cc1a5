/* cuda.cu - an NVIDIA GPU: memory, streams, and the kernels of kernels.h.
 *
 * Everything runs on one stream, in order; copies to the host that go on in the background run on a second one, behind what the first had been
 * given when they were asked for. The runtime is linked into the plug-in, so that only the driver has to be there.
 */
#include <cuda_runtime.h>

#include <mutex>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/device.h"

enum { THREADS_OF_BLOCK = 256, COUNTING_BLOCKS = 1024, CAPABILITY_MAJOR_MIN = 8 };

namespace {

int chosen; /* device; a thread's own choice begins at 0 */
cudaStream_t work, way_out;
cudaEvent_t ready; /* what `work` had been given when the last background copy was asked for */
std::mutex failure_mutex;
cudaError_t failure = cudaSuccess;
const char *failed_operation;

/* The first failure is kept. */
bool check(cudaError_t result, const char *operation) {
    if (result == cudaSuccess)
        return true;
    std::lock_guard<std::mutex> lock(failure_mutex);
    if (failure == cudaSuccess) {
        failure = result;
        failed_operation = operation;
    }
    return false;
}

} // namespace

struct device_mark {
    cudaEvent_t event;
};

/* ---- devices ---- */

int device_count(char text[DEVICE_TEXT_MAX]) {
    int count = 0;
    cudaError_t result = cudaGetDeviceCount(&count);
    cudaGetLastError();
    if (result == cudaSuccess && count > 0)
        return count;
    if (result == cudaErrorInsufficientDriver)
        snprintf(text, DEVICE_TEXT_MAX, "no NVIDIA driver, or one that is older than CUDA %d.%d", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    else
        snprintf(text, DEVICE_TEXT_MAX, "%s", result == cudaSuccess ? "no NVIDIA GPU" : cudaGetErrorString(result));
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
        snprintf(text, DEVICE_TEXT_MAX, "cuda:%d (%.100s) has compute capability %d.%d; %d.0 or more is needed", index, p.name, p.major, p.minor,
                 CAPABILITY_MAJOR_MIN);
    return p.major >= CAPABILITY_MAJOR_MIN;
}

bool device_open(int index, char text[DEVICE_TEXT_MAX]) {
    chosen = index;
    bool opened = check(cudaSetDevice(index), "choosing the device") &&
                  check(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking), "creating a stream") &&
                  check(cudaStreamCreateWithFlags(&way_out, cudaStreamNonBlocking), "creating a stream") &&
                  check(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming), "creating an event");
    if (!opened)
        snprintf(text, DEVICE_TEXT_MAX, "cuda:%d: %s failed: %s", index, failed_operation, cudaGetErrorString(failure));
    return opened;
}

int device_status(char text[DEVICE_TEXT_MAX]) {
    check(cudaStreamSynchronize(work), "a kernel or copy");
    std::lock_guard<std::mutex> lock(failure_mutex);
    if (failure == cudaSuccess)
        return 0;
    snprintf(text, DEVICE_TEXT_MAX, "%s failed: %s", failed_operation, cudaGetErrorString(failure));
    return -1;
}

/* ---- memory ---- */

void device_expect(const void *memory) {
    (void)memory; /* the GPU finds out */
}

void *device_allocate(size_t bytes) {
    void *memory = NULL;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) {
        cudaGetLastError(); /* the caller says that memory is short */
        return NULL;
    }
    device_clear(memory, bytes);
    return memory;
}

void device_release(void *memory) {
    check(cudaFree(memory), "releasing memory");
}

void *device_allocate_host(size_t bytes) {
    void *memory = NULL;
    if (cudaMallocHost(&memory, bytes) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    return memory;
}

void device_release_host(void *memory) {
    check(cudaFreeHost(memory), "releasing host memory");
}

void device_clear(void *memory, size_t bytes) {
    check(cudaMemsetAsync(memory, 0, bytes, work), "clearing memory");
}

/* From pageable memory the call returns when the bytes have been taken; page-locked memory is read later, and waited for. */
void device_copy_in(void *to, const void *host, size_t bytes) {
    cudaPointerAttributes attributes;
    check(cudaSetDevice(chosen), "choosing the device");
    check(cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, work), "a copy to the device");
    if (check(cudaPointerGetAttributes(&attributes, host), "looking at host memory") && attributes.type != cudaMemoryTypeUnregistered)
        check(cudaStreamSynchronize(work), "a copy to the device");
}

void device_copy_out(void *host, const void *from, size_t bytes) {
    check(cudaSetDevice(chosen), "choosing the device");
    check(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, work), "a copy from the device");
    check(cudaStreamSynchronize(work), "a copy from the device");
}

void device_begin_copy_out(void *host, const void *from, size_t bytes) {
    check(cudaEventRecord(ready, work), "recording an event");
    check(cudaStreamWaitEvent(way_out, ready, 0), "waiting for an event");
    check(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, way_out), "a background copy from the device");
}

device_mark *device_mark_open(void) {
    device_mark *mark = (device_mark *)calloc(1, sizeof *mark);
    if (mark != NULL && !check(cudaEventCreateWithFlags(&mark->event, cudaEventDisableTiming), "creating an event")) {
        free(mark);
        return NULL;
    }
    return mark;
}

void device_mark_close(device_mark *mark) {
    if (mark != NULL)
        check(cudaEventDestroy(mark->event), "closing an event");
    free(mark);
}

void device_mark_set(device_mark *mark) {
    check(cudaEventRecord(mark->event, way_out), "recording an event");
}

void device_mark_wait(device_mark *mark) {
    check(cudaEventSynchronize(mark->event), "a background copy from the device");
}

/* ---- kernels ---- */

#define DEFINE_KERNEL(name)                                                                                    \
    static __global__ void kernel_##name(const __grid_constant__ name##_args arguments, size_t threads) {       \
        const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;                                        \
        if (i < threads)                                                                                       \
            name(&arguments, i);                                                                               \
    }
SL_KERNELS(DEFINE_KERNEL)

/* The histogram of one digit: a block counts in its own memory first, for most elements share a few classes. */
static __global__ void kernel_count_digits(const __grid_constant__ count_digits_args a) {
    __shared__ uint32_t classes[DIGIT_CLASSES];
    for (uint32_t c = threadIdx.x; c < DIGIT_CLASSES; c += blockDim.x)
        classes[c] = 0;
    __syncthreads();
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.count; i += (size_t)gridDim.x * blockDim.x) {
        const uint32_t c = class_of(&a, i);
        if (c < DIGIT_CLASSES)
            atomicAdd(&classes[c], 1);
    }
    __syncthreads();
    for (uint32_t c = threadIdx.x; c < DIGIT_CLASSES; c += blockDim.x)
        if (classes[c] > 0)
            atomicAdd(&a.classes[c], classes[c]);
}

static unsigned blocks_for(size_t threads) {
    return (unsigned)((threads + THREADS_OF_BLOCK - 1) / THREADS_OF_BLOCK);
}

#define DEFINE_LAUNCH(name)                                                                          \
    void launch_##name(const name##_args *arguments, size_t threads) {                               \
        if (threads == 0)                                                                            \
            return;                                                                                  \
        kernel_##name<<<blocks_for(threads), THREADS_OF_BLOCK, 0, work>>>(*arguments, threads);       \
        check(cudaGetLastError(), "launching " #name);                                               \
    }
SL_KERNELS(DEFINE_LAUNCH)

void launch_count_digits(const count_digits_args *arguments, size_t threads) {
    const unsigned blocks = blocks_for(threads);
    kernel_count_digits<<<blocks < COUNTING_BLOCKS ? blocks : (unsigned)COUNTING_BLOCKS, THREADS_OF_BLOCK, 0, work>>>(*arguments);
    check(cudaGetLastError(), "launching count_digits");
}
