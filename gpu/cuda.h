/* cuda.h - what the files of the GPU's plug-in share. All of it is C, over the CUDA runtime's
 * functions, but for the kernels (cuda.cu): so it is the same over the runtime of emulated/, on
 * the host. cuda_streams.c offers it. */
#ifndef SL_GPU_CUDA_H
#define SL_GPU_CUDA_H

#include <cuda_runtime_api.h>

#include "gpu/device.h"
#include "gpu/launches.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operations, copies in, copies out. */
typedef enum cuda_way { WORK, IN, OUT, WAYS } cuda_way;

/* Of a thread. Streams are opened on first use: a GPU runs eight at a time by default, and further
 * ones wait. */
typedef struct lane {
    bool entered, gives_way;
    cudaStream_t streams[WAYS]; /* NULL: not used yet */
    cudaEvent_t ready;  /* the state of `work` at the last request for a background copy out */
    cudaEvent_t waited; /* what the thread waits for */
    bool notes, fails;  /* its operations are captured; one of them could not be */
    bool visits;        /* its operations are work of `visited`, a stream of others */
    cudaStream_t visited;
    int before; /* then: the thread's own current device, and what others' captures forbid it */
    enum cudaStreamCaptureMode mode_before;
} lane;

struct sl_vec_event {
    cudaEvent_t cuda;
    cuda_way way;  /* the stream on which it was last recorded */
    bool notified; /* a notification was requested since */
    /* and ever, of a time when it was last recorded there; NULL: none was */
    cudaStream_t notified_on[WAYS];
};

/* Of the calling thread, which is on the device then. */
lane *cuda_lane(void);
/* One of its streams. */
cudaStream_t cuda_stream(cuda_way way);
/* Waits for the stream's work so far. */
void cuda_await(cudaStream_t stream, const char *operation);
/* The device that was opened. */
int cuda_chosen(void);
/* What others capture forbids threads; returns the thread's mode so far. */
enum cudaStreamCaptureMode cuda_exchange_mode(enum cudaStreamCaptureMode mode);

/* The operation has failed, for device_status. Both texts are kept as they are, not copied. */
void cuda_remember(const char *what, const char *operation);
/* Remembers what is no success. */
bool cuda_check(cudaError_t result, const char *operation);

/* A kernel for cudaLaunchKernel: with a size_t after its arguments, the number of threads, if it is
 * none of blocks. */
const void *cuda_kernel(launch kernel);

#ifdef __cplusplus
}
#endif

#endif
