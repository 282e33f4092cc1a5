/* kernels.c - see fake.h: all kernels on the host, in place of cuda.cu, and their launches. */
#include "gpu/emulated/kernels.h" /* before the kernels */

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "gpu/cuda.h"
#include "gpu/emulated/fake.h"

SL_KERNELS(DEFINE_SHARE)
SL_LAYER_KERNELS(DEFINE_SHARE)
SL_BLOCK_KERNELS(DEFINE_BLOCK_SHARE)
SL_LAYER_BLOCK_KERNELS(DEFINE_BLOCK_SHARE)

#define CHECK_BYTES(kernel)                                                                        \
    static_assert(sizeof(kernel##_args) <= HOST_KERNEL_BYTES_MAX, "the arguments of " #kernel);
SL_KERNELS(CHECK_BYTES)
SL_LAYER_KERNELS(CHECK_BYTES)
SL_BLOCK_KERNELS(CHECK_BYTES)
SL_LAYER_BLOCK_KERNELS(CHECK_BYTES)

#define ROW(kernel) [LAUNCH_##kernel] = {#kernel, sizeof(kernel##_args), false, share_##kernel},
#define BLOCK_ROW(kernel)                                                                          \
    [LAUNCH_##kernel] = {#kernel, sizeof(kernel##_args), true, share_##kernel},
static const host_kernel kernels[LAUNCHES] = {SL_KERNELS(ROW) SL_LAYER_KERNELS(
    ROW) SL_BLOCK_KERNELS(BLOCK_ROW) SL_LAYER_BLOCK_KERNELS(BLOCK_ROW)};

const void *cuda_kernel(launch kernel) {
    return &kernels[kernel];
}

typedef struct job {
    const host_kernel *kernel;
    size_t threads;
    _Alignas(max_align_t) char arguments[HOST_KERNEL_BYTES_MAX];
} job;
static_assert(sizeof(job) <= FAKE_BYTES_MAX, "a kernel's arguments fit");

static void do_launch(void *job_) {
    const job *j = job_;
    if (fake_kernel_begins())
        launch_run(j->kernel, j->arguments, j->threads);
}

/* Or blocks, where these are what counts. */
static size_t threads_of(const host_kernel *k, dim3 grid, dim3 block, void *const *arguments) {
    if (k->blocks && block.x != BLOCK_THREADS)
        fake_stop("a launch", "%s has blocks of %u threads", k->name, block.x);
    if (k->blocks)
        return grid.x;
    const size_t threads = *(const size_t *)arguments[1];
    if ((size_t)grid.x * block.x < threads)
        fake_stop("a launch", "%s has %zu threads, and %u blocks of %u", k->name, threads, grid.x,
                  block.x);
    return threads;
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t stream) {
    const host_kernel *k = kernel;
    fake_enter_device("a launch");
    /* A session moves its caller's x, on the caller's stream; all else is on streams of ours. */
    if (stream == NULL && strcmp(k->name, "combine_four") != 0)
        fake_stop("a launch", "%s is on the default stream", k->name);
    if (grid.x == 0 || grid.x > INT32_MAX || block.x > 1024 || grid.y * grid.z != 1 ||
        block.y * block.z != 1 || shared > 0)
        fake_stop("a launch", "%s has a grid of %u blocks of %u threads", k->name, grid.x, block.x);
    const cudaError_t result = fake_result(FAKE_LAUNCH);
    if (result != cudaSuccess)
        fake_spoil_capture();
    if (result != cudaSuccess)
        return result;
    job j = {.kernel = k, .threads = threads_of(k, grid, block, arguments)};
    memcpy(j.arguments, arguments[0], k->bytes);
    fake_give(stream, do_launch, &j, sizeof j);
    return cudaSuccess;
}
