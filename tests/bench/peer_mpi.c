/* peer_mpi.c - what Starling's gossip round is measured against: the same round written for MPI.
 *
 *   mpirun -n N peer_mpi D ROUNDS            Isend/Irecv with both ring neighbours, then x = w (x +
 *                                            a + b)
 *   mpirun -n N peer_mpi D ROUNDS allreduce  the exact average over all N instead
 *   mpirun -n N peer_mpi D ROUNDS memory     what memory allows: neighbours' vectors are read where
 *                                            they are, and each turn's average stands beside the
 * last
 *
 * Prints one JSON line (bench.h). _bench.py holds the mpirun options that are used.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bench.h"

enum { WARMUP_ROUNDS = 3 };

typedef struct ring {
    int rank, nodes, degree, peers[2];
    size_t dimension;
    float *x;         /* (dimension) */
    float *from[2];   /* (degree, dimension) */
    ptrdiff_t behind; /* memory: where each one's next average stands */
} ring;

static float *allocate(size_t count) {
    float *v = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
    if (!v) {
        fprintf(stderr, "peer_mpi: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(v, 0, count * sizeof(float)); /* page faults belong to no round */
    return v;
}

static void mix(const ring *r, float *to) {
    const float w = bench_weight(r->nodes), *x = r->x, *a = r->from[0], *b = r->from[1];
    if (r->degree == 1) {
#pragma GCC ivdep
        for (size_t i = 0; i < r->dimension; i++)
            to[i] = w * (x[i] + a[i]);
    } else {
#pragma GCC ivdep
        for (size_t i = 0; i < r->dimension; i++)
            to[i] = w * (x[i] + a[i] + b[i]);
    }
}

static void gossip(ring *r) {
    MPI_Request requests[4];
    int count = 0;
    for (int p = 0; p < r->degree; p++)
        MPI_Irecv(r->from[p], (int)r->dimension, MPI_FLOAT, r->peers[p], 0, MPI_COMM_WORLD,
                  &requests[count++]);
    for (int p = 0; p < r->degree; p++)
        MPI_Isend(r->x, (int)r->dimension, MPI_FLOAT, r->peers[p], 0, MPI_COMM_WORLD,
                  &requests[count++]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    mix(r, r->x);
}

/* Who begins a round has ended the last one, as all have: see timed_round. */
static void read_in_place(ring *r) {
    mix(r, r->x + r->behind);
    r->x += r->behind;
    for (int p = 0; p < r->degree; p++)
        r->from[p] += r->behind;
    r->behind = -r->behind;
}

static void open_memory(ring *r) {
    const MPI_Aint bytes = (MPI_Aint)(2 * r->dimension * sizeof(float));
    MPI_Win window;
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &r->x, &window);
    memset(r->x, 0, (size_t)bytes);
    for (int p = 0; p < r->degree; p++)
        MPI_Win_shared_query(window, r->peers[p], &(MPI_Aint){0}, &(int){0}, &r->from[p]);
    r->behind = (ptrdiff_t)r->dimension;
}

static void average(ring *r) {
    MPI_Allreduce(MPI_IN_PLACE, r->x, (int)r->dimension, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    float w = 1.0f / (float)r->nodes;
    for (size_t i = 0; i < r->dimension; i++)
        r->x[i] *= w;
}

/* First start to last end, on rank 0. */
static double timed_round(ring *r, void (*round)(ring *)) {
    double start, end, first, last;
    MPI_Barrier(MPI_COMM_WORLD);
    start = bench_now_ms();
    round(r);
    end = bench_now_ms();
    MPI_Reduce(&start, &first, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return r->rank == 0 ? last - first : 0;
}

/* The first round's result, compared with what it must be. */
static void check_first_round(const ring *r, bool allreduce) {
    size_t wrong = allreduce ? 0 : bench_wrong(r->x, r->dimension, r->rank, r->nodes);
    float mean = bench_value(0, 5) + (float)(r->nodes - 1) / 2.0f;
    if (wrong || (allreduce && r->dimension > 5 && fabsf(r->x[5] - mean) > 1e-4f)) {
        fprintf(stderr, "peer_mpi: rank %d has the wrong average\n", r->rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    ring r = {.dimension = argc > 1 ? strtoull(argv[1], NULL, 10) : 0};
    int rounds = argc > 2 ? atoi(argv[2]) : 0;
    bool allreduce = argc > 3 && strcmp(argv[3], "allreduce") == 0,
         memory = argc > 3 && strcmp(argv[3], "memory") == 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r.nodes);
    if (r.dimension < 1 || r.dimension > INT32_MAX || rounds < 1 || r.nodes < 2) {
        fprintf(stderr, "usage: mpirun -n N>=2 peer_mpi DIMENSION ROUNDS [allreduce | memory]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    r.degree = bench_ring(r.rank, r.nodes, r.peers);
    if (memory)
        open_memory(&r);
    else
        r.x = allocate(r.dimension);
    for (int p = 0; p < r.degree && !allreduce && !memory; p++)
        r.from[p] = allocate(r.dimension);
    bench_fill(r.x, r.dimension, r.rank);

    double *times = calloc((size_t)rounds, sizeof *times);
    if (!times)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = -WARMUP_ROUNDS; i < rounds; i++) {
        double ms = timed_round(&r, allreduce ? average : memory ? read_in_place : gossip);
        if (i >= 0)
            times[i] = ms;
        else if (i == -WARMUP_ROUNDS)
            check_first_round(&r, allreduce);
    }
    if (r.rank == 0)
        bench_report(argc > 3 ? argv[3] : "mpi", r.nodes, r.dimension, times, (size_t)rounds);
    free(times);
    MPI_Finalize();
    return 0;
}
