/* warp.h - threads of a warp that run together: those that count at one address share one atomic
 * operation, since thousands of these on one address would serialize.
 *
 * It is written over five functions of a warp. A GPU has them; on the host a thread is a warp of
 * its own, and tests/unit/test_warps.c defines WARP_OF_TESTS and brings 32 lanes, of which any may
 * be inactive. */
#ifndef SL_GPU_WARP_H
#define SL_GPU_WARP_H

#include "element/shared.h"

#ifdef __CUDA_ARCH__
SL_SHARED uint32_t warp_lane(void) {
    return threadIdx.x % 32; /* one-dimensional blocks */
}
SL_SHARED uint32_t warp_active(void) {
    return __activemask();
}
/* The lanes that give the same number; each of `lanes` calls it. */
SL_SHARED uint32_t warp_alike(uint32_t lanes, uint64_t number) {
    return __match_any_sync(lanes, (unsigned long long)number);
}
SL_SHARED uint32_t warp_sum(uint32_t lanes, uint32_t value) {
    return __reduce_add_sync(lanes, value);
}
SL_SHARED uint32_t warp_largest(uint32_t lanes, uint32_t value) {
    return __reduce_max_sync(lanes, value);
}
#define ATOMIC_ADD_ONE(at, value) atomicAdd(at, value)
#define ATOMIC_MAX_ONE(at, value) atomicMax(at, value)
#define ATOMIC_OR(at, value) atomicOr((unsigned long long *)(at), (unsigned long long)(value))
#define BITS_SET(word) ((uint32_t)__popcll((long long)(word)))
#define LOWEST_BIT(word) ((uint32_t)(__ffsll((long long)(word)) - 1))
#else
#ifdef WARP_OF_TESTS
uint32_t warp_lane(void);
uint32_t warp_active(void);
uint32_t warp_alike(uint32_t lanes, uint64_t number);
uint32_t warp_sum(uint32_t lanes, uint32_t value);
uint32_t warp_largest(uint32_t lanes, uint32_t value);
#else
SL_SHARED uint32_t warp_lane(void) {
    return 0;
}
SL_SHARED uint32_t warp_active(void) {
    return 1;
}
SL_SHARED uint32_t warp_alike(uint32_t lanes, uint64_t number) {
    (void)number;
    return lanes;
}
SL_SHARED uint32_t warp_sum(uint32_t lanes, uint32_t value) {
    (void)lanes;
    return value;
}
SL_SHARED uint32_t warp_largest(uint32_t lanes, uint32_t value) {
    (void)lanes;
    return value;
}
#endif
SL_SHARED void raise_to(uint32_t *at, uint32_t value) {
    uint32_t now = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (now < value &&
           !__atomic_compare_exchange_n(at, &now, value, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}
#define ATOMIC_ADD_ONE(at, value) __atomic_fetch_add(at, value, __ATOMIC_RELAXED)
#define ATOMIC_MAX_ONE(at, value) raise_to(at, value)
#define ATOMIC_OR(at, value) __atomic_fetch_or(at, value, __ATOMIC_RELAXED)
#define BITS_SET(word) ((uint32_t)__builtin_popcountll(word))
#define LOWEST_BIT(word) ((uint32_t)__builtin_ctzll(word))
#endif

SL_SHARED int warp_first(uint32_t lanes) {
    return warp_lane() == LOWEST_BIT((uint64_t)lanes);
}

/* Atomic; lanes that have the same address go together. */
SL_SHARED void add_together(uint32_t *at, uint32_t value) {
    const uint32_t lanes = warp_alike(warp_active(), (uint64_t)(uintptr_t)at),
                   sum = warp_sum(lanes, value);
    if (warp_first(lanes))
        ATOMIC_ADD_ONE(at, sum);
}

SL_SHARED void raise_together(uint32_t *at, uint32_t value) {
    const uint32_t lanes = warp_alike(warp_active(), (uint64_t)(uintptr_t)at),
                   largest = warp_largest(lanes, value);
    if (warp_first(lanes))
        ATOMIC_MAX_ONE(at, largest);
}

#define ATOMIC_ADD(at, value) add_together(at, value)
#define ATOMIC_MAX(at, value) raise_together(at, value)

#endif
