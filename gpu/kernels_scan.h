/* kernels_scan.h - prefix sums, over the counts of a bitmap's words; see kernels.h.
 *
 * Several rows at once, each equally long, in two launches whatever the length: first the sums of
 * groups, one of a block; then each count becomes the sum of the counts before it. To this end a
 * block adds up all groups before its own, which are few. One 64-bit number may hold two counts,
 * since neither exceeds 32 bits. */
#ifndef SL_GPU_KERNELS_SCAN_H
#define SL_GPU_KERNELS_SCAN_H

#include "gpu/block.h"
#include "gpu/thread.h"

enum {
    SCANNED_EACH = 8, /* counts of a thread */
    SCANNED = SCANNED_EACH * BLOCK_THREADS,
    SCAN_FANS = BLOCK_THREADS / FAN
};

/* Block b has group b % groups of row b / groups. */
typedef struct scan_args {
    uint64_t *counts[INPUTS]; /* (count) */
    uint64_t *sums[INPUTS];   /* (groups) */
    size_t count;
    uint32_t groups; /* ceil(count / SCANNED) */
} scan_args;
typedef scan_args scan_groups_args;
typedef scan_args scan_counts_args;

typedef struct scan_memory {
    uint64_t mine[BLOCK_THREADS], earlier[BLOCK_THREADS]; /* sums of each thread */
    uint64_t fans[SCAN_FANS], earlier_fans[SCAN_FANS];    /* of FAN threads each */
} scan_memory;
typedef scan_memory scan_groups_memory;
typedef scan_memory scan_counts_memory;

/* A thread's counts: [from, end) of a row. */
typedef struct scan_share {
    uint64_t *counts;
    uint32_t row, group;
    size_t from, end;
} scan_share;

SL_SHARED scan_share scan_share_of(const scan_args *a, block_place at) {
    scan_share s;
    s.row = at.block / a->groups;
    s.group = at.block - s.row * a->groups;
    s.counts = a->counts[s.row];
    s.from = smaller(a->count, s.group * (size_t)SCANNED + at.thread * SCANNED_EACH);
    s.end = smaller(a->count, s.from + SCANNED_EACH);
    return s;
}

SL_SHARED uint64_t sum_of_counts(const uint64_t *counts, size_t from, size_t end, size_t step) {
    uint64_t sum = 0;
    SL_UNROLL(8)
    for (size_t e = from; e < end; e += step)
        sum += counts[e];
    return sum;
}

enum { scan_groups_PHASES = 3 };
SL_SHARED void scan_groups(const scan_groups_args *a, scan_groups_memory *m, block_place at,
                           uint32_t phase) {
    const scan_share s = scan_share_of(a, at);
    switch (phase) {
    case 0:
        m->mine[at.thread] = sum_of_counts(s.counts, s.from, s.end, 1);
        break;
    case 1:
        if (at.thread < SCAN_FANS)
            m->fans[at.thread] = sum_of_counts(m->mine, FAN * at.thread, FAN * (at.thread + 1), 1);
        break;
    case 2:
        if (at.thread == 0)
            a->sums[s.row][s.group] = sum_of_counts(m->fans, 0, SCAN_FANS, 1);
        break;
    }
}

enum { scan_counts_PHASES = 3 };
SL_SHARED void scan_counts(const scan_counts_args *a, scan_counts_memory *m, block_place at,
                           uint32_t phase) {
    const scan_share s = scan_share_of(a, at);
    const uint32_t fan = at.thread / FAN;
    uint64_t before = 0;
    switch (phase) {
    case 0:
        m->mine[at.thread] = sum_of_counts(s.counts, s.from, s.end, 1);
        m->earlier[at.thread] = sum_of_counts(a->sums[s.row], at.thread, s.group, BLOCK_THREADS);
        break;
    case 1:
        if (at.thread < SCAN_FANS) {
            m->fans[at.thread] = sum_of_counts(m->mine, FAN * at.thread, FAN * (at.thread + 1), 1);
            m->earlier_fans[at.thread] =
                sum_of_counts(m->earlier, FAN * at.thread, FAN * (at.thread + 1), 1);
        }
        break;
    case 2:
        before = sum_of_counts(m->earlier_fans, 0, SCAN_FANS, 1) +
                 sum_of_counts(m->fans, 0, fan, 1) +
                 sum_of_counts(m->mine, FAN * fan, at.thread, 1);
        for (size_t e = s.from; e < s.end; e++) {
            const uint64_t count = s.counts[e];
            s.counts[e] = before;
            before += count;
        }
        break;
    }
}

#endif
