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

#define ADD_TESTS(suite, name, ...)                                                                \
    do {                                                                                           \
        const TTest *added_[] = {__VA_ARGS__};                                                     \
        TCase *test_case = tcase_create(name);                                                     \
        tcase_set_timeout(test_case, 120);                                                         \
        for (size_t i_ = 0; i_ < sizeof added_ / sizeof *added_; i_++)                             \
            tcase_add_test(test_case, added_[i_]);                                                 \
        suite_add_tcase(suite, test_case);                                                         \
    } while (0)

#endif
