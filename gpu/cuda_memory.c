/* cuda_memory.c - a GPU's memory, what is noted to be repeated, and streams and memory of others.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gpu/cuda.h"

/* ---- memory ---- */

/* The caller reports a lack of memory; anything else is a failure of the device. */
static bool allocated(cudaError_t result) {
    if (result == cudaSuccess)
        return true;
    cudaGetLastError();
    return result != cudaErrorMemoryAllocation && cuda_check(result, "allocating memory");
}

void *device_allocate(size_t bytes) {
    void *memory = NULL;
    cuda_lane(); /* a new thread would allocate on device 0 */
    if (!allocated(cudaMalloc(&memory, bytes)))
        return NULL;
    device_clear(memory, bytes);
    return memory;
}

size_t device_free_bytes(void) {
    size_t left = 0, total = 0;
    cuda_lane();
    cuda_check(cudaMemGetInfo(&left, &total), "asking for free memory");
    return left;
}

void device_release(void *memory) {
    cuda_check(cudaFree(memory), "releasing memory");
}

void *device_allocate_host(size_t bytes) {
    void *memory = NULL;
    cuda_lane();
    return allocated(cudaMallocHost(&memory, bytes)) ? memory : NULL;
}

void device_release_host(void *memory) {
    cuda_check(cudaFreeHost(memory), "releasing host memory");
}

void device_clear(void *memory, size_t bytes) {
    cuda_check(cudaMemsetAsync(memory, 0, bytes, cuda_stream(WORK)), "clearing memory");
}

void device_copy_in_later(void *to, const void *host, size_t bytes) {
    cuda_check(cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, cuda_stream(WORK)),
               "a copy to the device");
}

/* Waits for every kind of `host` memory: CUDA does not promise that pageable memory was read on
 * return. */
void device_copy_in(void *to, const void *host, size_t bytes) {
    device_copy_in_later(to, host, bytes);
    cuda_await(cuda_stream(WORK), "a copy to the device");
}

void device_copy(void *to, const void *from, size_t bytes) {
    cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda_stream(WORK)),
               "a copy on the device");
}

void device_copy_out(void *host, const void *from, size_t bytes) {
    const cudaStream_t work = cuda_stream(WORK);
    cuda_check(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, work),
               "a copy from the device");
    cuda_await(work, "a copy from the device");
}

/* ---- repeated operations ---- */

struct sl_vec_graph {
    cudaGraphExec_t cuda;
};

/* Other threads go on as ever. What cannot be captured is no failure of the device. */
bool device_graph_begin(void) {
    lane *l = cuda_lane();
    const cudaError_t result =
        cudaStreamBeginCapture(cuda_stream(WORK), cudaStreamCaptureModeThreadLocal);
    if (result != cudaSuccess)
        cudaGetLastError();
    l->notes = result == cudaSuccess;
    l->fails = false;
    return l->notes;
}

sl_vec_graph *device_graph_end(void) {
    lane *l = cuda_lane();
    cudaGraph_t noted = NULL;
    sl_vec_graph *graph = calloc(1, sizeof *graph);
    cudaError_t result = cudaStreamEndCapture(cuda_stream(WORK), &noted);
    l->notes = false;
    if (result == cudaSuccess && l->fails)
        result = cudaErrorStreamCaptureInvalidated;
    if (result == cudaSuccess && graph != NULL)
        result = cudaGraphInstantiateWithFlags(&graph->cuda, noted, 0);
    if (noted != NULL)
        cuda_check(cudaGraphDestroy(noted), "releasing a graph");
    if (result == cudaSuccess && graph != NULL)
        return graph;
    cudaGetLastError();
    free(graph);
    return NULL;
}

void device_graph_run(sl_vec_graph *graph) {
    launches_count(LAUNCH_graph);
    cuda_check(cudaGraphLaunch(graph->cuda, cuda_stream(WORK)), "launching a graph");
}

void device_graph_close(sl_vec_graph *graph) {
    if (graph == NULL)
        return;
    cuda_await(cuda_stream(WORK), "a kernel or copy");
    cuda_check(cudaGraphExecDestroy(graph->cuda), "releasing a graph");
    free(graph);
}

/* ---- streams and memory of others ---- */

/* A thread that is not ours keeps the device that it has chosen, and its mode. */
typedef struct visit {
    int before;
    enum cudaStreamCaptureMode mode;
} visit;

static visit begin_visit(void) {
    visit v = {.mode = cuda_exchange_mode(cudaStreamCaptureModeRelaxed)};
    cuda_check(cudaGetDevice(&v.before), "asking for the device");
    if (v.before != cuda_chosen())
        cuda_check(cudaSetDevice(cuda_chosen()), "choosing the device");
    return v;
}

static void end_visit(visit v) {
    if (v.before != cuda_chosen())
        cuda_check(cudaSetDevice(v.before), "choosing the device again");
    cuda_exchange_mode(v.mode);
}

bool device_guest_owns(const void *memory, char *text, size_t text_size) {
    struct cudaPointerAttributes at;
    const cudaError_t result = cudaPointerGetAttributes(&at, memory);
    if (result != cudaSuccess)
        cudaGetLastError();
    const bool of_device = result == cudaSuccess &&
                           (at.type == cudaMemoryTypeDevice || at.type == cudaMemoryTypeManaged);
    if (of_device && at.device == cuda_chosen())
        return true;
    if (of_device)
        snprintf(text, text_size, "memory of cuda:%d", at.device);
    else
        snprintf(text, text_size, "memory of the host");
    return false;
}

/* The default stream cannot be asked while another that it waits for is captured. */
bool device_guest_is_captured(void *stream) {
    const visit v = begin_visit();
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t result = cudaStreamIsCapturing((cudaStream_t)stream, &status);
    if (result == cudaErrorStreamCaptureImplicit)
        cudaGetLastError();
    else
        cuda_check(result, "asking for captures");
    end_visit(v);
    return result == cudaErrorStreamCaptureImplicit || status != cudaStreamCaptureStatusNone;
}

void device_guest_record(sl_vec_event *event, void *stream) {
    const visit v = begin_visit();
    cuda_check(cudaEventRecord(event->cuda, (cudaStream_t)stream), "recording an event");
    end_visit(v);
}

void device_guest_follow(sl_vec_event *event, void *stream) {
    const visit v = begin_visit();
    cuda_check(cudaStreamWaitEvent((cudaStream_t)stream, event->cuda, 0), "waiting for an event");
    end_visit(v);
}

void device_guest_enter(void *stream) {
    const visit v = begin_visit();
    lane *l = cuda_lane(); /* a new thread's first operation chooses the device */
    l->before = v.before;
    l->mode_before = v.mode;
    l->visited = (cudaStream_t)stream;
    l->visits = true;
}

void device_guest_leave(void) {
    lane *l = cuda_lane();
    l->visits = false;
    end_visit((visit){l->before, l->mode_before});
}
