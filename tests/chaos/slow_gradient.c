/* slow_gradient.c - preloaded into agents: a gradient takes as long as the folder STARLING_STALLS
 * holds a file that is called after the process, and each product in it STARLING_PAUSE_US
 * microseconds longer. With STARLING_TURNS, "RANK NODES MS FACTOR", that is FACTOR times as long in
 * the rank's turn: turns last MS milliseconds by the machine's clock, and go round the nodes. */
#include <cblas.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static bool is_turn(long *factor) {
    const char *turns = getenv("STARLING_TURNS");
    long rank, nodes, ms;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return turns != NULL && sscanf(turns, "%ld %ld %ld %ld", &rank, &nodes, &ms, factor) == 4 &&
           (1000 * now.tv_sec + now.tv_nsec / 1000000) / ms % nodes == rank;
}

static void stall(void) {
    const char *folder = getenv("STARLING_STALLS"), *pause_us = getenv("STARLING_PAUSE_US");
    long factor;
    const long pause_ns = pause_us != NULL ? 1000 * atol(pause_us) : 0;
    const struct timespec pause = {.tv_nsec = is_turn(&factor) ? factor * pause_ns : pause_ns};
    const struct timespec moment = {.tv_nsec = 5000000};
    char path[4096];
    snprintf(path, sizeof path, "%s/%ld", folder != NULL ? folder : "/nowhere", (long)getpid());
    while (access(path, F_OK) == 0)
        nanosleep(&moment, NULL);
    nanosleep(&pause, NULL);
}

void cblas_sgemm(OPENBLAS_CONST enum CBLAS_ORDER order, OPENBLAS_CONST enum CBLAS_TRANSPOSE a_as,
                 OPENBLAS_CONST enum CBLAS_TRANSPOSE b_as, OPENBLAS_CONST blasint m,
                 OPENBLAS_CONST blasint n, OPENBLAS_CONST blasint k, OPENBLAS_CONST float alpha,
                 OPENBLAS_CONST float *a, OPENBLAS_CONST blasint a_stride, OPENBLAS_CONST float *b,
                 OPENBLAS_CONST blasint b_stride, OPENBLAS_CONST float beta, float *c,
                 OPENBLAS_CONST blasint c_stride) {
    __typeof__(cblas_sgemm) *next;
    *(void **)&next = dlsym(RTLD_NEXT, "cblas_sgemm");
    stall();
    next(order, a_as, b_as, m, n, k, alpha, a, a_stride, b, b_stride, beta, c, c_stride);
}
