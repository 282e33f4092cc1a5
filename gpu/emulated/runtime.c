/* runtime.c - see fake.h: the rules, and devices. Its atomics order nothing: else ThreadSanitizer
 * would take them for an order between streams. */
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/emulated/fake.h"
#include "gpu/emulated/launch.h"
#include "gpu/launches.h"

/* Set at open, then constant. */
static unsigned long operations_until_failure = ULONG_MAX;
static double copy_seconds_per_byte;
static char failure[64];

static atomic_int counts[FAKE_THINGS], failing[FAKE_CALLS];
static atomic_int broken; /* a cudaError_t that stays */
static cudaError_t count_result;
static int devices = -1, capability = 9; /* -1: as the environment says */

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
    return (cudaError_t)atomic_load_explicit(&broken, memory_order_relaxed);
}

void fake_break(cudaError_t error) {
    atomic_store_explicit(&broken, (int)error, memory_order_relaxed);
}

cudaError_t fake_result(fake_call call) {
    const cudaError_t result =
        (cudaError_t)atomic_exchange_explicit(&failing[call], cudaSuccess, memory_order_relaxed);
    if (result == cudaErrorIllegalAddress)
        fake_break(result);
    return fake_keep(fake_stays() != cudaSuccess ? fake_stays() : result);
}

cudaError_t fake_begin(const char *function, fake_call call) {
    fake_enter_device(function);
    return fake_result(call);
}

void *fake_claim(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (memory == NULL)
        fake_stop("the device", "the host is out of memory");
    return memory;
}

/* ---- what a test sets and asks for ---- */

void fake_fail(fake_call call, cudaError_t error) {
    atomic_store_explicit(&failing[call], (int)error, memory_order_relaxed);
}

void fake_set_devices(int count, cudaError_t result) {
    devices = count;
    count_result = result;
}

void fake_set_capability(int major) {
    capability = major;
}

int fake_count(fake_thing what) {
    return atomic_load_explicit(&counts[what], memory_order_relaxed);
}

void fake_add(fake_thing what, int more) {
    atomic_fetch_add_explicit(&counts[what], more, memory_order_relaxed);
}

/* ---- what the environment sets ---- */

static void open_device(void) {
    const char *fails = getenv("STARLING_FAILS_AFTER"), *rate = getenv("STARLING_COPY_MB_S");
    launch_open();
    fake_open_memory();
    operations_until_failure = fails != NULL ? strtoul(fails, NULL, 10) : ULONG_MAX;
    copy_seconds_per_byte = rate != NULL ? 1e-6 / strtod(rate, NULL) : 0;
    snprintf(failure, sizeof failure, "it was asked to, after %lu operations",
             operations_until_failure);
}

bool fake_counts_out(void) {
    return ++fake_mine.operations > operations_until_failure;
}

void fake_sleep_for_copy(size_t bytes) {
    const double seconds = (double)bytes * copy_seconds_per_byte;
    const time_t whole = (time_t)seconds;
    struct timespec left = {whole, (long)(1e9 * (seconds - (double)whole))};
    while (seconds > 0 && nanosleep(&left, &left) != 0) {
    }
}

static int device_count_now(void) {
    const char *given = getenv("STARLING_DEVICES");
    const int wanted = devices >= 0 ? devices : given != NULL ? atoi(given) : 1;
    return wanted < FAKE_DEVICES_MAX ? wanted : FAKE_DEVICES_MAX;
}

static bool is_device(int index) {
    return index >= 0 && index < device_count_now();
}

/* ---- devices ---- */

/* 0: no GPU, but what tests use. */
cudaError_t cudaRuntimeGetVersion(int *version) {
    fake_enter("cudaRuntimeGetVersion");
    *version = getenv("STARLING_AS_GPU") != NULL ? CUDART_VERSION : 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
    fake_enter("cudaGetDeviceCount");
    *count = device_count_now();
    return fake_keep(count_result);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int index) {
    fake_enter("cudaGetDeviceProperties");
    if (!is_device(index))
        return fake_keep(cudaErrorInvalidDevice);
    *out = (struct cudaDeviceProp){.totalGlobalMem = fake_memory_bytes(), .major = capability};
    const char *queues = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    if (getenv("STARLING_AS_GPU") == NULL)
        snprintf(out->name, sizeof out->name, "emulated on the host");
    else
        snprintf(out->name, sizeof out->name, "fake GPU %d with %s queues", index,
                 queues != NULL ? queues : "8");
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int index) {
    fake_enter("cudaDeviceGetAttribute");
    if (attribute != cudaDevAttrL2CacheSize || !is_device(index))
        return fake_keep(cudaErrorInvalidDevice);
    const char *mib = getenv("STARLING_CACHE_MIB");
    *value = (mib != NULL ? atoi(mib) : 50) << 20;
    return fake_keep(fake_result(FAKE_ATTRIBUTE));
}

cudaError_t cudaSetDevice(int index) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    fake_enter("cudaSetDevice");
    pthread_once(&once, open_device);
    const cudaError_t result =
        is_device(index) ? fake_result(FAKE_SET_DEVICE) : fake_keep(cudaErrorInvalidDevice);
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
           : error == cudaErrorUnknown            ? failure
                                                  : "another error";
}
