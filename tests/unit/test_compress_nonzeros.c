/* test_compress_nonzeros.c - nonzeros, the messages of sparse sums: lossless, the shorter of two
 * forms, and what is refused. */
#include "sparse_wire.h"

static const sl_compressor_config nonzeros = {.kind = SL_COMPRESSOR_NONZEROS};

static float *sparse(size_t d, size_t every) {
    float *v = gaussian(d, 3);
    for (size_t i = 0; i < d; i++)
        if (i % every != every / 2)
            v[i] = 0;
    return v;
}

START_TEST(any_vector_is_decoded) {
    static const size_t dimensions[] = {1, 2, 1023, 1024, 1025, 66561},
                        share[] = {1, 2, 3, 100, 100000};
    for (int i = 0; i < 6; i++)
        for (int s = 0; s < 5; s++) {
            const size_t d = dimensions[i];
            float *v = sparse(d, share[s]), *got = round_trip(nonzeros, v, d, SMALL_PART);
            expect_equal(got, v, d);
            release(got);
            got = round_trip(nonzeros, v, d, ONE_PART);
            expect_equal(got, v, d);
            release(got);
            release(v);
        }
}
END_TEST

/* 1000 elements: an index has 10 bits. */
START_TEST(sizes_are_the_formula) {
    for (size_t every = 1; every < 12; every++) {
        float *v = sparse(1000, every);
        size_t entries = 0;
        for (size_t i = 0; i < 1000; i++)
            entries += v[i] != 0;
        const size_t listed = 4 * entries + (10 * entries + 7) / 8;
        pair p = open_pair(nonzeros, 1000, ONE_PART);
        ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
        ck_assert_uint_eq(message_bytes(&p), listed < 4000 ? listed : 4000);
        close_pair(&p);
        release(v);
    }
}
END_TEST

START_TEST(what_is_not_finite_is_not_sent) {
    static const float bad[] = {NAN, INFINITY};
    for (size_t every = 1; every < 200; every += 99)
        for (int b = 0; b < 2; b++) {
            float *v = sparse(6000, every);
            v[5999] = bad[b];
            pair p = open_pair(nonzeros, 6000, SMALL_PART);
            ck_assert_int_eq(encode_vector(&p, &a_message, v), SL_EDIVERGED);
            close_pair(&p);
            release(v);
        }
}
END_TEST

/* Too long, not whole entries, an index that falls or lies beyond, a number that is not finite. */
START_TEST(wrong_payloads_are_refused) {
    float *v = sparse(1000, 100);
    pair p = open_pair(nonzeros, 1000, ONE_PART);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    const size_t right = p.payloads[0].bytes;
    ck_assert_uint_eq(right, 4 * 10 + 13);
    const size_t wrong[] = {right - 1, right + 1, 4001};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(
            sl_decoder_check(p.decoder, &a_message, 0, (sl_payload){p.buffer, wrong[i]}),
            SL_EPROTO);
    p.buffer[right - 1] |= 0x80; /* behind the last index */
    ck_assert_int_eq(sl_decoder_check(p.decoder, &a_message, 0, p.payloads[0]), SL_EPROTO);
    p.buffer[right - 1] &= 0x7f;
    ck_assert_int_eq(sl_decoder_check(p.decoder, &a_message, 0, p.payloads[0]), 0);
    p.buffer[40] |= 0xff; /* the first index is behind the second */
    ck_assert_int_eq(sl_decoder_check(p.decoder, &a_message, 0, p.payloads[0]), SL_EPROTO);
    close_pair(&p);
    release(v);
}
END_TEST

START_TEST(numbers_that_are_not_finite_are_refused) {
    const float bad = NAN;
    for (size_t every = 1; every < 200; every += 99) {
        float *v = sparse(1000, every);
        pair p = open_pair(nonzeros, 1000, ONE_PART);
        ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
        memcpy(p.buffer + 4, &bad, sizeof bad);
        ck_assert_int_eq(sl_decoder_check(p.decoder, &a_message, 0, p.payloads[0]), SL_EPROTO);
        close_pair(&p);
        release(v);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_nonzeros");
    ADD_TESTS(suite, "values", any_vector_is_decoded, sizes_are_the_formula);
    ADD_TESTS(suite, "refused", what_is_not_finite_is_not_sent, wrong_payloads_are_refused,
              numbers_that_are_not_finite_are_refused);
    return run_suite(suite);
}
