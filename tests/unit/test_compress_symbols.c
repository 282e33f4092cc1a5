/* test_compress_symbols.c - lossless codes of levels: code words as the literature has them, parts
 * read by a second program, sizes against the entropy, and payloads that no sender makes. */
#include "compress/lossless/huffman.h"
#include "compress/lossless/pack.h"
#include "compress/lossless/symbols.h"
#include "sparse_wire.h"

/* ---- a second implementation: a text of zeros and ones ---- */

static unsigned bit_at(const uint8_t *bytes, size_t i) {
    return bytes[i / 8] >> (7 - i % 8) & 1;
}

static uint64_t read_bits(const uint8_t *bytes, size_t *at, uint64_t bits) {
    uint64_t value = 0;
    for (uint64_t i = 0; i < bits; i++)
        value = 2 * value + bit_at(bytes, (*at)++);
    return value;
}

static uint64_t read_omega(const uint8_t *bytes, size_t *at) {
    uint64_t number = 1;
    while (bit_at(bytes, *at) == 1)
        number = read_bits(bytes, at, number + 1);
    ++*at;
    return number;
}

/* ---- words ---- */

/* The bits of one code of 6: a level of 5, and a sign. */
static const char *word_of(uint16_t code, bool is_sparse) {
    static char text[64];
    const part_numbers n = {.codes = CODES_LEVELS, .is_sparse = is_sparse, .count = 1, .width = 6};
    uint16_t codes[SL_BLOCK] = {code};
    uint8_t packed[8] = {0}, coded[64] = {0};
    sl_pack(codes, 1, 6, packed);
    bit_writer w = {.at = coded, .end = coded + sizeof coded};
    sl_symbols_put(&w, SL_ENTROPY_ELIAS, &n, packed);
    const size_t bits = 8 * (size_t)(w.at - coded) + w.filled;
    finish(&w);
    for (size_t i = 0; i < bits; i++)
        text[i] = bit_at(coded, i) ? '1' : '0';
    text[bits] = 0;
    return text;
}

START_TEST(omega_words_are_those_of_the_literature) {
    ck_assert_str_eq(word_of(0, false), "0");
    ck_assert_str_eq(word_of(1, false), "1000");
    ck_assert_str_eq(word_of(3 | 32, false), "1010001");
    ck_assert_str_eq(word_of(9, false), "11101000");
    ck_assert_str_eq(word_of(15 | 32, false), "101001000001");
    ck_assert_str_eq(word_of(10 | 32, true), "011110100");
    ck_assert_str_eq(word_of(0, true), "100");
}
END_TEST

START_TEST(huffman_words_are_canonical_and_shortest) {
    uint32_t counts[] = {45, 13, 12, 16, 9, 5, 0}; /* Cormen et al., figure 16.3 */
    static const uint8_t expected[] = {1, 3, 3, 3, 4, 4, 0};
    uint8_t lengths[7];
    uint16_t words[7];
    sl_huffman_lengths(counts, 7, lengths);
    ck_assert_mem_eq(lengths, expected, sizeof expected);
    sl_huffman_words(lengths, 7, words);
    static const uint16_t in_order[] = {0, 4, 5, 6, 14, 15};
    ck_assert_mem_eq(words, in_order, sizeof in_order);
}
END_TEST

/* Counts like Fibonacci's numbers make a code as long as there are symbols. */
START_TEST(huffman_words_are_short_enough) {
    uint32_t counts[40] = {1, 1};
    uint8_t lengths[40];
    huffman_table table;
    for (int s = 2; s < 40; s++)
        counts[s] = counts[s - 1] + counts[s - 2];
    sl_huffman_lengths(counts, 40, lengths);
    for (int s = 0; s < 40; s++)
        ck_assert(lengths[s] >= 1 && lengths[s] <= HUFFMAN_BITS);
    ck_assert(sl_huffman_open(&table, lengths, 40));
    lengths[39]++;
    ck_assert(!sl_huffman_open(&table, lengths, 40));
    lengths[39] = 0;
    ck_assert(!sl_huffman_open(&table, lengths, 40));
}
END_TEST

/* ---- parts ---- */

static sl_compressor_config coded(int i) {
    static const sl_compressor_config all[] = {
        {.kind = SL_COMPRESSOR_QSGD, .levels = 1, .bucket = 512},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 512},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 127, .bucket = 100},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 300, .norm = SL_NORM_MAX},
        {.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 256},
        {.kind = SL_COMPRESSOR_TERNGRAD},
        {.kind = SL_COMPRESSOR_NATURAL},
    };
    return all[i];
}
enum { CODED = 7, NATURAL = 6, OF_EACH = 2 * CODED };

/* Case 2 i + c; false: this compressor has no such coding. */
static bool choose(int at, sl_compressor_config *config) {
    *config = coded(at / 2);
    config->coding = at % 2 == 0 ? SL_ENTROPY_HUFFMAN : SL_ENTROPY_ELIAS;
    return config->kind != SL_COMPRESSOR_NATURAL || config->coding == SL_ENTROPY_HUFFMAN;
}

/* QSGD's two forms, read bit by bit. */
START_TEST(parts_are_as_described) {
    enum { D = 3000, BUCKET = 500 };
    sl_compressor_config config = {.kind = SL_COMPRESSOR_QSGD,
                                   .levels = _i == 0 ? 5 : 40,
                                   .bucket = BUCKET,
                                   .coding = SL_ENTROPY_ELIAS};
    float *v = gaussian(D, 5), *decoded = vector_of(D);
    pair p = open_pair(config, D, ONE_PART);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    const float *norms = p.payloads[0].data;
    const uint8_t *bits = (const uint8_t *)(norms + D / BUCKET);
    size_t at = 0;
    for (size_t i = 0; i < D; i++) {
        uint64_t level, sign = 0;
        if (_i == 0) {
            i += read_omega(bits, &at) - 1;
            if (i == D)
                break;
            sign = read_bits(bits, &at, 1);
            level = read_omega(bits, &at);
        } else {
            level = read_omega(bits, &at) - 1;
            sign = level > 0 ? read_bits(bits, &at, 1) : 0;
        }
        const float unit = norms[i / BUCKET] / (float)config.levels;
        decoded[i] = unit * (sign ? -(float)level : (float)level);
    }
    ck_assert_uint_eq(p.payloads[0].bytes, sizeof(float) * D / BUCKET + (at + 7) / 8);
    float *expected = round_trip(config, v, D, ONE_PART);
    expect_equal(decoded, expected, D);
    close_pair(&p);
    release(expected);
    release(decoded);
    release(v);
}
END_TEST

/* The next symbol, its word looked for among all words of a length, in their order. */
static size_t read_symbol(const uint8_t *bytes, size_t *at, const uint64_t *lengths,
                          size_t symbols) {
    uint64_t word = 0, next = 0;
    for (uint64_t length = 1; length <= 15; length++) {
        word = 2 * word + bit_at(bytes, (*at)++);
        next *= 2;
        for (size_t s = 0; s < symbols; s++)
            if (lengths[s] == length && next++ == word)
                return s;
    }
    ck_abort_msg("no word begins so");
}

/* Few levels: runs of zeros and what ends them, read bit by bit. */
START_TEST(runs_are_as_described) {
    enum { D = 3000, LEVELS = 1, BUCKET = 1000 };
    const sl_compressor_config config = {.kind = SL_COMPRESSOR_QSGD,
                                         .levels = LEVELS,
                                         .bucket = BUCKET,
                                         .coding = SL_ENTROPY_HUFFMAN};
    float *v = gaussian(D, 5), *decoded = vector_of(D);
    pair p = open_pair(config, D, ONE_PART);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    const float *norms = p.payloads[0].data;
    const uint8_t *bits = (const uint8_t *)(norms + D / BUCKET);
    uint64_t lengths[65];
    size_t at = 0;
    const uint64_t form = read_bits(bits, &at, 4);
    ck_assert_uint_ge(form, 8);
    ck_assert_uint_le(form, 14);
    const size_t reach = (size_t)1 << (form - 8), symbols = 1 + reach * LEVELS;
    for (size_t s = 0; s < symbols; s++)
        lengths[s] = read_bits(bits, &at, 1) == 1 ? read_bits(bits, &at, 4)
                     : s >= LEVELS                ? lengths[s - LEVELS]
                                                  : 0;
    for (size_t i = 0; i < D;) {
        const size_t symbol = read_symbol(bits, &at, lengths, symbols);
        i += symbol == 0 ? reach : (symbol - 1) / LEVELS;
        if (symbol == 0)
            continue;
        const float size = (float)((symbol - 1) % LEVELS + 1) * norms[i / BUCKET] / LEVELS;
        decoded[i++] = bit_at(bits, at++) ? -size : size;
    }
    ck_assert_uint_eq(p.payloads[0].bytes, sizeof(float) * D / BUCKET + (at + 7) / 8);
    float *expected = round_trip(config, v, D, ONE_PART);
    expect_equal(decoded, expected, D);
    close_pair(&p);
    release(expected);
    release(decoded);
    release(v);
}
END_TEST

/* ---- sizes ---- */

static double message_bits(sl_compressor_config config, const float *v, size_t d) {
    pair p = open_pair(config, d, ONE_PART);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    const double bits = 8 * (double)message_bytes(&p);
    close_pair(&p);
    return bits;
}

START_TEST(sizes_are_those_of_the_formula) {
    const size_t d = 60000;
    sl_compressor_config config;
    float *v = gaussian(d, 6);
    if (choose(_i, &config)) {
        const double expected = sl_compressor_bits(&config, d), got = message_bits(config, v, d);
        const bool by_largest = config.bucket == 0; /* which no formula knows so well */
        ck_assert_msg(fabs(got - expected) < (by_largest ? 0.06 : 0.02) * expected,
                      "case %d: %g, not %g", _i, got, expected);
    }
    release(v);
}
END_TEST

/* Of the decoded levels, without a sign where they are 0, and the scales beside. */
static double entropy_of(sl_compressor_config config, const float *v, size_t d) {
    double *counts = calloc(2048, sizeof *counts),
           bits = 32 * (double)((d - 1) / config.bucket + 1);
    float *got = round_trip(config, v, d, ONE_PART);
    config.coding = SL_ENTROPY_NONE;
    pair p = open_pair(config, d, ONE_PART);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    for (size_t i = 0; i < d; i++) {
        const float norm = ((const float *)p.payloads[0].data)[i / config.bucket];
        counts[1024 + lroundf(got[i] * (float)config.levels / norm)]++;
    }
    for (int s = 0; s < 2048; s++)
        bits -= counts[s] > 0 ? counts[s] * log2(counts[s] / (double)d) : 0;
    close_pair(&p);
    release(got);
    free(counts);
    return bits;
}

START_TEST(huffman_comes_within_two_percent_of_the_entropy) {
    static const sl_compressor_config all[] = {
        {.kind = SL_COMPRESSOR_QSGD, .levels = 3, .bucket = 64, .coding = SL_ENTROPY_HUFFMAN},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 64, .coding = SL_ENTROPY_HUFFMAN},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 127, .bucket = 512, .coding = SL_ENTROPY_HUFFMAN},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 512, .coding = SL_ENTROPY_HUFFMAN},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 3, .bucket = 512, .coding = SL_ENTROPY_HUFFMAN},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 1, .bucket = 512, .coding = SL_ENTROPY_HUFFMAN},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 1, .bucket = 4096, .coding = SL_ENTROPY_HUFFMAN},
        {.kind = SL_COMPRESSOR_QSGD,
         .levels = 7,
         .bucket = 512,
         .norm = SL_NORM_MAX,
         .coding = SL_ENTROPY_HUFFMAN},
        {.kind = SL_COMPRESSOR_QSGD,
         .levels = 1,
         .bucket = 512,
         .norm = SL_NORM_MAX,
         .coding = SL_ENTROPY_HUFFMAN}, /* TernGrad */
    };
    const size_t d = 65536;
    float *v = gaussian(d, 8);
    const double least = entropy_of(all[_i], v, d), got = message_bits(all[_i], v, d);
    ck_assert_msg(got >= least && got < 1.02 * least, "case %d: %g, %g of the entropy", _i, got,
                  got / least);
    release(v);
}
END_TEST

START_TEST(huffman_of_powers_of_two_does_so_too) {
    const size_t d = 65536;
    const sl_compressor_config config = {.kind = SL_COMPRESSOR_NATURAL,
                                         .coding = SL_ENTROPY_HUFFMAN};
    double counts[512] = {0}, least = 0;
    float *v = gaussian(d, 8), *got = round_trip(config, v, d, ONE_PART);
    for (size_t i = 0; i < d; i++)
        counts[256 * (got[i] < 0) + 128 + (got[i] != 0 ? ilogbf(got[i]) : -128)]++;
    for (int s = 0; s < 512; s++)
        least -= counts[s] > 0 ? counts[s] * log2(counts[s] / (double)d) : 0;
    const double bits = message_bits(config, v, d);
    ck_assert_msg(bits >= least && bits < 1.02 * least, "%g of the entropy", bits / least);
    release(got);
    release(v);
}
END_TEST

/* Alistarh et al., corollary 3.3, has at most 2.8 d + 32 bits with sqrt(d) levels. Their code's
 * words take 2.95 d of a normal vector: 1, 4 and 7 bits for levels of 0, 1 to 2 and 3 to 6. */
START_TEST(elias_with_root_d_levels) {
    const size_t d = 10000;
    sl_compressor_config config = {
        .kind = SL_COMPRESSOR_QSGD, .levels = 100, .coding = SL_ENTROPY_ELIAS};
    float *v = gaussian(d, 9);
    ck_assert_double_eq_tol(message_bits(config, v, d) / (double)d, 2.95, 0.02);
    release(v);
}
END_TEST

/* ---- what is refused ---- */

static void refused(sl_compressor_config config, const char *words) {
    sl_error error = {0};
    ck_assert_int_eq(sl_compressor_check(&config, 100, &error), SL_EINVAL);
    ck_assert_msg(strstr(error.text, words) != NULL, "%s", error.text);
}

START_TEST(a_coding_that_does_not_suit_is_refused) {
    sl_compressor_config config = {.kind = SL_COMPRESSOR_TOP_K, .k = 5};
    config.coding = SL_ENTROPY_HUFFMAN;
    refused(config, "top-k takes none and golomb elias");
    config = (sl_compressor_config){.kind = SL_COMPRESSOR_NATURAL, .coding = SL_ENTROPY_ELIAS};
    refused(config, "natural takes none and huffman");
    config = coded(1);
    config.coding = SL_ENTROPY_GOLOMB;
    refused(config, "algorithm.compressor.coding: \"golomb\"");
    config.coding = SL_ENTROPY_HUFFMAN;
    config.levels = 1024;
    refused(config, "at most 1023");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_symbols");
    ADD_TESTS(suite, "words", omega_words_are_those_of_the_literature,
              huffman_words_are_canonical_and_shortest, huffman_words_are_short_enough,
              runs_are_as_described, elias_with_root_d_levels, huffman_of_powers_of_two_does_so_too,
              a_coding_that_does_not_suit_is_refused);
    TCase *each = tcase_create("each");
    tcase_set_timeout(each, 60);
    tcase_add_loop_test(each, parts_are_as_described, 0, 2);
    tcase_add_loop_test(each, sizes_are_those_of_the_formula, 0, OF_EACH);
    tcase_add_loop_test(each, huffman_comes_within_two_percent_of_the_entropy, 0, 9);
    suite_add_tcase(suite, each);
    return run_suite(suite);
}
