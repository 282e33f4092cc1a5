/* block.h - kernels whose threads work together in blocks, with memory of a block's own.
 *
 * Such a kernel is a row of phases. All threads of a block are through with one phase before any
 * begins the next, and see then what the others have written: between two phases a GPU has a
 * barrier (cuda.cu), and the host is through with all threads (emulated/launch.h). So no such
 * kernel is a GPU's only, and tests run its threads in any order.
 *
 * Kernel NAME has arguments NAME_args, a block's memory NAME_memory, whose first content is
 * anything, NAME_PHASES phases, and a body NAME(const NAME_args *, NAME_memory *, block_place at,
 * uint32_t phase). */
#ifndef SL_GPU_BLOCK_H
#define SL_GPU_BLOCK_H

#include "element/shared.h"

enum { BLOCK_THREADS = 256 };

typedef struct block_place {
    uint32_t thread; /* in its block */
    uint32_t block, blocks;
} block_place;

/* The first element of a thread, where each thread of the launch takes every block_step-th. */
SL_SHARED size_t block_first(block_place at) {
    return (size_t)at.block * BLOCK_THREADS + at.thread;
}

/* The block that is last to come here gets blocks - 1, and sees what all others have published. */
#ifdef __CUDA_ARCH__
SL_SHARED void block_publish(void) {
    __threadfence();
}
SL_SHARED uint32_t block_number(uint32_t *came) {
    const uint32_t number = atomicAdd(came, 1);
    __threadfence();
    return number;
}
SL_SHARED double block_read(const double *published) {
    return __ldcg(published);
}
SL_SHARED uint32_t block_read_count(const uint32_t *published) {
    return __ldcg(published);
}
#else
SL_SHARED void block_publish(void) {}
SL_SHARED uint32_t block_number(uint32_t *came) {
    return __atomic_fetch_add(came, 1, __ATOMIC_ACQ_REL);
}
SL_SHARED double block_read(const double *published) {
    return *published;
}
SL_SHARED uint32_t block_read_count(const uint32_t *published) {
    return *published;
}
#endif

SL_SHARED size_t block_step(block_place at) {
    return (size_t)at.blocks * BLOCK_THREADS;
}

#endif
