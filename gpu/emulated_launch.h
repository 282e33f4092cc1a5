/* emulated_launch.h - the threads of a launch on the host: one after the other, or as one of these
 * environment variables says, to find what a GPU would make of a kernel's mistakes:
 *   STARLING_LAUNCH=N     on N threads of the host at once, in no order
 *   STARLING_CONTRACTS    ends the program if a kernel reads memory as constant that its launch
 *                         writes: a GPU may read such memory too early */
#ifndef SL_EMULATED_LAUNCH_H
#define SL_EMULATED_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The threads (first + k stride) mod count, for k from `from` on and below `to`. */
typedef struct launch_share {
    size_t from, to, first, stride, count;
} launch_share;
typedef void launch_kernel(const void *arguments, const launch_share *share);

/* Reads the environment. */
void launch_open(void);
void launch_run(const char *name, launch_kernel *kernel, const void *arguments, size_t threads);

/* A kernel has read these floats as constant. */
extern bool launch_watches;
void launch_note_read(const float *at, size_t count);
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
