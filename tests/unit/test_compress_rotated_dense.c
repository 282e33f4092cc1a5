/* test_compress_rotated_dense.c - quantizers behind a rotation: their messages are those of the
 * rotated vector, what is decoded is turned back, and errors no longer depend on the vector. */
#include "compress/quantization/rotation.h"
#include "sparse_wire.h"

/* The case's rotated form, or the quantizer alone. */
static sl_compressor_config coded(int i, bool is_rotated) {
    sl_compressor_config all[] = {
        {.kind = SL_COMPRESSOR_QSGD, .levels = 3, .bucket = 512},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .norm = SL_NORM_MAX},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 60, .bucket = 1000, .coding = SL_ENTROPY_HUFFMAN},
        {.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 256},
    };
    sl_compressor_config c = all[i];
    if (is_rotated)
        c.kind = c.kind == SL_COMPRESSOR_QSGD ? SL_COMPRESSOR_ROTATED_QSGD
                                              : SL_COMPRESSOR_ROTATED_TERNGRAD;
    return c;
}
enum { CASES = 4 };

/* Signs of a stream of its own, then H over the root of each block; forth, or back. */
static void rotate(float *v, size_t d, bool forth) {
    const sl_rng_key key = {a_message.seed, a_message.exchange, a_message.sender,
                            SL_PURPOSE_ROTATE | a_message.stage << 8};
    for (size_t at = 0, n; at < d; at += n) {
        n = d - at < ROTATION_PIECE ? d - at : ROTATION_PIECE;
        if (forth)
            sl_rotation_signs(&key, at, v + at, n);
        for (size_t i = 0, block; i < n; i += block) {
            block = sl_rotation_block(n - i);
            sl_rotation_hadamard(v + at + i, block);
            for (size_t k = 0; k < block; k++)
                v[at + i + k] *= 1 / sqrtf((float)block);
        }
        if (!forth)
            sl_rotation_signs(&key, at, v + at, n);
    }
}

START_TEST(messages_are_those_of_the_rotated_vector) {
    static const size_t dimensions[] = {1, 3, 1000, 16384, 40001};
    const sl_compressor_config rotated = coded(_i, true), alone = coded(_i, false);
    for (int s = 0; s < 5; s++) {
        const size_t d = dimensions[s];
        float *v = gaussian(d, 3), *u = gaussian(d, 3);
        rotate(u, d, true);
        pair p = open_pair(rotated, d, ONE_PART), plain = open_pair(alone, d, ONE_PART);
        ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
        ck_assert_int_eq(encode_vector(&plain, &a_message, u), 0);
        ck_assert_uint_eq(message_bytes(&p), message_bytes(&plain));
        for (uint32_t part = 0; part < sl_codec_parts(p.codec); part++)
            ck_assert_mem_eq(p.payloads[part].data, plain.payloads[part].data,
                             p.payloads[part].bytes);
        float *got = vector_of(d), *expected = vector_of(d);
        decode(&p, &a_message, 0.5f, got);
        decode(&plain, &a_message, 0.5f, expected);
        rotate(expected, d, false);
        expect_equal(got, expected, d);
        ck_assert_double_eq(sl_compressor_bits(&rotated, d), sl_compressor_bits(&alone, d));
        close_pair(&p);
        close_pair(&plain);
        release(v);
        release(u);
        release(got);
        release(expected);
    }
}
END_TEST

START_TEST(parts_too_short_for_a_piece_are_refused) {
    sl_codec *codec;
    sl_error error = {0};
    const sl_compressor_config config = coded(2, true); /* 7 bits an element */
    ck_assert_int_eq(sl_codec_open(&codec, &config, 100000, SMALL_PART, &error), SL_EINVAL);
    ck_assert_msg(strstr(error.text, "transport.chunk_bytes") != NULL, "%s", error.text);
    ck_assert_int_eq(sl_codec_open(&codec, &config, 2000, SMALL_PART, &error), 0);
    sl_codec_close(&codec);
}
END_TEST

static double error_of(sl_compressor_config config, const float *v, size_t d, double *mean) {
    enum { MESSAGES = 64 };
    double error = 0, norm = 0;
    pair p = open_pair(config, d, ONE_PART);
    float *got = vector_of(d);
    for (size_t i = 0; i < d; i++) {
        mean[i] = 0;
        norm += (double)v[i] * v[i];
    }
    for (uint64_t m = 1; m <= MESSAGES; m++) {
        const sl_message message = {.seed = 5, .exchange = m, .sender = 1};
        memset(got, 0, d * sizeof *got);
        ck_assert_int_eq(encode_vector(&p, &message, v), 0);
        decode(&p, &message, 1, got);
        for (size_t i = 0; i < d; i++) {
            error += ((double)got[i] - v[i]) * ((double)got[i] - v[i]) / MESSAGES / norm;
            mean[i] += (double)got[i] / MESSAGES;
        }
    }
    close_pair(&p);
    release(got);
    return error;
}

/* With the largest magnitude as scale, one large element takes the levels of all others. Rotated,
 * the vector errs as a normal one does. */
START_TEST(a_spike_costs_no_more_than_a_normal_vector) {
    enum { D = 16384 };
    sl_compressor_config config = coded(1, false), rotated = coded(1, true);
    float *v = gaussian(D, 8);
    double *mean = calloc(D, sizeof *mean), apart = 0;
    const double normal = error_of(rotated, v, D, mean);
    v[100] = 60; /* a fifth of the norm's square, and 15 times the others' largest */
    const double with = error_of(rotated, v, D, mean), without = error_of(config, v, D, mean);
    ck_assert_double_lt(with, 1.1 * normal);
    ck_assert_double_gt(without, 5 * with);
    error_of(rotated, v, D, mean);
    for (size_t i = 0; i < D; i++)
        apart += (mean[i] - v[i]) * (mean[i] - v[i]);
    ck_assert_double_lt(apart, 1.3 * with / 64 * (D + 3600)); /* unbiased: falls as 1 / messages */
    free(mean);
    release(v);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_rotated_dense");
    ADD_TESTS(suite, "once", parts_too_short_for_a_piece_are_refused,
              a_spike_costs_no_more_than_a_normal_vector);
    TCase *each = tcase_create("each");
    tcase_set_timeout(each, 60);
    tcase_add_loop_test(each, messages_are_those_of_the_rotated_vector, 0, CASES);
    suite_add_tcase(suite, each);
    return run_suite(suite);
}
