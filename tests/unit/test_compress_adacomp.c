/* test_compress_adacomp.c - AdaComp: what is sent and as what, bits as its file has them, of one
 * input and of two, in bins and parts of all lengths, and what is refused. */
#include "sparse_wire.h"

static sl_compressor_config adacomp(uint32_t bin) {
    return (sl_compressor_config){.kind = SL_COMPRESSOR_ADACOMP, .bin = bin};
}

static float *round_trip_of_two(uint32_t bin, const float *v, const float *fresh, size_t d,
                                size_t part_bytes) {
    pair p = open_pair(adacomp(bin), d, part_bytes);
    ck_assert_int_eq(encode(&p, &a_message, &(sl_source){.vector = v, .fresh = fresh}), 0);
    float *decoded = vector_of(d);
    decode(&p, &a_message, 1, decoded);
    close_pair(&p);
    return decoded;
}

/* ---- values ---- */

/* Bins of 1..3, 4..6 and 7, with M = 4, 2, 0: the scale is 2. */
START_TEST(what_reaches_its_bin_is_sent) {
    const float v[] = {1, -4, 2.5f, 1, 2, -1.5f, 0}, fresh[] = {3, 1, 1, 0, -1, -0.5f, 5},
                expected[] = {2, 0, 0, 0, 0, -2, 0};
    float *got = round_trip_of_two(3, v, fresh, 7, ONE_PART);
    expect_equal(got, expected, 7);
    release(got);
}
END_TEST

/* What is not said to be old is new: H = 2 v. */
START_TEST(of_one_input_all_is_new) {
    const float v[] = {2, -1, 0.99f, -4, 0, 2}, expected[] = {3, -3, 0, -3, 0, 3};
    float *got = round_trip(adacomp(3), v, 6, ONE_PART);
    expect_equal(got, expected, 6);
    release(got);
}
END_TEST

START_TEST(zeros_are_not_sent) {
    float *v = vector_of(2000), *fresh = gaussian(2000, 1), *got;
    got = round_trip_of_two(500, v, fresh, 2000, ONE_PART);
    expect_equal(got, v, 2000);
    release(got);
    release(fresh);
    release(v);
}
END_TEST

/* By the paper's loops. */
static void expect_of(const float *v, const float *fresh, size_t d, size_t bin, float *expected) {
    double sum = 0;
    for (size_t at = 0; at < d; at += bin) {
        float largest = 0;
        for (size_t i = at; i < d && i < at + bin; i++)
            largest = fmaxf(largest, fabsf(v[i]));
        sum += (double)largest;
    }
    const float scale = (float)(sum / (double)((d + bin - 1) / bin));
    for (size_t at = 0; at < d; at += bin) {
        float largest = 0;
        for (size_t i = at; i < d && i < at + bin; i++)
            largest = fmaxf(largest, fabsf(v[i]));
        for (size_t i = at; i < d && i < at + bin; i++)
            expected[i] = fabsf(v[i] + fresh[i]) >= largest ? copysignf(scale, v[i]) : 0;
    }
}

static const size_t dimensions[] = {1, 2, 49, 50, 51, 999, 1024, 1025, 5000, 65537, 200001};
static const uint32_t bins[] = {1, 2, 50, 64, 500, 1500};

static void each_length(void (*use)(size_t d, uint32_t bin, const float *v, const float *fresh)) {
    for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; i++)
        for (size_t b = 0; b < sizeof bins / sizeof *bins; b++) {
            float *v = gaussian(dimensions[i], 2), *fresh = gaussian(dimensions[i], 3);
            use(dimensions[i], bins[b], v, fresh);
            release(fresh);
            release(v);
        }
}

static void decodes(size_t d, uint32_t bin, const float *v, const float *fresh) {
    static const size_t part_bytes[] = {SMALL_PART, 7000, ONE_PART};
    float *expected = vector_of(d);
    expect_of(v, fresh, d, bin, expected);
    for (int p = 0; p < 3; p++) {
        float *got = round_trip_of_two(bin, v, fresh, d, part_bytes[p]);
        expect_equal(got, expected, d);
        release(got);
    }
    release(expected);
}

START_TEST(any_length_is_decoded) {
    each_length(decodes);
}
END_TEST

/* Each tensor has bins and a scale of its own. */
START_TEST(tensors_have_their_own_second_input) {
    const size_t ends[] = {700, 1800}, d = 1800;
    float *v = gaussian(d, 4), *fresh = gaussian(d, 5), *expected = vector_of(d),
          *got = vector_of(d);
    const sl_compressor_config config = adacomp(50);
    pair p = {.payloads = calloc(2, sizeof *p.payloads), .buffer = aligned_alloc(64, 1 << 14)};
    expect_of(v, fresh, 700, 50, expected);
    expect_of(v + 700, fresh + 700, 1100, 50, expected + 700);
    ck_assert_int_eq(sl_codec_open_split(&p.codec, &config, ends, 2, ONE_PART, NULL), 0);
    ck_assert_int_eq(sl_encoder_open(&p.encoder, p.codec, sl_vec_cpu(), NULL), 0);
    ck_assert_int_eq(sl_decoder_open(&p.decoder, p.codec, sl_vec_cpu(), NULL), 0);
    ck_assert_int_eq(encode(&p, &a_message, &(sl_source){.vector = v, .fresh = fresh}), 0);
    decode(&p, &a_message, 1, got);
    expect_equal(got, expected, d);
    close_pair(&p);
    release(got);
    release(expected);
    release(fresh);
    release(v);
}
END_TEST

/* ---- bytes ---- */

/* Bins of 3: a number in 2 bits, an index in 2, a sign. */
START_TEST(bits_are_written_as_said) {
    const float v[] = {1, -4, 2.5f, 1, 2, -1.5f, 0}, fresh[] = {3, 1, 1, 0, -1, -0.5f, 5}, two = 2;
    pair p = open_pair(adacomp(3), 7, ONE_PART);
    ck_assert_int_eq(encode(&p, &a_message, &(sl_source){.vector = v, .fresh = fresh}), 0);
    ck_assert_uint_eq(p.payloads[0].bytes, sizeof two + 2);
    const uint8_t *bytes = p.payloads[0].data;
    ck_assert_mem_eq(bytes, &two, sizeof two);
    ck_assert_uint_eq(bytes[4], 0x43); /* 01, 00 0, 01, 1 */
    ck_assert_uint_eq(bytes[5], 0x40); /* 0 1, 00, and what is left */
    close_pair(&p);
}
END_TEST

static size_t width(size_t values) {
    size_t bits = 0;
    while (((size_t)1 << bits) < values)
        bits++;
    return bits;
}

static void has_exact_size(size_t d, uint32_t bin, const float *v, const float *fresh) {
    const sl_compressor_config config = adacomp(bin);
    float *decoded = round_trip_of_two(bin, v, fresh, d, ONE_PART);
    size_t sent = 0, in_parts = 0;
    for (size_t i = 0; i < d; i++)
        sent += decoded[i] != 0;
    const size_t counts = (d + bin - 1) / bin * width(bin + 1), entry = width(bin) + 1;
    pair p = open_pair(config, d, ONE_PART);
    ck_assert_int_eq(encode(&p, &a_message, &(sl_source){.vector = v, .fresh = fresh}), 0);
    in_parts = 39 * (sl_codec_parts(p.codec) - 1);
    ck_assert_uint_ge(8 * message_bytes(&p), 32 + counts + sent * entry);
    ck_assert_uint_le(8 * message_bytes(&p), 32 + counts + sent * entry + 7 + in_parts);
    ck_assert_double_eq(sl_compressor_bits(&config, d), 32.0 + (double)(counts + d * entry));
    close_pair(&p);
    release(decoded);
}

START_TEST(sizes_are_the_formula) {
    each_length(has_exact_size);
}
END_TEST

/* ---- what is refused ---- */

/* Of 4 elements in bins of 3. */
static int check_bytes(float scale, const uint8_t *bytes, size_t count) {
    pair p = open_pair(adacomp(3), 4, ONE_PART);
    uint8_t *payload = malloc(sizeof scale + count); /* a sanitizer sees what is read behind it */
    memcpy(payload, &scale, sizeof scale);
    memcpy(payload + sizeof scale, bytes, count);
    const int result =
        sl_decoder_check(p.decoder, &a_message, 0, (sl_payload){payload, sizeof scale + count});
    free(payload);
    close_pair(&p);
    return result;
}

START_TEST(a_wrong_payload_is_refused) {
    ck_assert_int_eq(check_bytes(1, (uint8_t[]){0x00}, 1), 0);
    ck_assert_int_eq(check_bytes(1, (uint8_t[]){0x01}, 1), SL_EPROTO);       /* a bit behind */
    ck_assert_int_eq(check_bytes(1, (uint8_t[]){0x82, 0x40}, 2), 0);         /* 10 000 010 01 000 */
    ck_assert_int_eq(check_bytes(1, (uint8_t[]){0x84, 0x00}, 2), 0);         /* 10 000 100 00 */
    ck_assert_int_eq(check_bytes(1, (uint8_t[]){0x90, 0x00}, 2), SL_EPROTO); /* 2, then 0 */
    ck_assert_int_eq(check_bytes(1, (uint8_t[]){0x80, 0x00}, 2), SL_EPROTO); /* 0 twice */
    ck_assert_int_eq(check_bytes(1, (uint8_t[]){0x70, 0x00}, 2), SL_EPROTO); /* index 3 of 3 */
    ck_assert_int_eq(check_bytes(1, (uint8_t[]){0x14}, 1),
                     SL_EPROTO); /* index 1 of 1: 00 01 010 0 */
    ck_assert_int_eq(check_bytes(1, (uint8_t[]){0x20, 0x00}, 2), SL_EPROTO); /* 2 of 1, 0 twice */
    ck_assert_int_eq(check_bytes(1, (uint8_t[]){0x00, 0x00}, 2), SL_EPROTO); /* one more */
    ck_assert_int_eq(check_bytes(1, (uint8_t[]){0x00}, 0), SL_EPROTO);
    ck_assert_int_eq(check_bytes(NAN, (uint8_t[]){0x00}, 1), SL_EPROTO);
    ck_assert_int_eq(check_bytes(INFINITY, (uint8_t[]){0x00}, 1), SL_EPROTO);
    ck_assert_int_eq(check_bytes(-1, (uint8_t[]){0x00}, 1), SL_EPROTO);
}
END_TEST

START_TEST(a_wrong_bin_is_refused) {
    static const uint32_t wrong[] = {0, 16385};
    for (int i = 0; i < 2; i++) {
        sl_error error;
        const sl_compressor_config config = adacomp(wrong[i]);
        ck_assert_int_eq(sl_compressor_check(&config, 10, &error), SL_EINVAL);
        ck_assert_ptr_nonnull(strstr(error.text, "must be from 1 to 16384"));
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_adacomp");
    ADD_TESTS(suite, "values", what_reaches_its_bin_is_sent, of_one_input_all_is_new,
              zeros_are_not_sent, any_length_is_decoded, tensors_have_their_own_second_input);
    ADD_TESTS(suite, "bytes", bits_are_written_as_said, sizes_are_the_formula);
    ADD_TESTS(suite, "refused", a_wrong_payload_is_refused, a_wrong_bin_is_refused);
    return run_suite(suite);
}
