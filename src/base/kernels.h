/* kernels.h - compiles kernels for the instruction sets of x86-64; the program chooses one at
 * start.
 *
 * FOR_EACH_CPU(type, name, (parameters), (arguments)) stands before a C body. It defines the
 * static function `name` and compiles the body for each level of x86-64; a call runs the chosen
 * level. SL_AVX2 is defined where intrinsics are available; call such code only if sl_has_avx2().
 * All levels give the same bytes: contraction is off (-ffp-contract=off), and reductions have a
 * fixed number of lanes. */
#ifndef SL_BASE_KERNELS_H
#define SL_BASE_KERNELS_H

#include <stdbool.h>

typedef enum sl_kernel_level {
    SL_KERNELS_PLAIN,
    SL_KERNELS_V3, /* AVX2, FMA, BMI2, F16C */
    SL_KERNELS_V4, /* AVX-512 F, BW, CD, DQ, VL */
} sl_kernel_level;

/* Set once, before main(): the processor's level, or a lower one that STARLING_KERNELS names. */
extern sl_kernel_level sl_kernels_level;

#if defined(__x86_64__)
#define SL_AVX2 __attribute__((target("avx2,fma,f16c,bmi2")))
static inline bool sl_has_avx2(void) {
    return sl_kernels_level >= SL_KERNELS_V3;
}

#define FOR_EACH_CPU(type, name, parameters, arguments)                                            \
    static inline __attribute__((always_inline)) type name##_body parameters;                      \
    __attribute__((target("arch=x86-64-v4"))) static type name##_v4 parameters {                   \
        return name##_body arguments;                                                              \
    }                                                                                              \
    __attribute__((target("arch=x86-64-v3"))) static type name##_v3 parameters {                   \
        return name##_body arguments;                                                              \
    }                                                                                              \
    static __attribute__((noinline)) type name##_plain parameters {                                \
        return name##_body arguments;                                                              \
    }                                                                                              \
    static type name parameters {                                                                  \
        if (sl_kernels_level == SL_KERNELS_V4)                                                     \
            return name##_v4 arguments;                                                            \
        if (sl_kernels_level == SL_KERNELS_V3)                                                     \
            return name##_v3 arguments;                                                            \
        return name##_plain arguments;                                                             \
    }                                                                                              \
    static inline __attribute__((always_inline)) type name##_body parameters
#else
#define FOR_EACH_CPU(type, name, parameters, arguments) static type name parameters
#endif

#endif
