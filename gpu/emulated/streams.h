/* streams.h - streams, among streams.c and captures.c. */
#ifndef SL_EMULATED_STREAMS_H
#define SL_EMULATED_STREAMS_H

#include <pthread.h>

#include "gpu/emulated/fake.h"
#include "gpu/emulated/queue.h"

struct CUstream_st {
    struct CUstream_st *next;
    queue work;
    pthread_mutex_t mutex; /* one thread at a time gives it work */
    int device;
    bool ended;
    struct notes *notes; /* while it is captured */
    atomic_bool spoiled; /* by what the capture forbids */
};

/* A handle of a default stream stands for the thread's device's. */
cudaStream_t fake_stream_of(cudaStream_t handle);
void fake_expect_stream(cudaStream_t stream, const char *function);
/* A task for it, or what is captured of it. */
void fake_note(struct notes *notes, task_function *function, const void *arguments, size_t bytes);

#endif
