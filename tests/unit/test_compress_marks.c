/* test_compress_marks.c - stc, sbc, pos-neg and strom: messages worked out by hand from the papers,
 * exact sizes, what a sort gives, and the error of one vector. */
#include <float.h>

#include "sparse_wire.h"

static size_t log2_up(size_t d) {
    size_t bits = 0;
    while (((size_t)1 << bits) < d)
        bits++;
    return bits;
}

/* ---- by hand ---- */

static void expect_message(sl_compressor_config config, const float *v, size_t d,
                           const float *decoded, const void *bytes, size_t count) {
    pair p = open_pair(config, d, ONE_PART);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    ck_assert_uint_eq(sl_codec_parts(p.codec), 1);
    ck_assert_uint_eq(p.payloads[0].bytes, count);
    ck_assert_mem_eq(p.payloads[0].data, bytes, count);
    float *got = vector_of(d);
    decode(&p, &a_message, 1, got);
    expect_equal(got, decoded, d);
    release(got);
    close_pair(&p);
}

START_TEST(stc_sends_the_mean_magnitude_with_signs) {
    const float v[] = {1, -5, 2, 3, -3}, decoded[] = {0, -4, 0, 4, 0};
    /* 4.0, then 1 << 1 | 1 and 3 << 1 | 0, of 4 bits each */
    expect_message(marking(SL_COMPRESSOR_STC, 2), v, 5, decoded,
                   (const uint8_t[]){0, 0, 0x80, 0x40, 0x63}, 5);
}
END_TEST

START_TEST(sbc_sends_the_side_with_the_larger_mean) {
    const float v[] = {3, -5, 1, -1, -4}, decoded[] = {0, -4.5f, 0, 0, -4.5f};
    /* -4.5, then 1 and 4, of 3 bits each */
    expect_message(marking(SL_COMPRESSOR_SBC, 2), v, 5, decoded,
                   (const uint8_t[]){0, 0, 0x90, 0xC0, 0x21}, 5);
    const float equal[] = {-2, 2, 0, 0}, upper[] = {0, 2, 0, 0};
    expect_message(marking(SL_COMPRESSOR_SBC, 1), equal, 4, upper,
                   (const uint8_t[]){0, 0, 0, 0x40, 1}, 5);
}
END_TEST

START_TEST(pos_neg_sends_both_ends) {
    const float v[] = {3, -5, 1, -1, -4}, decoded[] = {2, -4.5f, 2, 0, -4.5f};
    /* 2.0, -4.5, then 0 << 1, 1 << 1 | 1, 2 << 1, 4 << 1 | 1, of 4 bits each */
    expect_message(marking(SL_COMPRESSOR_POS_NEG, 2), v, 5, decoded,
                   (const uint8_t[]){0, 0, 0, 0x40, 0, 0, 0x90, 0xC0, 0x30, 0x94}, 10);
}
END_TEST

START_TEST(strom_sends_tau_with_signs) {
    sl_compressor_config config = {.kind = SL_COMPRESSOR_STROM, .threshold = 2};
    const float v[] = {3, -5, 1, -1.9f, -2}, decoded[] = {2, -2, 0, 0, -2}, zeros[5] = {0};
    /* 0 << 1, 1 << 1 | 1, 4 << 1 | 1, of 4 bits each */
    expect_message(config, v, 5, decoded, (const uint8_t[]){0x30, 0x09}, 2);
    expect_message(config, zeros, 5, zeros, "", 0);
    expect_message(config, (const float[]){2, 0, 0, 0, 0}, 5, (const float[]){2, 0, 0, 0, 0},
                   (const uint8_t[]){0}, 1);
    expect_message(config, (const float[]){-9}, 1, (const float[]){-2}, (const uint8_t[]){1}, 1);
}
END_TEST

/* Equal values count as sorted by index: the first go up, the last down. */
START_TEST(no_element_is_of_both_kinds) {
    float v[4096], *decoded;
    for (size_t d = 1; d <= 4096; d = d * 2 + d % 3) {
        for (size_t i = 0; i < d; i++)
            v[i] = i % 7 == 3 ? 0.0f : -0.0f;
        v[d / 2] = d > 3 ? 5 : 1;
        for (size_t k = 1; k <= (d + 1) / 2; k = k * 2 + 1) {
            pair p = open_pair(marking(SL_COMPRESSOR_POS_NEG, k), d, SMALL_PART);
            ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
            close_pair(&p);
            decoded = round_trip(marking(SL_COMPRESSOR_POS_NEG, k), v, d, SMALL_PART);
            for (size_t i = 0, ups = 0; i < d; i++) {
                ups += decoded[i] != 0;
                ck_assert(ups <= k);
            }
            release(decoded);
        }
    }
    const float equal[] = {3, 3, 3, 3, 3}, expected[] = {3, 3, 3, 3, 0};
    decoded = round_trip(marking(SL_COMPRESSOR_POS_NEG, 2), equal, 5, ONE_PART);
    expect_equal(decoded, expected, 5);
    release(decoded);
}
END_TEST

/* ---- sizes ---- */

START_TEST(strom_sends_an_index_and_a_sign_for_what_reaches_tau) {
    for (size_t d = 1; d < 200000; d = d * 5 + 3) {
        float *v = gaussian(d, 3);
        size_t sent = 0;
        for (size_t i = 0; i < d; i++)
            sent += fabsf(v[i]) >= 1;
        sl_compressor_config config = {.kind = SL_COMPRESSOR_STROM, .threshold = 1};
        pair p = open_pair(config, d, ONE_PART);
        ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
        ck_assert_uint_eq(message_bytes(&p), (sent * (log2_up(d) + 1) + 7) / 8);
        close_pair(&p);
        float *decoded = round_trip(config, v, d, SMALL_PART);
        for (size_t i = 0; i < d; i++)
            ck_assert(decoded[i] == (v[i] >= 1 ? 1.0f : v[i] <= -1 ? -1.0f : 0.0f));
        release(decoded);
        release(v);
    }
}
END_TEST

/* ---- against a sort ---- */

typedef struct place {
    double value;
    size_t index;
} place;

static int downward(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static place *sorted(const float *v, size_t d, double (*of)(double)) {
    place *all = calloc(d, sizeof *all);
    for (size_t i = 0; i < d; i++)
        all[i] = (place){of(v[i]), i};
    qsort(all, d, sizeof *all, downward);
    return all;
}

static double same(double x) {
    return x;
}
static double negated(double x) {
    return -x;
}

static double mean_of(const place *all, size_t k) {
    double sum = 0;
    for (size_t i = 0; i < k; i++)
        sum += all[i].value;
    return sum / (double)k;
}

static void put(double *out, const place *all, size_t k, double value) {
    for (size_t i = 0; i < k; i++)
        out[all[i].index] = value;
}

static void expect_near(sl_compressor_kind kind, size_t k, const float *v, size_t d,
                        const double *expected) {
    float *got = round_trip(marking(kind, k), v, d, SMALL_PART);
    for (size_t i = 0; i < d; i++)
        if (fabs(got[i] - expected[i]) > 1e-6 * fabs(expected[i]))
            ck_abort_msg("%s, d %zu, k %zu: element %zu is %g, not %g", sl_compressor_name(kind), d,
                         k, i, got[i], expected[i]);
    release(got);
}

/* Equal values would make the order matter; and one that is far off, a guess too high. */
static float *uneven(size_t d, int shape) {
    float *v = gaussian(d, (uint32_t)(30 + shape));
    for (size_t i = 0; i < d; i++)
        v[i] = shape == 1   ? fabsf(v[i]) + 1e-3f
               : shape == 2 ? -v[i] * v[i] * v[i]
               : shape == 3 ? v[i] * (i < d - d / 64 ? 1e-3f : 1)
                            : v[i] + 0.1f;
    return v;
}

static void compare_with_sorts(const float *v, size_t d, size_t k) {
    double *expected = calloc(d, sizeof *expected);
    place *large = sorted(v, d, fabs), *up = sorted(v, d, same), *down = sorted(v, d, negated);
    for (size_t i = 0; i < k; i++)
        expected[large[i].index] = v[large[i].index] < 0 ? -mean_of(large, k) : mean_of(large, k);
    expect_near(SL_COMPRESSOR_STC, k, v, d, expected);
    if (k <= (d + 1) / 2) {
        const double above = mean_of(up, k), below = mean_of(down, k);
        const size_t least = k < d - k ? k : d - k;
        memset(expected, 0, d * sizeof *expected);
        put(expected, above >= below ? up : down, k, above >= below ? above : -below);
        expect_near(SL_COMPRESSOR_SBC, k, v, d, expected);
        memset(expected, 0, d * sizeof *expected);
        put(expected, up, k, above);
        put(expected, down, least, least > 0 ? -mean_of(down, least) : 0);
        expect_near(SL_COMPRESSOR_POS_NEG, k, v, d, expected);
    }
    free(large);
    free(up);
    free(down);
    free(expected);
}

START_TEST(marks_are_what_a_sort_gives) {
    for (size_t d = 1; d <= 3000; d += d < 40 ? 1 : d / 2) {
        float *v = uneven(d, _i);
        for (size_t k = 1; k <= d; k += k / 2 + 1)
            compare_with_sorts(v, d, k);
        release(v);
    }
    const size_t d = (1 << 17) + 3;
    float *v = uneven(d, _i);
    compare_with_sorts(v, d, 1311);
    compare_with_sorts(v, d, 50000);
    release(v);
}
END_TEST

/* ---- the error of one vector ---- */

START_TEST(errors_are_those_of_the_papers) {
    const size_t d = 1003, k = 50;
    float *v = uneven(d, 0);
    place *large = sorted(v, d, fabs), *up = sorted(v, d, same), *down = sorted(v, d, negated);
    const double norm = sl_vec_cpu()->norm2_squared(v, d), kept = (double)k * mean_of(large, k),
                 above = mean_of(up, k), below = mean_of(down, k);
    const double side = fmax(above, below);
    const struct {
        sl_compressor_kind kind;
        double delta;
    } rows[] = {{SL_COMPRESSOR_STC, kept * kept / ((double)k * norm)},
                {SL_COMPRESSOR_SBC, (double)k * side * side / norm},
                {SL_COMPRESSOR_POS_NEG, (double)k * (above * above + below * below) / norm}};
    for (int r = 0; r < 3; r++) {
        sl_compressor_config config = marking(rows[r].kind, k);
        float *decoded = round_trip(config, v, d, ONE_PART);
        const double error = sl_vec_cpu()->distance_squared(decoded, v, d) / norm;
        ck_assert_double_eq_tol(error, 1 - rows[r].delta, 1e-5);
        const sl_quality q = sl_compressor_quality(&config, d);
        ck_assert(q.is_contractive && !q.unbiased && q.delta <= rows[r].delta &&
                  q.usual_delta <= rows[r].delta);
        release(decoded);
    }
    free(large);
    free(up);
    free(down);
    release(v);
}
END_TEST

/* The vectors for which the bounds on delta are exact. */
START_TEST(bounds_are_reached) {
    const size_t d = 20, k = 3;
    float *v = vector_of(d);
    for (size_t i = 0; i < d; i++)
        v[i] = i % 2 ? 1 : -1; /* stc: k/d */
    sl_compressor_config config = marking(SL_COMPRESSOR_STC, k);
    float *decoded = round_trip(config, v, d, ONE_PART);
    ck_assert_double_eq_tol(sl_vec_cpu()->distance_squared(decoded, v, d) / (double)d,
                            1 - sl_compressor_quality(&config, d).delta, 1e-6);
    release(decoded);
    for (size_t i = 0; i < d; i++)
        v[i] = -1; /* sbc: k - 1 of the upper ones are -1 too, and both means 1 */
    v[4] = 2 * (float)k - 1;
    config = marking(SL_COMPRESSOR_SBC, k);
    decoded = round_trip(config, v, d, ONE_PART);
    const double norm = sl_vec_cpu()->norm2_squared(v, d);
    ck_assert_double_eq_tol(sl_vec_cpu()->distance_squared(decoded, v, d) / norm,
                            1 - sl_compressor_quality(&config, d).delta, 1e-6);
    release(decoded);
    release(v);
}
END_TEST

/* ---- refused ---- */

START_TEST(more_than_half_at_both_ends_is_refused) {
    for (int c = MARKING + 1; c <= MARKING + 2; c++) {
        sl_compressor_config config = any_config(c, 10);
        sl_error error = {0};
        config.k = 6;
        ck_assert_int_eq(sl_compressor_check(&config, 10, &error), SL_EINVAL);
        ck_assert_msg(strstr(error.text, "algorithm.compressor.k: makes 6 entries") != NULL, "%s",
                      error.text);
        config.k = 0;
        config.fraction = 0.51;
        ck_assert_int_eq(sl_compressor_check(&config, 100, &error), SL_EINVAL);
        ck_assert_ptr_nonnull(strstr(error.text, "algorithm.compressor.fraction: makes 51"));
    }
}
END_TEST

static void expect_refused(pair *p, const uint8_t *bytes, size_t count) {
    uint8_t *exact = malloc(count > 0 ? count : 1);
    memcpy(exact, bytes, count);
    ck_assert_int_eq(sl_decoder_check(p->decoder, &a_message, 0, (sl_payload){exact, count}),
                     SL_EPROTO);
    free(exact);
}

START_TEST(a_peer_cannot_send_what_is_not_a_message) {
    pair p = open_pair(marking(SL_COMPRESSOR_STROM, 0), 5, ONE_PART);
    expect_refused(&p, (const uint8_t[]){0x33}, 1);       /* twice the same index */
    expect_refused(&p, (const uint8_t[]){0x13}, 1);       /* falling */
    expect_refused(&p, (const uint8_t[]){0x0A}, 1);       /* index 5 of 5 */
    expect_refused(&p, (const uint8_t[]){0x30, 0, 0}, 3); /* longer than its entries */
    close_pair(&p);
    p = open_pair(marking(SL_COMPRESSOR_STC, 2), 5, ONE_PART);
    expect_refused(&p, (const uint8_t[]){0, 0, 0x80, 0x7F, 0x63}, 5); /* infinity */
    expect_refused(&p, (const uint8_t[]){0, 0, 0x80, 0x40, 0x36}, 5); /* falling */
    expect_refused(&p, (const uint8_t[]){0, 0, 0x80, 0x40, 0x68}, 5); /* no room behind 4 */
    expect_refused(&p, (const uint8_t[]){0, 0, 0x80}, 3);
    close_pair(&p);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_marks");
    ADD_TESTS(suite, "by hand", stc_sends_the_mean_magnitude_with_signs,
              sbc_sends_the_side_with_the_larger_mean, pos_neg_sends_both_ends,
              strom_sends_tau_with_signs, no_element_is_of_both_kinds);
    ADD_TESTS(suite, "sizes", strom_sends_an_index_and_a_sign_for_what_reaches_tau);
    ADD_TESTS(suite, "errors", errors_are_those_of_the_papers, bounds_are_reached);
    ADD_TESTS(suite, "refused", more_than_half_at_both_ends_is_refused,
              a_peer_cannot_send_what_is_not_a_message);
    TCase *sorts = tcase_create("sorts");
    tcase_set_timeout(sorts, 120);
    tcase_add_loop_test(sorts, marks_are_what_a_sort_gives, 0, 4);
    suite_add_tcase(suite, sorts);
    return run_suite(suite);
}
