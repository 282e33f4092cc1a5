/* test_compress_coding.c - lossless codes of indices: code words as the literature has them, parts
 * read by a second program, sizes by formula, and payloads that no sender makes. */
#include "compress/lossless/entropy.h"
#include "compress/lossless/indices.h"
#include "sparse_wire.h"

/* ---- a second implementation: a text of zeros and ones ---- */

static char bit_at(const uint8_t *bytes, size_t i) {
    return bytes[i / 8] >> (7 - i % 8) & 1 ? '1' : '0';
}

static uint64_t read_bits(const uint8_t *bytes, size_t *at, unsigned bits) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bits; i++)
        value = 2 * value + (bit_at(bytes, (*at)++) == '1');
    return value;
}

static uint64_t read_gap(const uint8_t *bytes, size_t *at, sl_entropy coding, unsigned b) {
    unsigned run = 0;
    const char run_of = coding == SL_ENTROPY_GOLOMB ? '1' : '0';
    for (; bit_at(bytes, *at) == run_of; run++)
        ++*at;
    if (coding == SL_ENTROPY_ELIAS)
        return read_bits(bytes, at, run + 1) - 1;
    ++*at;
    return (uint64_t)run << b | read_bits(bytes, at, b);
}

static unsigned published_b(double p) {
    const double b = 1 + floor(log2(log((1 + sqrt(5)) / 2 - 1) / log(1 - p)));
    return b > 0 ? (unsigned)b : 0;
}

/* ---- code words ---- */

/* The code of one gap behind index 0. */
static const char *word_of(sl_entropy coding, double share, uint64_t gap, size_t bits) {
    static char text[256];
    const uint64_t indices[] = {0, gap + 1};
    uint8_t plain[64] = {0}, coded[64];
    const part_numbers numbers = {.count = 2, .width = 32, .elements = UINT32_MAX, .share = share};
    const size_t bytes = sl_indices_put(indices, 2, 32, plain);
    ck_assert_uint_lt(sl_entropy_encode(coding, &numbers, (sl_payload){plain, bytes}, coded),
                      bytes);
    for (size_t i = 0; i < bits; i++)
        text[i] = bit_at(coded, 32 + i);
    text[bits] = 0;
    return text;
}

START_TEST(words_are_those_of_the_literature) {
    const double b2 = 0.12, b6 = 0.01;
    ck_assert_uint_eq(sl_golomb_bits(b2), 2);
    ck_assert_str_eq(word_of(SL_ENTROPY_GOLOMB, b2, 9, 5), "11001");
    ck_assert_str_eq(word_of(SL_ENTROPY_GOLOMB, b2, 0, 3), "000");
    ck_assert_str_eq(word_of(SL_ENTROPY_GOLOMB, b6, 100, 8), "10100100");
    ck_assert_str_eq(word_of(SL_ENTROPY_ELIAS, 1, 0, 1), "1");
    ck_assert_str_eq(word_of(SL_ENTROPY_ELIAS, 1, 1, 3), "010");
    ck_assert_str_eq(word_of(SL_ENTROPY_ELIAS, 1, 9, 7), "0001010");
}
END_TEST

START_TEST(b_is_the_published_one) {
    ck_assert_uint_eq(sl_golomb_bits(0.01), 6);
    ck_assert_uint_eq(sl_golomb_bits(1), 0);
    for (double p = 0.9; p > 1e-8; p *= 0.93)
        ck_assert_uint_eq(sl_golomb_bits(p), published_b(p));
    ck_assert_uint_eq(sl_golomb_bits(1e-300), 31);
}
END_TEST

/* ---- parts ---- */

enum { CODED = 6 };

/* Every number of a message, read bit by bit. */
START_TEST(parts_are_as_described) {
    const size_t d = 100000, k = 1000;
    sl_compressor_config config = {.kind = SL_COMPRESSOR_STC, .k = k, .coding = (sl_entropy)_i};
    float *v = gaussian(d, 5), *decoded = vector_of(d);
    pair p = open_pair(config, d, SMALL_PART);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    ck_assert_uint_lt(1, sl_codec_parts(p.codec) + 1);
    size_t left = k;
    for (uint32_t part = 0; part < sl_codec_parts(p.codec); part++) {
        const float mean = *(const float *)p.payloads[part].data;
        const uint8_t *bits = (const uint8_t *)p.payloads[part].data + sizeof mean;
        const size_t entries = left < p.codec->part_elements ? left : p.codec->part_elements;
        size_t at = 0, index = read_bits(bits, &at, 17);
        for (size_t i = 0; i < entries; i++) {
            if (i > 0)
                index += read_gap(bits, &at, (sl_entropy)_i, 6) + 1;
            decoded[index] = read_bits(bits, &at, 1) ? -mean : mean;
        }
        ck_assert_uint_eq(p.payloads[part].bytes, sizeof mean + (at + 7) / 8);
        left -= entries;
    }
    float *expected = round_trip(config, v, d, ONE_PART);
    expect_equal(decoded, expected, d);
    close_pair(&p);
    release(expected);
    release(decoded);
    release(v);
}
END_TEST

/* ---- sizes ---- */

static double message_bits(sl_compressor_config config, size_t d, size_t part_bytes) {
    float *v = gaussian(d, 6);
    pair p = open_pair(config, d, part_bytes);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    const double bits = 8 * (double)message_bytes(&p);
    close_pair(&p);
    release(v);
    return bits;
}

START_TEST(sizes_are_those_of_the_formula) {
    static const double shares[] = {0.3, 0.1, 0.03, 0.01, 0.001};
    const size_t d = 1000000;
    for (int s = 0; s < 5; s++)
        for (int c = SL_ENTROPY_GOLOMB; c <= SL_ENTROPY_ELIAS; c++) {
            sl_compressor_config config = {.kind = SL_COMPRESSOR_SBC, .fraction = shares[s]};
            const double plain = sl_compressor_bits(&config, d);
            config.coding = (sl_entropy)c;
            const double expected = sl_compressor_bits(&config, d),
                         got = message_bits(config, d, ONE_PART);
            ck_assert_msg(fabs(got - expected) < 0.02 * expected, "%g of %g, coding %d: %g, not %g",
                          shares[s], (double)d, c, got, expected);
            ck_assert_double_lt(expected, plain);
        }
}
END_TEST

START_TEST(an_index_of_one_percent_takes_8_1_bits) {
    const size_t d = 2000000, k = d / 100;
    sl_compressor_config config = top_k(k);
    config.coding = SL_ENTROPY_GOLOMB;
    ck_assert_double_eq_tol(sl_compressor_bits(&config, d) / (double)k - 32, 8.11, 0.01);
    ck_assert_double_lt(message_bits(config, d, 114688) / (double)k - 32, 8.2);
    sl_compressor_config strom = {.kind = SL_COMPRESSOR_STROM,
                                  .threshold = 2.575829,
                                  .coding = SL_ENTROPY_GOLOMB}; /* 1 %, and a sign each */
    ck_assert_double_lt(message_bits(strom, d, 114688) / (double)k - 1, 8.6);
}
END_TEST

/* All in one place, and then one far away: no code is shorter than the numbers as they are. */
START_TEST(a_part_that_would_be_longer_is_sent_as_it_is) {
    enum { D = 1 << 20, K = 3 };
    sl_compressor_config config = {.kind = SL_COMPRESSOR_SBC, .k = K};
    float *v = vector_of(D);
    v[0] = v[1 << 19] = v[D - 1] = 1;
    for (int c = 0; c <= SL_ENTROPY_ELIAS; c++) {
        config.coding = (sl_entropy)c;
        float *got = round_trip(config, v, D, ONE_PART);
        expect_equal(got, v, D);
        release(got);
        pair p = open_pair(config, D, ONE_PART);
        ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
        ck_assert_uint_eq(message_bytes(&p), 4 + (K * 20 + 7) / 8);
        close_pair(&p);
    }
    release(v);
}
END_TEST

/* ---- what is refused ---- */

static int check_bytes(pair *p, const uint8_t *from, size_t bytes) {
    uint64_t *exact = malloc(bytes + 1); /* a sanitizer sees what is read behind it */
    memcpy(exact, from, bytes);
    const int result = sl_decoder_check(p->decoder, &a_message, 0, (sl_payload){exact, bytes});
    free(exact);
    return result;
}

/* An index that a gap leads beyond the vector, and one behind the last that leaves no room. */
START_TEST(an_index_beyond_the_vector_is_refused) {
    enum { D = 1000, K = 3 };
    const uint64_t numbers[] = {5, 600, 1300};
    uint8_t plain[16] = {0}, payload[32] = {0};
    sl_compressor_config config = {.kind = SL_COMPRESSOR_SBC, .k = K, .coding = SL_ENTROPY_ELIAS};
    const part_numbers wide = {
        .ahead = 4, .count = K, .width = 20, .elements = 1 << 20, .share = 0.003};
    sl_indices_put(numbers, K, 20, plain + 4);
    const size_t bytes =
        sl_entropy_encode(SL_ENTROPY_ELIAS, &wide, (sl_payload){plain, 4 + 8}, payload);
    pair p = open_pair(config, D, ONE_PART);
    ck_assert_uint_gt(bytes, 4);
    ck_assert_int_eq(check_bytes(&p, payload, bytes), SL_EPROTO);
    close_pair(&p);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_coding");
    ADD_TESTS(suite, "words", words_are_those_of_the_literature, b_is_the_published_one);
    TCase *each = tcase_create("each");
    tcase_set_timeout(each, 60);
    tcase_add_loop_test(each, parts_are_as_described, SL_ENTROPY_GOLOMB, SL_ENTROPY_ELIAS + 1);
    suite_add_tcase(suite, each);
    ADD_TESTS(suite, "sizes", sizes_are_those_of_the_formula,
              an_index_of_one_percent_takes_8_1_bits, a_part_that_would_be_longer_is_sent_as_it_is,
              an_index_beyond_the_vector_is_refused);
    return run_suite(suite);
}
