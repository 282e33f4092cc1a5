/* for_each_cpu.h - kernels for the instruction sets of one architecture, chosen when the program
 * runs.
 *
 * FOR_EACH_CPU before a plain C function compiles it for each level of x86-64, and the loader
 * chooses. SL_AVX2 is defined where a kernel may also be written with intrinsics, to be called only
 * where sl_has_avx2(). All choices give the same bytes: contraction is off (-ffp-contract=off), and
 * reductions keep a fixed number of lanes. SL_PLAIN_KERNELS leaves only the plain C ones, for
 * tests.
 */
#ifndef SL_FOR_EACH_CPU_H
#define SL_FOR_EACH_CPU_H

#include <stdbool.h>

/* Sanitizers intercept before the loader's function choice can run. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&                             \
    !defined(__SANITIZE_THREAD__) && !defined(SL_PLAIN_KERNELS)
#define FOR_EACH_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_CPU
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(SL_PLAIN_KERNELS)
#define SL_AVX2 __attribute__((target("avx2,fma,f16c")))
static inline bool sl_has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("f16c");
}
#endif

#endif
