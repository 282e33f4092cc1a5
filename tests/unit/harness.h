/* harness.h - Check programs, with what most of them need of libc. A test that a file defines is
 * run, with the fixtures that the file names before it, each in a process of its own; a file that
 * has nothing else to do needs no main(). */
#ifndef STARLING_TEST_HARNESS_H
#define STARLING_TEST_HARNESS_H

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int run_suite(Suite *suite);

/* ---- what a test opens ---- */

/* Closes the object behind the test, the last one first, unless it is closed before. Returns it. */
void *close_behind(void *object, void (*close)(void *object));
void close_now(void *object);

/* close_sl_x() of objects that sl_x_close() closes. */
#define CLOSER(type)                                                                               \
    static inline void close_##type(void *object) {                                                \
        type##_close(&(type *){object});                                                           \
    }                                                                                              \
    _Static_assert(1, "takes a semicolon")

/* Zeros, until the test ends. */
float *new_floats(size_t count);

/* The text with " for each ', until the test ends. NULL stays. */
const char *quoted(const char *text);

/* What printf prints, until the test ends. */
__attribute__((format(printf, 1, 2))) const char *printed(const char *format, ...);

/* A row of a table, so that clang-format fills its lines. */
#define ROW(...)                                                                                   \
    { __VA_ARGS__ }

/* ---- calls that fill `error` ---- */

typedef struct refusal {
    const char *text, *said; /* of it */
} refusal;

#define EXPECT_WELL(call) ck_assert_msg((call) == 0, "%s", error.text)
#define EXPECT_ERROR(call, code, words)                                                            \
    do {                                                                                           \
        const int result_ = (call);                                                                \
        ck_assert_msg(result_ == (code) && strstr(error.text, words) != NULL,                      \
                      "%s: %d, not %d, and not \"%s\"", error.text, result_, (code), words);       \
    } while (0)

/* ---- tests that add themselves ---- */

typedef struct harness_entry {
    int line;
    const TTest *test; /* NULL: fixtures of the tests behind it */
    int count;         /* of times, with _i from 0 */
    SFun setup, teardown;
} harness_entry;

void harness_add(harness_entry entry);

/* All tests of the file, in its order. */
int run_tests(const char *name);

#define HARNESS_ADD(id, ...)                                                                       \
    __attribute__((constructor)) static void id(void) {                                            \
        harness_add((harness_entry){.line = __LINE__, __VA_ARGS__});                               \
    }

#define START_LOOP_TEST(name, times)                                                               \
    static void name##_fn(int _i);                                                                 \
    static const TTest name##_ttest = {#name, name##_fn, __FILE__, __LINE__};                      \
    static const TTest *name = &name##_ttest;                                                      \
    HARNESS_ADD(name##_add, .test = name, .count = times)                                          \
    static void name##_fn(int _i CK_ATTRIBUTE_UNUSED)

#undef START_TEST
#define START_TEST(name) START_LOOP_TEST(name, 1)

/* Of the tests that follow, until others are named. */
#define FIXTURES(before, after)                                                                    \
    HARNESS_ADD(fixtures_##before##_##after, .setup = before, .teardown = after)                   \
    _Static_assert(1, "takes a semicolon")

#endif
