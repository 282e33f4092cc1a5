/* runtime.c - see fake.h: the rules, devices and memory. */
#include "fake.h"

#include <pthread.h>
#include <search.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/emulated_cache.h"
#include "gpu/launches.h"

enum { DEVICES_MAX = 2, DEVICE_BYTES_LOG2 = 33, GARBAGE = 0xA5 };

typedef struct block {
    const char *at;
    size_t bytes;
    bool of_host;
    int device;
} block;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *blocks; /* a tree of tsearch(3) */
static size_t taken;
static int counts[FAKE_THINGS];
static cudaError_t failing[FAKE_CALLS], count_result;
static int devices = DEVICES_MAX, capability = 9;
static atomic_int broken; /* a cudaError_t that stays */

static _Thread_local cudaError_t last;
_Thread_local fake_thread fake_mine = {.device = -1};

/* ---- rules ---- */

void fake_stop(const char *function, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "fake CUDA runtime: %s: ", function);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

void fake_enter(const char *function) {
    costs_count(COST_CALLS, 1);
    if (fake_mine.in_callback)
        fake_stop(function, "called from a callback");
    if (fake_mine.to_wait_for != NULL || fake_mine.to_wait_with != NULL)
        fake_stop(function, "called before the copy of memory that is not page-locked is waited "
                            "for");
}

/* As fake_enter, for what acts on the thread's device. */
void fake_enter_device(const char *function) {
    fake_enter(function);
    if (fake_mine.device < 0)
        fake_stop(function, "the thread has chosen no device");
}

void fake_expect_no_capture(const char *function) {
    if (fake_mine.captured != NULL)
        fake_stop(function, "called while a stream is captured");
}

cudaError_t fake_keep(cudaError_t result) {
    if (result != cudaSuccess)
        last = result;
    return result;
}

cudaError_t fake_stays(void) {
    return (cudaError_t)atomic_load(&broken);
}

void fake_break(cudaError_t error) {
    atomic_store(&broken, error);
}

cudaError_t fake_result(fake_call call) {
    pthread_mutex_lock(&mutex);
    const cudaError_t result = failing[call];
    failing[call] = cudaSuccess;
    pthread_mutex_unlock(&mutex);
    if (result == cudaErrorIllegalAddress)
        fake_break(result);
    return fake_keep(fake_stays() != cudaSuccess ? fake_stays() : result);
}

cudaError_t fake_begin(const char *function, fake_call call) {
    fake_enter_device(function);
    return fake_result(call);
}

/* ---- what a test sets and asks for ---- */

void fake_fail(fake_call call, cudaError_t error) {
    pthread_mutex_lock(&mutex);
    failing[call] = error;
    pthread_mutex_unlock(&mutex);
}

void fake_set_devices(int count, cudaError_t result) {
    devices = count;
    count_result = result;
}

void fake_set_capability(int major) {
    capability = major;
}

int fake_count(fake_thing what) {
    pthread_mutex_lock(&mutex);
    const int now = counts[what];
    pthread_mutex_unlock(&mutex);
    return now;
}

void fake_add(fake_thing what, int more) {
    pthread_mutex_lock(&mutex);
    counts[what] += more;
    pthread_mutex_unlock(&mutex);
}

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *count) {
    fake_enter("cudaGetDeviceCount");
    *count = devices;
    return fake_keep(count_result);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int index) {
    fake_enter("cudaGetDeviceProperties");
    if (index < 0 || index >= devices)
        return fake_keep(cudaErrorInvalidDevice);
    memset(out, 0, sizeof *out);
    const char *queues = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    snprintf(out->name, sizeof out->name, "fake GPU %d%s%s%s", index,
             queues != NULL ? " with " : "", queues != NULL ? queues : "",
             queues != NULL ? " queues" : "");
    out->major = capability;
    out->totalGlobalMem = (size_t)1 << DEVICE_BYTES_LOG2;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int index) {
    fake_enter("cudaDeviceGetAttribute");
    if (attribute != cudaDevAttrL2CacheSize || index < 0 || index >= devices)
        return fake_keep(cudaErrorInvalidDevice);
    *value = (int)emulated_cache_bytes();
    return fake_keep(fake_result(FAKE_ATTRIBUTE));
}

cudaError_t cudaSetDevice(int index) {
    fake_enter("cudaSetDevice");
    const cudaError_t result = fake_result(FAKE_SET_DEVICE);
    if (result == cudaSuccess)
        fake_mine.device = index;
    return result;
}

cudaError_t cudaGetDevice(int *index) {
    fake_enter("cudaGetDevice");
    *index = fake_mine.device < 0 ? 0 : fake_mine.device;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    if (fake_mine.in_callback)
        fake_stop("cudaGetLastError", "called from a callback");
    costs_count(COST_CALLS, 1);
    const cudaError_t result = last;
    last = fake_stays();
    return result;
}

const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorMemoryAllocation     ? "out of memory"
           : error == cudaErrorIllegalAddress     ? "an illegal memory access was encountered"
           : error == cudaErrorInsufficientDriver ? "CUDA driver version is insufficient for CUDA "
                                                    "runtime version"
           : error == cudaErrorInvalidDevice      ? "invalid device ordinal"
                                                  : "another error";
}

/* ---- memory ---- */

/* Equal where they share a byte. */
static int by_place(const void *a_, const void *b_) {
    const block *a = a_, *b = b_;
    return a->at + a->bytes <= b->at ? -1 : b->at + b->bytes <= a->at;
}

/* Does this lie in a block of this kind? */
static bool is_in_block(const void *memory, size_t bytes, bool of_host) {
    pthread_mutex_lock(&mutex);
    block **found =
        tfind(&(block){.at = memory, .bytes = bytes > 0 ? bytes : 1}, &blocks, by_place);
    const bool good = found != NULL && (*found)->of_host == of_host &&
                      (*found)->at <= (const char *)memory &&
                      (const char *)memory + bytes <= (*found)->at + (*found)->bytes;
    pthread_mutex_unlock(&mutex);
    return good;
}

static int device_of(const void *memory) {
    pthread_mutex_lock(&mutex);
    block **found = tfind(&(block){.at = memory, .bytes = 1}, &blocks, by_place);
    const int device = found != NULL ? (*found)->device : 0;
    pthread_mutex_unlock(&mutex);
    return device;
}

bool fake_is_locked(const void *memory, size_t bytes) {
    return is_in_block(memory, bytes, true);
}

void fake_expect_on_device(const void *memory, size_t bytes, const char *function) {
    if (bytes > 0 && !is_in_block(memory, bytes, false))
        fake_stop(function, "%zu bytes at %p are not in memory of the device", bytes, memory);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *memory) {
    fake_enter("cudaPointerGetAttributes");
    memset(out, 0, sizeof *out);
    out->type = is_in_block(memory, 1, false)  ? cudaMemoryTypeDevice
                : is_in_block(memory, 1, true) ? cudaMemoryTypeHost
                                               : cudaMemoryTypeUnregistered;
    out->device = device_of(memory);
    return cudaSuccess;
}

static cudaError_t take(void **out, size_t bytes, bool of_host) {
    const size_t whole = bytes / 256 * 256 + 256;
    block *b = malloc(sizeof *b);
    void *memory = aligned_alloc(256, whole);
    if (b == NULL || memory == NULL)
        fake_stop("allocation", "the host is out of memory");
    memset(memory, GARBAGE, whole);
    *b = (block){memory, bytes > 0 ? bytes : 1, of_host, fake_mine.device};
    pthread_mutex_lock(&mutex);
    tsearch(b, &blocks, by_place);
    taken += of_host ? 0 : whole;
    counts[FAKE_BLOCKS]++;
    pthread_mutex_unlock(&mutex);
    *out = memory;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes) {
    fake_enter_device("cudaMalloc");
    fake_expect_no_capture("cudaMalloc");
    const cudaError_t forbidden = fake_check_captures(),
                      result = forbidden != cudaSuccess ? forbidden : fake_result(FAKE_MALLOC);
    if (result != cudaSuccess)
        return result;
    if (bytes > ((size_t)1 << DEVICE_BYTES_LOG2) - taken)
        return fake_keep(cudaErrorMemoryAllocation);
    return take(out, bytes, false);
}

cudaError_t cudaMallocHost(void **out, size_t bytes) {
    fake_enter_device("cudaMallocHost");
    fake_expect_no_capture("cudaMallocHost");
    const cudaError_t result = fake_result(FAKE_MALLOC_HOST);
    return result != cudaSuccess ? result : take(out, bytes, true);
}

static cudaError_t give_back(void *memory, bool of_host, const char *function) {
    fake_enter(function);
    fake_expect_no_capture(function);
    if (memory == NULL)
        return cudaSuccess;
    fake_await_all();
    pthread_mutex_lock(&mutex);
    block **found = tfind(&(block){.at = memory, .bytes = 1}, &blocks, by_place);
    block *b =
        found != NULL && (*found)->at == memory && (*found)->of_host == of_host ? *found : NULL;
    if (b != NULL) {
        tdelete(b, &blocks, by_place);
        taken -= of_host ? 0 : b->bytes / 256 * 256 + 256;
        counts[FAKE_BLOCKS]--;
    }
    pthread_mutex_unlock(&mutex);
    if (b == NULL)
        fake_stop(function, "%p is no block, or it was released", memory);
    free(b);
    free(memory);
    return fake_keep(fake_stays());
}

cudaError_t cudaFree(void *memory) {
    return give_back(memory, false, "cudaFree");
}

cudaError_t cudaFreeHost(void *memory) {
    return give_back(memory, true, "cudaFreeHost");
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total) {
    fake_enter_device("cudaMemGetInfo");
    *total = (size_t)1 << DEVICE_BYTES_LOG2;
    pthread_mutex_lock(&mutex);
    *left = *total - taken;
    pthread_mutex_unlock(&mutex);
    return fake_keep(fake_stays());
}
