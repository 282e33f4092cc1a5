/* harness.h - Check programs, with what most of them need of libc. A test that a file defines is
 * run, with the fixtures that the file names before it, each in a process of its own. */
#ifndef STARLING_TEST_HARNESS_H
#define STARLING_TEST_HARNESS_H

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline int run_suite(Suite *suite) {
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* A case of tests; each runs between setup and teardown, in a process of its own. */
#define ADD_TESTS_WITH(suite, name, setup, teardown, ...)                                          \
    do {                                                                                           \
        const TTest *added_[] = {__VA_ARGS__};                                                     \
        TCase *test_case = tcase_create(name);                                                     \
        tcase_set_timeout(test_case, 120);                                                         \
        tcase_add_checked_fixture(test_case, setup, teardown);                                     \
        for (size_t i_ = 0; i_ < sizeof added_ / sizeof *added_; i_++)                             \
            tcase_add_test(test_case, added_[i_]);                                                 \
        suite_add_tcase(suite, test_case);                                                         \
    } while (0)

#define ADD_TESTS(suite, name, ...) ADD_TESTS_WITH(suite, name, NULL, NULL, __VA_ARGS__)

/* ---- tests that add themselves ---- */

typedef struct harness_entry {
    int line;
    const TTest *test; /* NULL: fixtures of the tests behind it */
    int count;         /* of times, with _i from 0 */
    SFun setup, teardown;
} harness_entry;

enum { HARNESS_ENTRIES = 128 };
static harness_entry harness_entries[HARNESS_ENTRIES];
static int harness_count;

static inline void harness_add(harness_entry entry) {
    if (harness_count == HARNESS_ENTRIES)
        abort();
    harness_entries[harness_count++] = entry;
}

static inline int harness_compare(const void *a, const void *b) {
    return ((const harness_entry *)a)->line - ((const harness_entry *)b)->line;
}

/* All tests of the file, in its order. */
static inline int run_tests(const char *name) {
    Suite *suite = suite_create(name);
    TCase *test_case = NULL;
    SFun setup = NULL, teardown = NULL;
    qsort(harness_entries, (size_t)harness_count, sizeof *harness_entries, harness_compare);
    for (const harness_entry *e = harness_entries; e < harness_entries + harness_count; e++) {
        if (e->test == NULL) {
            setup = e->setup;
            teardown = e->teardown;
            test_case = NULL;
            continue;
        }
        if (test_case == NULL) {
            test_case = tcase_create(name);
            tcase_set_timeout(test_case, 240);
            tcase_add_checked_fixture(test_case, setup, teardown);
            suite_add_tcase(suite, test_case);
        }
        tcase_add_loop_test(test_case, e->test, 0, e->count);
    }
    return run_suite(suite);
}

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
