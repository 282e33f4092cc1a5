/* test_compress_three_lc.c - 3lc: values, bytes and runs as the paper has them, the bound on its
 * error, and what is refused. */
#include <float.h>

#include "sparse_wire.h"

static sl_compressor_config three_lc(double multiplier) {
    return (sl_compressor_config){.kind = SL_COMPRESSOR_THREE_LC, .multiplier = multiplier};
}

static double error_of(const float *got, const float *v, size_t d) {
    return sl_vec_cpu()->distance_squared(got, v, d) / sl_vec_cpu()->norm2_squared(v, d);
}

/* ---- values ---- */

START_TEST(values_are_m_and_zero) {
    const float v[] = {0.5f, -1, 0.49999f, 0, -0.5f, 2, -0.99999f},
                at_1_5[] = {0, 0, 0, 0, 0, 3, 0}, at_1[] = {0, -2, 0, 0, 0, 2, 0};
    float *got = round_trip(three_lc(1), v, 7, ONE_PART),
          *sparser = round_trip(three_lc(1.5), v, 7, ONE_PART);
    expect_equal(got, at_1, 7);
    expect_equal(sparser, at_1_5, 7);
    release(got);
    release(sparser);
}
END_TEST

/* Of groups, tails and parts of every length. */
START_TEST(any_length_is_decoded) {
    static const size_t dimensions[] = {1,    2,     4,     5,      6,      1023,  1024,
                                        1025, 5119,  5120,  5121,   6143,   6145,  10241,
                                        9999, 15360, 15361, 163840, 163841, 200001};
    static const size_t part_bytes[] = {SMALL_PART, 7000, ONE_PART};
    for (size_t s = 0; s < sizeof dimensions / sizeof *dimensions; s++)
        for (int p = 0; p < 3; p++) {
            const size_t d = dimensions[s];
            float *v = gaussian(d, 1), *expected = vector_of(d), m = 0;
            for (size_t i = 0; i < d; i++)
                m = fmaxf(m, 1.1f * fabsf(v[i]));
            for (size_t i = 0; i < d; i++)
                expected[i] = fabsf(v[i]) >= m / 2 ? copysignf(m, v[i]) : 0;
            float *got = round_trip(three_lc((double)1.1f), v, d, part_bytes[p]);
            expect_equal(got, expected, d);
            release(got);
            release(expected);
            release(v);
        }
}
END_TEST

/* ---- bytes ---- */

/* The bytes behind M of one part. */
static void expect_bytes(const float *v, size_t d, const uint8_t *bytes, size_t count) {
    pair p = open_pair(three_lc(1), d, ONE_PART);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    ck_assert_uint_eq(message_bytes(&p), sizeof(float) + count);
    ck_assert_mem_eq((const uint8_t *)p.payloads[0].data + sizeof(float), bytes, count);
    close_pair(&p);
}

START_TEST(bytes_are_the_published_ones) {
    const float five[] = {1, -1, 0, 0.6f, -0.6f}, ones[] = {1, 1, 1, 1, 1},
                two[] = {1, 0, 0, 0, -1, 0, 0}; /* digits 2 1, 1 1, 0 1, 1 and padding */
    expect_bytes(five, 5, (uint8_t[]){2 * 81 + 0 * 27 + 1 * 9 + 2 * 3 + 0}, 1);
    expect_bytes(ones, 5, (uint8_t[]){242}, 1);
    expect_bytes(two, 7, (uint8_t[]){2 * 81 + 27 + 0 * 9 + 3 + 1, 121}, 2);
}
END_TEST

/* The first byte is none of zeros; behind it n, which end with the vector. */
START_TEST(runs_are_the_published_ones) {
    for (size_t n = 1; n <= 40; n++) {
        const size_t d = 5 * (n + 1);
        float *v = vector_of(d);
        uint8_t bytes[8] = {2 * 81 + 27 + 9 + 3 + 1};
        size_t count = 1, left = n;
        v[0] = 1;
        for (; left >= 14; left -= 14)
            bytes[count++] = 255;
        if (left > 0)
            bytes[count++] = left == 1 ? 121 : (uint8_t)(243 + left - 2);
        expect_bytes(v, d, bytes, count);
        release(v);
    }
}
END_TEST

START_TEST(sizes_are_within_the_formula) {
    static const size_t dimensions[] = {1, 5, 6, 5121, 100003};
    for (int s = 0; s < 5; s++) {
        const size_t d = dimensions[s];
        sl_compressor_config config = three_lc(1);
        float *v = gaussian(d, 2);
        for (size_t i = 0; i < d; i++)
            v[i] = copysignf(1, v[i]); /* no zero, no run */
        pair p = open_pair(config, d, ONE_PART);
        ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
        const size_t bytes = (d + 4) / 5 + 4 * sl_codec_parts(p.codec);
        ck_assert_uint_eq(message_bytes(&p), bytes);
        ck_assert_double_eq(sl_compressor_bits(&config, d), 8.0 * (double)((d + 4) / 5) + 32);
        close_pair(&p);
        release(v);
    }
}
END_TEST

/* ---- errors ---- */

START_TEST(errors_are_within_delta) {
    static const double multipliers[] = {1, 1.3, 1.75, 1.99};
    for (int s = 0; s < 4; s++)
        for (size_t d = 1; d < 100000; d = 3 * d + 1) {
            const double multiplier = multipliers[s];
            const sl_compressor_config config = three_lc(multiplier);
            const sl_quality q = sl_compressor_quality(&config, d);
            float *v = gaussian(d, 3), *got = round_trip(config, v, d, ONE_PART);
            ck_assert(q.is_contractive && !q.unbiased && q.delta > 0 && q.usual_delta >= q.delta);
            ck_assert_double_le(error_of(got, v, d), 1 - q.delta + 1e-6);
            release(got);
            for (size_t i = 0; i < d; i++) /* the worst of all */
                v[i] = i == d / 2 ? 1 : (float)(multiplier / 2);
            got = round_trip(config, v, d, ONE_PART);
            ck_assert_double_eq_tol(error_of(got, v, d), 1 - q.delta, 1e-5);
            release(got);
            release(v);
        }
}
END_TEST

START_TEST(the_usual_delta_is_that_of_normal_vectors) {
    for (size_t d = 10000; d <= 1000000; d *= 10) {
        const sl_compressor_config config = three_lc(1);
        const sl_quality q = sl_compressor_quality(&config, d);
        float *v = gaussian(d, 4), *got = round_trip(config, v, d, ONE_PART);
        const double delta = 1 - error_of(got, v, d);
        ck_assert_msg(q.usual_delta <= delta && q.usual_delta > 0.3 * delta, "%zu: %g, not %g", d,
                      q.usual_delta, delta);
        release(got);
        release(v);
    }
}
END_TEST

/* ---- what is refused ---- */

static int check_bytes(size_t d, float m, const uint8_t *bytes, size_t count) {
    pair p = open_pair(three_lc(1), d, ONE_PART);
    uint8_t *payload = malloc(sizeof m + count); /* a sanitizer sees what is read behind it */
    memcpy(payload, &m, sizeof m);
    memcpy(payload + sizeof m, bytes, count);
    const int result =
        sl_decoder_check(p.decoder, &a_message, 0, (sl_payload){payload, sizeof m + count});
    free(payload);
    close_pair(&p);
    return result;
}

START_TEST(a_wrong_payload_is_refused) {
    ck_assert_int_eq(check_bytes(10, 1, (uint8_t[]){0, 242}, 2), 0);
    ck_assert_int_eq(check_bytes(10, 1, (uint8_t[]){243}, 1), 0);
    ck_assert_int_eq(check_bytes(10, 1, (uint8_t[]){244}, 1), SL_EPROTO);
    ck_assert_int_eq(check_bytes(10, 1, (uint8_t[]){0}, 1), SL_EPROTO);
    ck_assert_int_eq(check_bytes(10, 1, (uint8_t[]){0, 243}, 2), SL_EPROTO);
    ck_assert_int_eq(check_bytes(10, 1, (uint8_t[]){0, 1, 2}, 3), SL_EPROTO);
    ck_assert_int_eq(check_bytes(10, NAN, (uint8_t[]){243}, 1), SL_EPROTO);
    ck_assert_int_eq(check_bytes(10, INFINITY, (uint8_t[]){243}, 1), SL_EPROTO);
    ck_assert_int_eq(check_bytes(10, -1, (uint8_t[]){243}, 1), SL_EPROTO);
    ck_assert_int_eq(check_bytes(9, 1, (uint8_t[]){121, 122}, 2), SL_EPROTO); /* padding */
    pair p = open_pair(three_lc(1), 10, ONE_PART);
    ck_assert_int_eq(sl_decoder_check(p.decoder, &a_message, 0, (sl_payload){"abc", 3}), SL_EPROTO);
    close_pair(&p);
}
END_TEST

START_TEST(a_wrong_multiplier_is_refused) {
    static const double wrong[] = {0.99, 2, -1, NAN};
    for (int i = 0; i < 4; i++) {
        sl_error error;
        const sl_compressor_config config = three_lc(wrong[i]);
        ck_assert_int_eq(sl_compressor_check(&config, 10, &error), SL_EINVAL);
        ck_assert_ptr_nonnull(strstr(error.text, "must be at least 1 and below 2"));
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_three_lc");
    ADD_TESTS(suite, "values", values_are_m_and_zero, any_length_is_decoded);
    ADD_TESTS(suite, "bytes", bytes_are_the_published_ones, runs_are_the_published_ones,
              sizes_are_within_the_formula);
    ADD_TESTS(suite, "errors", errors_are_within_delta, the_usual_delta_is_that_of_normal_vectors);
    ADD_TESTS(suite, "refused", a_wrong_payload_is_refused, a_wrong_multiplier_is_refused);
    return run_suite(suite);
}
