/* kernels.c - which instruction set the kernels use; see kernels.h. */
#include "starling/kernels.h"

#include <stdlib.h>
#include <string.h>

#include "base/kernels.h"

enum { LEVELS = SL_KERNELS_V4 + 1 };

static const char *const names[LEVELS] = {"plain", "x86-64-v3", "x86-64-v4"};

sl_kernel_level sl_kernels_level;

static sl_kernel_level best(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("bmi2"))
        return SL_KERNELS_PLAIN;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl"))
        return SL_KERNELS_V3;
    return SL_KERNELS_V4;
#else
    return SL_KERNELS_PLAIN;
#endif
}

/* LEVELS: the name is unknown. */
static int level_of(const char *name) {
    int level = 0;
    while (level < LEVELS && strcmp(name, names[level]) != 0)
        level++;
    return level;
}

/* Runs before main(), while there is one thread. sl_kernels_check reports what was refused. */
__attribute__((constructor)) static void choose(void) {
    const char *asked = getenv("STARLING_KERNELS");
    sl_kernels_level = best();
    if (asked != NULL && level_of(asked) < (int)sl_kernels_level)
        sl_kernels_level = (sl_kernel_level)level_of(asked);
}

const char *sl_kernels_name(void) {
    return names[sl_kernels_level];
}

int sl_kernels_check(sl_error *error) {
    const char *asked = getenv("STARLING_KERNELS");
    if (asked == NULL || level_of(asked) <= (int)best())
        return 0;
    if (level_of(asked) < LEVELS)
        return sl_fail(error, SL_EINVAL, "STARLING_KERNELS=%.40s: this processor has %s only",
                       asked, names[best()]);
    return sl_fail(error, SL_EINVAL,
                   "STARLING_KERNELS=%.40s is not allowed; it must be \"plain\", \"x86-64-v3\" or "
                   "\"x86-64-v4\"",
                   asked);
}
