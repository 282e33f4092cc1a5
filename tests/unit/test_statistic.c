/* test_statistic.c - what is said of a number over seeds: texts one by one. test_compare.py has
 * the numbers. */
#include "compare/statistic.h"
#include "harness.h"

typedef struct text_case {
    double values[3];
    size_t count, all;
    number_style style;
    statistic_kind kind;
    const char *expected;
} text_case;

static const text_case texts[] = {
    {{0}, 0, 3, {1, 3, ""}, STATISTIC_MEAN, "-"},
    {{0.5}, 1, 1, {100, 2, ""}, STATISTIC_MEAN, "50.00"},
    {{600}, 1, 3, {1, 0, ""}, STATISTIC_MEAN, "600 (1 of 3)"},
    {{0.31704999}, 1, 1, {1, -5, ""}, STATISTIC_MEAN, "0.31705"},
    {{0.41}, 1, 1, {1, -4, " s"}, STATISTIC_MEAN, "0.41 s"},
    /* the same decimals, from the spread */
    {{0.4, 0.5, 0.6}, 3, 3, {1, -5, ""}, STATISTIC_MEAN, "0.50 ± 0.10"},
    {{0.4999, 0.5, 0.5001}, 3, 3, {1, -5, ""}, STATISTIC_MEAN, "0.50000 ± 0.00010"},
    {{100, 300, 500}, 3, 3, {1, -4, " s"}, STATISTIC_MEAN, "300 ± 200 s"},
    /* of a column with decimals those, unless the spread would read 0 */
    {{0.862, 0.863, 0.864}, 3, 3, {100, 2, ""}, STATISTIC_MEAN, "86.30 ± 0.10"},
    {{150, 300, 450}, 3, 3, {1, 0, ""}, STATISTIC_MEAN, "300 ± 150"},
    {{0.00084, 0.001, 0.00116}, 3, 3, {1, 3, ""}, STATISTIC_MEAN, "0.00100 ± 0.00016"},
    {{0.001, 0.002}, 2, 3, {1, 3, ""}, STATISTIC_MEAN, "0.002 ± 0.001 (2 of 3)"},
    {{2, 2, 2}, 3, 3, {1, 3, ""}, STATISTIC_MEAN, "2.000 ± 0"},
    /* one power of ten for both */
    {{3e-5, 3.2e-5, 3.4e-5}, 3, 3, {1, -3, ""}, STATISTIC_MEAN, "(3.20 ± 0.20)e-05"},
    {{2e7, 3e7, 4e7}, 3, 3, {1, -3, ""}, STATISTIC_MEAN, "(3.0 ± 1.0)e+07"},
    {{0.4, 0.5, 0.8}, 3, 3, {1, -5, ""}, STATISTIC_MEDIAN, "0.50 [0.45, 0.65]"},
    {{2, 2, 2}, 3, 4, {1, 0, " s"}, STATISTIC_MEDIAN, "2 [2, 2] s (3 of 4)"},
    {{2, 1}, 2, 2, {1, 2, ""}, STATISTIC_MEDIAN, "1.50 [1.25, 1.75]"},
    /* no difference of large squares */
    {{1e9 + 1, 1e9 + 2, 1e9 + 3}, 3, 3, {1, 0, ""}, STATISTIC_MEAN, "1000000002 ± 1"},
};

START_LOOP_TEST(texts_are_as_listed, sizeof texts / sizeof *texts) {
    const text_case *t = &texts[_i];
    double copy[3];
    char text[STATISTIC_BYTES];
    memcpy(copy, t->values, sizeof copy);
    const statistic s = statistic_of(copy, t->count);
    statistic_text(text, &s, t->kind, t->style, t->all);
    ck_assert_str_eq(text, t->expected);
}
