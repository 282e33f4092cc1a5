/* test_compress_modular.c - modular, the messages of moniqua: values, bytes, and what is refused.
 */
#include "sparse_wire.h"

static sl_compressor_config modular(uint32_t bits, double theta) {
    return (sl_compressor_config){.kind = SL_COMPRESSOR_MODULAR, .bits = bits, .theta = theta};
}

/* The grid's point for v, by another way than the program's. */
static double expected_point(double v, uint32_t bits, double theta) {
    const double codes = ldexp(1, (int)bits), b = 2 * theta * codes / (codes - 1), step = b / codes;
    double level = floor(v / step + 0.5);
    level -= codes * floor((level + codes / 2) / codes);
    return level * step;
}

START_TEST(values_are_the_rest_on_a_grid) {
    /* B = 2 * 0.75 / (1 - 1/4) = 2, step 1/2 */
    const float v[] = {0, 0.2f, 0.25f, -0.25f, 0.7f, 0.76f, 1, -1, 1.3f, 7.5f, -4.5f, 1000.5f},
                at[] = {0, 0, 0.5f, 0, 0.5f, -1, -1, -1, -0.5f, -0.5f, -0.5f, 0.5f};
    float *got = round_trip(modular(2, 0.75), v, 12, ONE_PART);
    expect_equal(got, at, 12);
    release(got);
}
END_TEST

/* Of groups, tails and parts of every length, by all widths. */
START_TEST(any_length_is_decoded) {
    static const size_t dimensions[] = {1, 2, 7, 8, 9, 1023, 1024, 1025, 5121, 65536, 66561};
    static const size_t part_bytes[] = {SMALL_PART, 7000, ONE_PART};
    const uint32_t bits = (uint32_t)_i;
    for (size_t s = 0; s < sizeof dimensions / sizeof *dimensions; s++)
        for (int p = 0; p < 3; p++) {
            const size_t d = dimensions[s];
            const double theta = 0.4, step = 2 * theta / (ldexp(1, (int)bits) - 1);
            float *v = gaussian(d, 1), *got = round_trip(modular(bits, theta), v, d, part_bytes[p]);
            for (size_t i = 0; i < d; i++) {
                const double off = fabs(got[i] - expected_point(v[i], bits, theta)) / step,
                             roundoff = ldexp(fabsf(got[i]), -24) / step;
                /* Near the middle of two points either is right. */
                const double from = v[i] / step, middle = fabs(from - floor(from) - 0.5);
                ck_assert_msg(off < 0.01 + roundoff || middle < 1e-3,
                              "%u bits, element %zu: %a for %a", bits, i, got[i], v[i]);
            }
            release(got);
            release(v);
        }
}
END_TEST

/* What lies far beyond the modulus is still a number. */
START_TEST(large_numbers_are_sent) {
    const float v[] = {3e38f, -3e38f, 1e30f, 1e20f, -1e12f};
    for (uint32_t bits = 1; bits <= 24; bits++) {
        float *got = round_trip(modular(bits, 1), v, 5, ONE_PART);
        for (int i = 0; i < 5; i++)
            ck_assert(fabsf(got[i]) <= 2);
        release(got);
    }
}
END_TEST

START_TEST(wrong_parameters_are_refused) {
    static const struct {
        uint32_t bits;
        double theta;
        const char *text;
    } wrong[] = {{0, 1, "algorithm.bits: 0"},  {25, 1, "algorithm.bits: 25"},
                 {8, 0, "algorithm.theta: 0"}, {8, -1, "algorithm.theta: -1"},
                 {8, NAN, "algorithm.theta"},  {8, INFINITY, "algorithm.theta: inf"}};
    for (int i = 0; i < 6; i++) {
        sl_error error;
        const sl_compressor_config config = modular(wrong[i].bits, wrong[i].theta);
        ck_assert_int_eq(sl_compressor_check(&config, 10, &error), SL_EINVAL);
        ck_assert_ptr_nonnull(strstr(error.text, wrong[i].text));
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_modular");
    ADD_TESTS(suite, "values", values_are_the_rest_on_a_grid, large_numbers_are_sent);
    ADD_TESTS(suite, "refused", wrong_parameters_are_refused);
    TCase *loops = tcase_create("widths");
    tcase_add_loop_test(loops, any_length_is_decoded, 1, 25);
    suite_add_tcase(suite, loops);
    return run_suite(suite);
}
