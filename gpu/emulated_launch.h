/* emulated_launch.h - the threads of a launch on the host: one after the other, or as one of these
 * environment variables says, to find what a GPU would make of a kernel's mistakes:
 *   STARLING_LAUNCH=N     on N threads of the host at once, in no order
 *   STARLING_CONTRACTS    ends the program if a kernel reads memory as constant that its launch
 *                         writes: a GPU may read such memory too early */
#ifndef SL_EMULATED_LAUNCH_H
#define SL_EMULATED_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

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

#define DEFINE_SHARE(name)                                                                         \
    static void share_##name(const void *arguments, const launch_share *s) {                       \
        for (size_t k = s->from; s->stride == 1 && k < s->to; k++)                                 \
            name(arguments, k);                                                                    \
        for (size_t k = s->from; s->stride != 1 && k < s->to; k++)                                 \
            name(arguments, (s->first + k * s->stride) % s->count);                                \
    }

#endif
