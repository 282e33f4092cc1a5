/* launches.c - see fake.h: kernels by their names, and their work on the host. */
#include "fake.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/emulated_launch.h" /* before the kernels: it is told what they read as constant */

#include "gpu/kernels.h"
#include "gpu/layer_kernels.h"

enum { KERNELS_MAX = 256 };

typedef struct body {
    const char *name;
    size_t bytes; /* of its arguments */
    bool blocks;  /* its threads work together */
    launch_kernel *run;
} body;

bool launch_watches;
void launch_note_read(const float *at, size_t count) {
    (void)at, (void)count;
}

SL_KERNELS(DEFINE_SHARE)
SL_LAYER_KERNELS(DEFINE_SHARE)
SL_BLOCK_KERNELS(DEFINE_BLOCK_SHARE)
SL_LAYER_BLOCK_KERNELS(DEFINE_BLOCK_SHARE)

#define ROW(kernel) {#kernel, sizeof(kernel##_args), false, share_##kernel},
#define BLOCK_ROW(kernel) {#kernel, sizeof(kernel##_args), true, share_##kernel},
static const body bodies[] = {SL_KERNELS(ROW) SL_LAYER_KERNELS(ROW) SL_BLOCK_KERNELS(BLOCK_ROW)
                                  SL_LAYER_BLOCK_KERNELS(BLOCK_ROW)};

/* What nvcc registers before main. */
static struct {
    const void *stub;
    const body *body;
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
static const body *body_of(const char *mangled) {
    static const char prefix[] = "kernel_";
    const char *at = strstr(mangled, prefix), *digits = at;
    while (at != NULL && digits > mangled && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    const size_t length = at != NULL ? strtoul(digits, NULL, 10) : 0;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (length == strlen(prefix) + strlen(bodies[i].name) &&
            memcmp(at + strlen(prefix), bodies[i].name, strlen(bodies[i].name)) == 0)
            return &bodies[i];
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
    kernels[kernel_count++].body = body_of(name);
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

typedef struct launch {
    const body *body;
    size_t threads;
    _Alignas(max_align_t) char arguments[FAKE_BYTES_MAX - 2 * sizeof(size_t)];
} launch;

static void do_launch(void *launch_) {
    const launch *l = launch_;
    if (fake_kernel_begins())
        l->body->run(l->arguments,
                     &(launch_share){.to = l->threads, .stride = 1, .count = l->threads});
}

static const body *find(const void *stub) {
    for (int i = 0; i < kernel_count; i++)
        if (kernels[i].stub == stub)
            return kernels[i].body;
    fake_stop("a launch", "the kernel is not registered");
}

/* Or blocks, where these are what counts. */
static size_t threads_of(const body *b, dim3 grid, dim3 block, void *const *arguments) {
    if (b->blocks && block.x != BLOCK_THREADS)
        fake_stop("a launch", "%s has blocks of %u threads", b->name, block.x);
    if (b->blocks)
        return grid.x;
    const size_t threads = *(const size_t *)arguments[1];
    if ((size_t)grid.x * block.x < threads)
        fake_stop("a launch", "%s has %zu threads, and %u blocks of %u", b->name, threads, grid.x,
                  block.x);
    return threads;
}

static cudaError_t launch_body(const body *b, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream) {
    fake_enter_device("a launch");
    if (stream == NULL)
        fake_stop("a launch", "%s is on the default stream", b->name);
    if (grid.x == 0 || grid.x > INT32_MAX || block.x > 1024 || grid.y * grid.z != 1 ||
        block.y * block.z != 1 || shared > 0)
        fake_stop("a launch", "%s has a grid of %u blocks of %u threads", b->name, grid.x, block.x);
    const cudaError_t result = fake_result(FAKE_LAUNCH);
    if (result != cudaSuccess)
        return result;
    launch l = {.body = b, .threads = threads_of(b, grid, block, arguments)};
    if (b->bytes > sizeof l.arguments)
        fake_stop("a launch", "%s has %zu bytes of arguments", b->name, b->bytes);
    memcpy(l.arguments, arguments[0], b->bytes);
    fake_give(stream, do_launch, &l, sizeof l);
    return cudaSuccess;
}

/* How toolkits launch: by the stub, or, newer ones, by a handle that they ask for first. */
cudaError_t cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t stream) {
    return launch_body(find(stub), grid, block, arguments, shared, stream);
}

cudaError_t __cudaGetKernel(const body **out, const void *stub);
cudaError_t __cudaGetKernel(const body **out, const void *stub) {
    *out = find(stub);
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(const body *kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel(const body *kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream) {
    return launch_body(kernel, grid, block, arguments, shared, stream);
}
