/* forked.h - what the gossip benchmarks share that fork their own processes: stamps of all rounds,
 * in memory that all share, and their end. */
#ifndef STARLING_FORKED_H
#define STARLING_FORKED_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { FORKED_WARMUP = 3, FORKED_NODES_MAX = 64, FORKED_ROUNDS_MAX = 4096 };

/* Rounds begin with 1; the first FORKED_WARMUP do not count. */
typedef struct forked {
    pthread_barrier_t barrier;
    uint16_t ports[FORKED_NODES_MAX];
    double start[FORKED_ROUNDS_MAX][FORKED_NODES_MAX], end[FORKED_ROUNDS_MAX][FORKED_NODES_MAX];
    size_t wrong[FORKED_NODES_MAX]; /* elements of the first round */
} forked;

static inline bool forked_fits(int nodes, size_t dimension, size_t rounds) {
    return nodes >= 2 && nodes <= FORKED_NODES_MAX && dimension > 0 && rounds > 0 &&
           rounds + FORKED_WARMUP + 1 < FORKED_ROUNDS_MAX;
}

static inline forked *forked_open(int nodes) {
    forked *f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (f == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&f->barrier, &attributes, (unsigned)nodes);
    return f;
}

/* Waits for all; one that fails takes the others, who wait at the barrier, with it. By SIGKILL: one
 * of libfabric's providers catches SIGTERM. */
static inline bool forked_end_well(const pid_t *children, int nodes) {
    bool well = true;
    for (int i = 0; i < nodes; i++) {
        int status = 1;
        wait(&status);
        for (int j = 0; j < nodes && status != 0 && well; j++)
            kill(children[j], SIGKILL);
        well = well && status == 0;
    }
    return well;
}

/* Waits for all processes, and prints the result line. Returns the exit code. */
static inline int forked_tell(const char *program, const forked *f, const pid_t *children,
                              int nodes, size_t dimension, size_t rounds) {
    static double times_ms[FORKED_ROUNDS_MAX];
    size_t wrong = 0;
    if (!forked_end_well(children, nodes))
        return 1;
    for (int i = 0; i < nodes; i++)
        wrong += f->wrong[i];
    if (wrong > 0) {
        fprintf(stderr, "%s: %zu elements of the first average are wrong\n", program, wrong);
        return 1;
    }
    for (size_t r = 0; r < rounds; r++) {
        double start = INFINITY, end = 0;
        for (int i = 0; i < nodes; i++) {
            start = fmin(start, f->start[FORKED_WARMUP + 1 + r][i]);
            end = fmax(end, f->end[FORKED_WARMUP + 1 + r][i]);
        }
        times_ms[r] = end - start;
    }
    bench_report(program, nodes, dimension, times_ms, rounds);
    return 0;
}

#endif
