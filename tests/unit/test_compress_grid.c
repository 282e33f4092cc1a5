/* test_compress_grid.c - grid, the messages of laq: values, bytes, and what is refused. */
#include "compress/quantization/grid.h"
#include "sparse_wire.h"

static sl_compressor_config grid(uint32_t bits) {
    return (sl_compressor_config){.kind = SL_COMPRESSOR_GRID, .bits = bits};
}

START_TEST(values_are_the_nearest_points) {
    /* R = 3, step 2: points -3, -1, 1, 3; a half goes up */
    const float v[] = {3, 0, -0.01f, 1.9f, 2, -3, -2, -2.01f}, at[] = {3, 1, -1, 1, 3, -3, -1, -3};
    float *got = round_trip(grid(2), v, 8, ONE_PART);
    expect_equal(got, at, 8);
    release(got);
}
END_TEST

/* Of groups, tails and parts of every length, by all widths; the algorithm rounds alike. */
START_TEST(any_length_is_decoded) {
    static const size_t dimensions[] = {1, 2, 7, 8, 9, 1023, 1024, 1025, 5121, 65536, 66561};
    static const size_t part_bytes[] = {SMALL_PART, 7000, ONE_PART};
    const uint32_t bits = (uint32_t)_i;
    for (size_t s = 0; s < sizeof dimensions / sizeof *dimensions; s++)
        for (int p = 0; p < 3; p++) {
            const size_t d = dimensions[s];
            float range = 0, rounded;
            float *v = gaussian(d, 1), *got = round_trip(grid(bits), v, d, part_bytes[p]);
            for (size_t i = 0; i < d; i++)
                range = fabsf(v[i]) > range ? fabsf(v[i]) : range;
            const sl_grid g = sl_grid_of(bits, range);
            for (size_t i = 0; i < d; i++) {
                sl_grid_round(&g, &v[i], 1, &rounded);
                ck_assert_float_eq(got[i], rounded);
                ck_assert_double_le(fabs((double)got[i] - (double)v[i]), 0.501 * g.step + 1e-7);
            }
            release(got);
            release(v);
        }
}
END_TEST

START_TEST(wrong_bits_are_refused) {
    sl_error error;
    for (uint32_t bits = 0; bits <= 17; bits += 17) {
        const sl_compressor_config config = grid(bits);
        ck_assert_int_eq(sl_compressor_check(&config, 10, &error), SL_EINVAL);
        ck_assert_ptr_nonnull(strstr(error.text, "algorithm.bits:"));
        ck_assert_ptr_nonnull(strstr(error.text, "1 to 16"));
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_grid");
    ADD_TESTS(suite, "values", values_are_the_nearest_points);
    ADD_TESTS(suite, "refused", wrong_bits_are_refused);
    TCase *loops = tcase_create("widths");
    tcase_add_loop_test(loops, any_length_is_decoded, 1, 17);
    suite_add_tcase(suite, loops);
    return run_suite(suite);
}
