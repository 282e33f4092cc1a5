/* harness.h - the main function of a Check program: one suite, one line a test. */
#ifndef STARLING_TEST_HARNESS_H
#define STARLING_TEST_HARNESS_H

#include <check.h>
#include <stdlib.h>

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

/* A test for each _i of [from, end), between setup and teardown, which may be NULL. */
static inline void add_loop_with(Suite *suite, const TTest *test, SFun setup, SFun teardown,
                                 size_t from, size_t end) {
    TCase *each = tcase_create(test->name);
    tcase_set_timeout(each, 240);
    tcase_add_checked_fixture(each, setup, teardown);
    tcase_add_loop_test(each, test, (int)from, (int)end);
    suite_add_tcase(suite, each);
}

static inline void add_loop(Suite *suite, const TTest *test, size_t from, size_t end) {
    add_loop_with(suite, test, NULL, NULL, from, end);
}

#endif
