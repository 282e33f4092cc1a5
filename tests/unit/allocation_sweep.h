/* allocation_sweep.h - the n-th allocation fails, for every n until what was asked for works.
 *
 * The linker passes the library's calls of malloc and its kin through here (tests/meson.build).
 * Those inside other libraries and libc are not touched. */
#ifndef STARLING_TEST_ALLOCATION_SWEEP_H
#define STARLING_TEST_ALLOCATION_SWEEP_H

#include <execinfo.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "starling/error.h"

#define ALLOCATIONS_MAX 20000
#define ALWAYS LONG_MAX

/* Allocations until one fails; who asked for that one. */
static atomic_long left = ALWAYS;
static void *callers[16];
static int caller_count;

static bool fails(void) {
    if (atomic_load(&left) == ALWAYS || atomic_fetch_sub(&left, 1) != 0)
        return false;
    caller_count = backtrace(callers, sizeof callers / sizeof *callers);
    return true;
}

#define WRAP(type, name, parameters, arguments)                                                    \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters {                                                                \
        return fails() ? NULL : __real_##name arguments;                                           \
    }
WRAP(void *, malloc, (size_t bytes), (bytes))
WRAP(void *, calloc, (size_t count, size_t bytes), (count, bytes))
WRAP(void *, realloc, (void *memory, size_t bytes), (memory, bytes))
WRAP(void *, aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes))
WRAP(char *, strdup, (const char *text), (text))

int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

typedef int work_function(sl_error *error);

/* What failed, was said, and with what code, for each n. */
static void sweep(const char *name, work_function *work) {
    sl_error error;
    error.text[0] = '\0';
    ck_assert_msg(work(&error) == 0, "%s: %s", name, error.text); /* and caches are filled */
    for (long n = 0; n < ALLOCATIONS_MAX; n++) {
        error = (sl_error){0};
        atomic_store(&left, n);
        int result = work(&error);
        bool failed = atomic_exchange(&left, ALWAYS) < 0;
        if (!failed) {
            ck_assert_msg(result == 0, "%s: %s", name, error.text);
            printf("%s: %ld allocations\n", name, n);
            return;
        }
        if (result != SL_ENOMEM)
            backtrace_symbols_fd(callers, caller_count, STDOUT_FILENO);
        ck_assert_msg(result == SL_ENOMEM, "%s: allocation %ld failed, and it ended with %d: %s",
                      name, n, result, error.text);
        ck_assert_msg(error.text[0] != '\0' && strchr(error.text, '\n') == NULL,
                      "%s, allocation %ld: no line, but '%s'", name, n, error.text);
        ck_assert_msg(__lsan_do_recoverable_leak_check == NULL ||
                          __lsan_do_recoverable_leak_check() == 0,
                      "%s: allocation %ld failed, and memory was lost", name, n);
    }
    ck_abort_msg("%s: never done", name);
}

#endif
