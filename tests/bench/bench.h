/* bench.h - what the gossip benchmarks share: the clock, the vectors, the check of the first round,
 * the result line.
 *
 * A round lasts from the first process's start to the last one's end. CLOCK_MONOTONIC is one clock
 * for all processes of a host, so that stamps of different processes can be compared; each program
 * gathers them in its own way.
 */
#ifndef STARLING_BENCH_H
#define STARLING_BENCH_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double bench_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Starting value of element i at `rank`: different on neighbours, different along the vector. */
static inline float bench_value(int rank, size_t i) {
    return (float)rank + (float)(i % 1021) / 1024.0f;
}

static inline void bench_fill(float *x, size_t dimension, int rank) {
    for (size_t i = 0; i < dimension; i++)
        x[i] = bench_value(rank, i);
}

/* Uniform weight of a ring of n, self included: a node has min(n, 3) - 1 neighbours. */
static inline float bench_weight(int nodes) {
    return 1.0f / (float)(nodes < 3 ? nodes : 3);
}

/* Neighbours on a ring of n >= 2: one when n is 2. Returns how many. */
static inline int bench_ring(int rank, int nodes, int peers[2]) {
    peers[0] = (rank + nodes - 1) % nodes;
    peers[1] = (rank + 1) % nodes;
    return nodes == 2 ? 1 : 2;
}

/* The number of elements that one round did not turn from bench_fill's values into the
 * neighbourhood's average. */
static inline size_t bench_wrong(const float *x, size_t dimension, int rank, int nodes) {
    int peers[2];
    int degree = bench_ring(rank, nodes, peers);
    size_t wrong = 0;
    for (size_t i = 0; i < dimension; i++) {
        float sum = bench_value(rank, i);
        for (int p = 0; p < degree; p++)
            sum += bench_value(peers[p], i);
        wrong += !(fabsf(x[i] - bench_weight(nodes) * sum) < 1e-4f);
    }
    return wrong;
}

static int bench_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts `times`. */
static inline double bench_median(double *times, size_t count) {
    qsort(times, count, sizeof *times, bench_compare);
    return (times[(count - 1) / 2] + times[count / 2]) / 2;
}

/* Prints the result line that _bench.py reads. Sorts `times_ms`. */
static inline void bench_report(const char *program, int nodes, size_t dimension, double *times_ms,
                                size_t rounds) {
    const double median = bench_median(times_ms, rounds);
    printf("{\"program\": \"%s\", \"nodes\": %d, \"dimension\": %zu, \"rounds\": %zu, "
           "\"median_ms\": %.3f, \"min_ms\": %.3f}\n",
           program, nodes, dimension, rounds, median, times_ms[0]);
    fflush(stdout);
}

#endif
