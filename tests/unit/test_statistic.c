/* test_statistic.c - what is said of a number over seeds: values against formulas, texts one by
 * one. */
#include <math.h>
#include <string.h>

#include "compare/statistic.h"
#include "harness.h"

#define TOLERANCE 1e-12

static statistic of(size_t count, const double *values) {
    double copy[16];
    if (count > 0)
        memcpy(copy, values, count * sizeof *values);
    return statistic_of(copy, count);
}

START_TEST(numbers_are_those_of_the_formulas) {
    const statistic s = of(5, (const double[]){9, 1, 4, 2, 4});
    ck_assert_uint_eq(s.count, 5);
    ck_assert_double_eq_tol(s.mean, 4, TOLERANCE);
    ck_assert_double_eq_tol(s.deviation, sqrt(38.0 / 4), TOLERANCE);
    ck_assert(s.median == 4 && s.low == 2 && s.high == 4);
    const statistic even = of(4, (const double[]){4, 1, 3, 2});
    ck_assert_double_eq_tol(even.median, 2.5, TOLERANCE);
    ck_assert_double_eq_tol(even.low, 1.75, TOLERANCE);
    ck_assert_double_eq_tol(even.high, 3.25, TOLERANCE);
    const statistic one = of(1, (const double[]){7});
    ck_assert(one.mean == 7 && isnan(one.deviation) && one.median == 7 && one.low == 7);
    ck_assert(of(0, NULL).count == 0 && isnan(of(0, NULL).mean));
}

/* Numbers near 1e9 with a small spread: no difference of large squares. */
START_TEST(a_small_spread_of_large_numbers_is_exact) {
    const statistic s = of(3, (const double[]){1e9 + 1, 1e9 + 2, 1e9 + 3});
    ck_assert_double_eq_tol(s.deviation, 1, 1e-9);
}

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
};

START_LOOP_TEST(texts_are_as_listed, sizeof texts / sizeof *texts) {
    const text_case *t = &texts[_i];
    const statistic s = of(t->count, t->values);
    char text[STATISTIC_BYTES];
    statistic_text(text, &s, t->kind, t->style, t->all);
    ck_assert_str_eq(text, t->expected);
}
