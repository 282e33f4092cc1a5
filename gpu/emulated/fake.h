/* fake.h - a CUDA runtime and a cuBLAS of the host: under them, the plug-in for GPUs is the
 * emulated device of tests, and users' first steps, without a GPU.
 *
 * Streams are threads (queue.h). A launch runs its threads one after the other, or as launch.h
 * says. The program is ended, with the reason, by what CUDA forbids or punishes silently:
 *   - an asynchronous copy of memory that is not page-locked, unless the stream is waited for next
 *   - work of a thread that has not chosen its device, or on another device's stream
 *   - a stream, an event or memory after its end; copies beyond memory
 *   - a call from a callback
 *   - between the begin and the end of a capture: a wait, an allocation, an event, a copy of memory
 *     that is not page-locked
 *   - a product without work space, a launch with too few threads or on the default stream
 * A capture in the global mode, as of torch.cuda.graph, is spoiled by what other threads may not do
 * meanwhile, and that fails.
 * New device memory holds no zeros.
 *
 * Environment, read as a thread first chooses its device:
 *   STARLING_GUARD           the host's code has no access to device memory: it crashes
 *   STARLING_FAILS_AFTER=N   each thread's operation N + 1 fails; no later operation on any stream
 *                            has an effect
 *   STARLING_COPY_MB_S=N     copies take as long as on a bus of N MB/s in each direction
 *   STARLING_LAUNCH, STARLING_CONTRACTS    see launch.h
 * and as it is asked for:
 *   STARLING_DEVICES=N       so many devices (1)
 *   STARLING_AS_GPU          claims that its memory is a GPU's: a network library may refuse it
 *   STARLING_CACHE_MIB=N     the size of its second-level cache (50, an H100's) */
#ifndef SL_EMULATED_FAKE_H
#define SL_EMULATED_FAKE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

/* The calls that can be told to fail. */
typedef enum fake_call {
    FAKE_SET_DEVICE,
    FAKE_MALLOC,
    FAKE_MALLOC_HOST,
    FAKE_MEMCPY,
    FAKE_MEMSET,
    FAKE_PRIORITIES,
    FAKE_ATTRIBUTE,
    FAKE_STREAM_CREATE,
    FAKE_EVENT_CREATE,
    FAKE_EVENT_RECORD,
    FAKE_LAUNCH,
    FAKE_CALLBACK,
    FAKE_PRODUCT,
    FAKE_CREATE_PRODUCTS,
    FAKE_CAPTURE,
    FAKE_GRAPH,
    FAKE_CALLS
} fake_call;

/* The next such call returns this error; cudaErrorIllegalAddress stays, as on a GPU. */
void fake_fail(fake_call call, cudaError_t error);
/* The next kernel stops with this error when it runs, not when it is launched; the error stays. */
void fake_fail_kernel(cudaError_t error);
/* How many devices cudaGetDeviceCount finds, and what it returns. */
void fake_set_devices(int count, cudaError_t result);
void fake_set_capability(int major);
/* Kernels and callbacks that have not begun wait until it is called with false. */
void fake_hold_kernels(bool hold);
void fake_hold_callbacks(bool hold);
/* What is open, or under way. */
typedef enum fake_thing {
    FAKE_STREAMS,
    FAKE_STREAMS_FIRST, /* those of the highest priority that were ever created */
    FAKE_EVENTS,
    FAKE_GRAPHS,
    FAKE_BLOCKS,    /* of memory of the device and the host */
    FAKE_CALLBACKS, /* that were asked for and have not returned */
    FAKE_THINGS
} fake_thing;
int fake_count(fake_thing what);

/* ---- among its files ---- */

enum { FAKE_DEVICES_MAX = 8 };

typedef struct fake_thread {
    int device;               /* -1: none was chosen */
    unsigned long operations; /* that it has given */
    bool in_callback;
    cudaStream_t to_wait_for;        /* of a copy of memory that is not page-locked; NULL: none */
    cudaEvent_t to_wait_with;        /* the event that was recorded behind it */
    cudaStream_t captured;           /* NULL: none is */
    enum cudaStreamCaptureMode mode; /* cudaStreamCaptureModeGlobal, if it has not chosen */
} fake_thread;
/* Not in memory that a thread takes as it first asks: gcc 12's leak checker reads the wrong place
 * for that of threads that still run at the end. */
extern _Thread_local fake_thread fake_mine __attribute__((tls_model("initial-exec")));

/* Each call begins with one of these; the second for what acts on the thread's device. The third
 * for what a capture forbids. */
void fake_enter(const char *function);
void fake_enter_device(const char *function);
void fake_expect_no_capture(const char *function);
void fake_stop(const char *function, const char *format, ...) __attribute__((noreturn))
__attribute__((format(printf, 2, 3)));
void *fake_claim(size_t bytes); /* zeroed */
/* What a capture of another thread forbids in its global mode: spoils it, and returns the error. */
cudaError_t fake_check_captures(void);
/* Nothing comes of what the thread captures. */
void fake_spoil_capture(void);
/* For cudaGetLastError. Returns it. */
cudaError_t fake_keep(cudaError_t result);
/* What a test wants of this call. */
cudaError_t fake_result(fake_call call);
/* What acts on the thread's device, and what a test wants of it. */
cudaError_t fake_begin(const char *function, fake_call call);
/* The error that stays. */
cudaError_t fake_stays(void);
void fake_break(cudaError_t error);
/* Shall this operation of the thread fail when it runs? */
bool fake_counts_out(void);
void fake_add(fake_thing what, int more);

/* Memory: opened once, with the first device. */
void fake_open_memory(void);
size_t fake_memory_bytes(void);
/* Addresses of the devices', for driver.c; NULL: there are no more. What a file holds is mapped
 * there; file -1: nothing is any more. */
void *fake_reserve(size_t bytes);
void fake_give_back_addresses(void *at);
bool fake_map(void *at, size_t bytes, int file);
void fake_expect_on_device(const void *memory, size_t bytes, const char *function);
bool fake_is_locked(const void *memory, size_t bytes);
/* A task that may access the devices' memory begins, or has ended. */
void fake_unlock_memory(void);
void fake_lock_memory(void);
void fake_set_memory(void *memory, int value, size_t bytes); /* of a device */

/* Waits for all streams. */
void fake_await_all(void);
enum { FAKE_BYTES_MAX = 1600 };
/* Runs `work` on the stream, but not after an error that stays. The arguments are copied. */
void fake_give(cudaStream_t stream, void (*work)(void *arguments), const void *arguments,
               size_t bytes);
/* On a stream, before a kernel runs: may it? */
bool fake_kernel_begins(void);
void fake_sleep_for_copy(size_t bytes);

#endif
