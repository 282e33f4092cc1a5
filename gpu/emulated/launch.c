/* launch.c - see launch.h. */
#include "gpu/emulated/launch.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOGETHER_MAX = 16 };

static unsigned together; /* threads of the host; 0: in order */
bool launch_watches;

/* What the launch has read as constant. One stream runs launches while this is watched. */
typedef struct reading {
    const float *at;
    float was;
} reading;
static _Thread_local struct {
    reading *all;
    size_t count, room;
} readings;

static void out_of_memory(void) {
    fputs("fake CUDA runtime: out of memory for a launch\n", stderr);
    abort();
}

void launch_open(void) {
    const char *threads = getenv("STARLING_LAUNCH");
    together = threads != NULL ? (unsigned)strtoul(threads, NULL, 10) : 0;
    together = together < TOGETHER_MAX ? together : TOGETHER_MAX;
    launch_watches = getenv("STARLING_CONTRACTS") != NULL;
}

void launch_note_read(const float *at, size_t count) {
    if (readings.count + count > readings.room) {
        readings.room = 2 * (readings.count + count);
        readings.all = realloc(readings.all, readings.room * sizeof *readings.all);
        if (readings.all == NULL)
            out_of_memory();
    }
    for (size_t i = 0; i < count; i++)
        readings.all[readings.count++] = (reading){at + i, at[i]};
}

static void check_readings(const char *name) {
    for (size_t i = 0; i < readings.count; i++)
        if (memcmp(readings.all[i].at, &readings.all[i].was, sizeof(float)) != 0) {
            fprintf(stderr, "fake CUDA runtime: %s writes what it reads as constant\n", name);
            abort();
        }
    readings.count = 0;
}

static size_t common_divisor(size_t a, size_t b) {
    return b == 0 ? a : common_divisor(b, a % b);
}

/* A stride near the golden ratio of the count, which reaches each thread once. */
static size_t stride_of(size_t count) {
    size_t stride = (size_t)(0.618 * (double)count) | 1;
    while (common_divisor(stride, count) != 1)
        stride++;
    return stride;
}

typedef struct helper {
    const host_kernel *kernel;
    const void *arguments;
    launch_share share;
    pthread_t thread;
} helper;

static void *help(void *helper_) {
    helper *h = helper_;
    h->kernel->run(h->arguments, &h->share);
    return NULL;
}

static void run_together(const host_kernel *kernel, const void *arguments, size_t threads) {
    helper helpers[TOGETHER_MAX];
    const size_t stride = stride_of(threads), first = threads / 3;
    for (unsigned i = 0; i < together; i++) {
        const launch_share share = {threads * i / together, threads * (i + 1) / together, first,
                                    stride, threads};
        helpers[i] = (helper){.kernel = kernel, .arguments = arguments, .share = share};
        if (pthread_create(&helpers[i].thread, NULL, help, &helpers[i]) != 0)
            out_of_memory();
    }
    for (unsigned i = 0; i < together; i++)
        pthread_join(helpers[i].thread, NULL);
}

void launch_run(const host_kernel *kernel, const void *arguments, size_t threads) {
    if (together > 0)
        run_together(kernel, arguments, threads);
    else
        kernel->run(arguments, &(launch_share){.to = threads, .stride = 1, .count = threads});
    if (launch_watches)
        check_readings(kernel->name);
}
