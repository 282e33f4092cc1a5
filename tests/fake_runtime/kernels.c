/* kernels.c - see fake.h: kernels by their names, and their work on the host. */
#include "fake.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/emulated_launch.h"
#include "gpu/launches.h"

enum { KERNELS_MAX = 256 };

/* What nvcc registers before main. */
static struct {
    const void *stub;
    const host_kernel *kernel;
} kernels[KERNELS_MAX];
static int kernel_count;

typedef struct configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} configuration;
static _Thread_local configuration next;

void **__cudaRegisterFatBinary(void *binary);
void **__cudaRegisterFatBinary(void *binary) {
    static void *handle;
    handle = binary;
    return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFatBinaryEnd(void **handle) {
    (void)handle;
}

char __cudaInitModule(void **handle); /* without optimization */
char __cudaInitModule(void **handle) {
    return handle != NULL;
}

void __cudaUnregisterFatBinary(void **handle);
void __cudaUnregisterFatBinary(void **handle) {
    (void)handle;
}

/* A mangled name holds the name's length, and then the name: ...16kernel_pool_mean... */
static const host_kernel *kernel_of(const char *mangled) {
    static const char prefix[] = "kernel_";
    const char *at = strstr(mangled, prefix), *digits = at;
    while (at != NULL && digits > mangled && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    const size_t length = at != NULL ? strtoul(digits, NULL, 10) : 0;
    for (const host_kernel *k = host_kernels; k < host_kernels + LAUNCH_product; k++)
        if (length == strlen(prefix) + strlen(k->name) &&
            memcmp(at + strlen(prefix), k->name, strlen(k->name)) == 0)
            return k;
    fake_stop("__cudaRegisterFunction", "%s is no kernel of Starling", mangled);
}

void __cudaRegisterFunction(void **handle, const char *stub, char *on_device, const char *name,
                            int limit, void *thread, void *block, void *blocks, void *grid,
                            int *warp);
void __cudaRegisterFunction(void **handle, const char *stub, char *on_device, const char *name,
                            int limit, void *thread, void *block, void *blocks, void *grid,
                            int *warp) {
    (void)handle, (void)on_device, (void)limit, (void)thread, (void)block, (void)blocks, (void)grid,
        (void)warp;
    if (kernel_count == KERNELS_MAX)
        fake_stop("__cudaRegisterFunction", "more than %d kernels", KERNELS_MAX);
    kernels[kernel_count].stub = stub;
    kernels[kernel_count++].kernel = kernel_of(name);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
    next = (configuration){grid, block, shared, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    *grid = next.grid;
    *block = next.block;
    *shared = next.shared;
    *(cudaStream_t *)stream = next.stream;
    return cudaSuccess;
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

static const host_kernel *find(const void *stub) {
    for (int i = 0; i < kernel_count; i++)
        if (kernels[i].stub == stub)
            return kernels[i].kernel;
    fake_stop("a launch", "the kernel is not registered");
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

static cudaError_t launch_kernel(const host_kernel *k, dim3 grid, dim3 block, void **arguments,
                                 size_t shared, cudaStream_t stream) {
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

/* How toolkits launch: by the stub, or, newer ones, by a handle that they ask for first. */
cudaError_t cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t stream) {
    return launch_kernel(find(stub), grid, block, arguments, shared, stream);
}

cudaError_t __cudaGetKernel(const host_kernel **out, const void *stub);
cudaError_t __cudaGetKernel(const host_kernel **out, const void *stub) {
    *out = find(stub);
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(const host_kernel *kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel(const host_kernel *kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream) {
    return launch_kernel(kernel, grid, block, arguments, shared, stream);
}
