/* kernels.h - kernels as loops over their threads. It is included before them: they tell
 * what they read as constant. */
#ifndef SL_EMULATED_KERNELS_H
#define SL_EMULATED_KERNELS_H

#include <string.h>

#include "gpu/emulated/launch.h"

#define READ_AS_CONSTANT(at, count)                                                                \
    do {                                                                                           \
        if (launch_watches)                                                                        \
            launch_note_read(at, count);                                                           \
    } while (0)

/* One block of a kernel of gpu/block.h: its threads, phase by phase, in any order. */
#define DEFINE_BLOCK_SHARE(name)                                                                   \
    static void block_of_##name(const void *arguments, block_place at, bool in_order) {            \
        name##_memory memory;                                                                      \
        memset(&memory, 0xA5, sizeof memory);                                                      \
        for (uint32_t phase = 0; phase < name##_PHASES; phase++)                                   \
            for (uint32_t k = 0; k < BLOCK_THREADS; k++) {                                         \
                at.thread = in_order ? k : (41 + 157 * k) % BLOCK_THREADS;                         \
                name(arguments, &memory, at, phase);                                               \
            }                                                                                      \
    }                                                                                              \
    static void share_##name(const void *arguments, const launch_share *s) {                       \
        for (size_t k = s->from; k < s->to; k++)                                                   \
            block_of_##name(                                                                       \
                arguments,                                                                         \
                (block_place){.block = (uint32_t)((s->first + k * s->stride) % s->count),          \
                              .blocks = (uint32_t)s->count},                                       \
                s->stride == 1);                                                                   \
    }

#define DEFINE_SHARE(name)                                                                         \
    static void share_##name(const void *arguments, const launch_share *s) {                       \
        for (size_t k = s->from; s->stride == 1 && k < s->to; k++)                                 \
            name(arguments, k);                                                                    \
        for (size_t k = s->from; s->stride != 1 && k < s->to; k++)                                 \
            name(arguments, (s->first + k * s->stride) % s->count);                                \
    }

#endif
