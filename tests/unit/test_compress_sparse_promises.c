/* test_compress_sparse_promises.c - top-k, random-k and random dropping: the subsets of the random
 * ones at both ends, what theory promises by Monte Carlo, and that nothing malformed gets past
 * sl_decoder_check. */
#include "sparse_wire.h"

/* ---- random subsets ---- */

/* Which elements a message of ones brings. */
static float *chosen(pair *p, size_t d, uint64_t exchange) {
    sl_message message = a_message;
    message.exchange = exchange;
    float *ones = vector_of(d), *decoded = vector_of(d);
    for (size_t i = 0; i < d; i++)
        ones[i] = 1;
    ck_assert_int_eq(encode_vector(p, &message, ones), 0);
    decode(p, &message, 1, decoded);
    release(ones);
    return decoded;
}

static double chi_square(const double *counts, size_t n, double expected, double p) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (counts[i] - expected) * (counts[i] - expected) / (expected * (1 - p));
    return sum;
}

/* Each element is kept with the same probability: chi-square within five deviations, for subsets
 * small and large. Of a subset of fixed size, n - 1 counts are free. */
START_TEST(elements_are_kept_with_equal_probability) {
    static const size_t kept[] = {10, 31, 50, 90};
    size_t d = 100, trials = 20000;
    for (int c = 0; c < 8; c++) {
        double probability = (double)kept[c % 4] / (double)d;
        sl_compressor_config config =
            c < 4 ? random_k(kept[c], false) : dropping(probability, false);
        pair p = open_pair(config, d, SMALL_PART);
        double counts[100] = {0};
        for (size_t t = 1; t <= trials; t++) {
            float *mask = chosen(&p, d, t);
            size_t total = 0;
            for (size_t i = 0; i < d; i++) {
                counts[i] += mask[i];
                total += mask[i] != 0;
            }
            ck_assert(c >= 4 || total == kept[c]);
            release(mask);
        }
        double exact = c < 4 ? probability : round(probability * 65536) / 65536;
        double statistic = chi_square(counts, d, exact * (double)trials, exact),
               free_counts = c < 4 ? (double)d - 1 : (double)d;
        statistic *= c < 4 ? ((double)d - 1) / (double)d : 1; /* E of the sum is then d - 1 */
        ck_assert_msg(fabs(statistic - free_counts) < 5 * sqrt(2 * free_counts),
                      "config %d: chi-square %g", c, statistic);
        close_pair(&p);
    }
}
END_TEST

/* Pairs of elements, too: that any two of 6 are both among 3 has probability 1/5. */
START_TEST(random_k_draws_every_subset_alike) {
    size_t trials = 20000;
    double counts[64] = {0}, sum = 0;
    pair p = open_pair(random_k(3, false), 6, SMALL_PART);
    for (size_t t = 1; t <= trials; t++) {
        float *mask = chosen(&p, 6, t);
        unsigned subset = 0;
        for (unsigned i = 0; i < 6; i++)
            subset |= (unsigned)(mask[i] != 0) << i;
        counts[subset]++;
        release(mask);
    }
    for (unsigned subset = 0; subset < 64; subset++) {
        double expected = __builtin_popcount(subset) == 3 ? (double)trials / 20 : 0;
        ck_assert(expected > 0 || counts[subset] == 0);
        sum +=
            expected > 0 ? (counts[subset] - expected) * (counts[subset] - expected) / expected : 0;
    }
    ck_assert_msg(fabs(sum - 19) < 5 * sqrt(2 * 19.0), "chi-square %g", sum);
    close_pair(&p);
}
END_TEST

/* The draws are sl_rng_below's, with the numbers that it rejects: a few dozen of these. */
START_TEST(random_k_takes_the_first_different_draws) {
    size_t d = 1000003, k = 100000;
    float *expected = vector_of(d);
    sl_message message = a_message;
    message.exchange = 5;
    sl_rng rng = {.key = sl_message_key(&message)};
    for (size_t drawn = 0; drawn < k;) {
        uint32_t i = sl_rng_below(&rng, (uint32_t)d);
        drawn += expected[i] == 0;
        expected[i] = 1;
    }
    pair p = open_pair(random_k(k, false), d, SMALL_PART);
    float *decoded = chosen(&p, d, 5);
    expect_equal(decoded, expected, d);
    close_pair(&p);
    release(decoded);
    release(expected);
}
END_TEST

START_TEST(a_shared_mask_is_that_of_all_senders) {
    size_t d = 10000;
    sl_message other = a_message, later = a_message;
    other.sender++;
    later.exchange++;
    pair p = open_pair((sl_compressor_config){.kind = SL_COMPRESSOR_SHARED_MASK, .k = 1000}, d,
                       SMALL_PART);
    float *ones = vector_of(d), *mine = vector_of(d), *theirs = vector_of(d), *next = vector_of(d);
    for (size_t i = 0; i < d; i++)
        ones[i] = 1;
    ck_assert_int_eq(encode_vector(&p, &a_message, ones), 0);
    ck_assert_uint_eq(message_bytes(&p), 4000);
    decode(&p, &a_message, 1, mine);
    ck_assert_int_eq(encode_vector(&p, &other, ones), 0);
    decode(&p, &other, 1, theirs);
    ck_assert_int_eq(encode_vector(&p, &later, ones), 0);
    decode(&p, &later, 1, next);
    expect_equal(mine, theirs, d);
    ck_assert(sl_vec_cpu()->distance_squared(mine, next, d) > 1000);
    close_pair(&p);
    release(ones);
    release(mine);
    release(theirs);
    release(next);
}
END_TEST

/* 2049 elements in two blocks: the first one fills a part, and leaves an empty one. */
START_TEST(blocks_take_turns) {
    enum { D = 2049, HALF = 1024 };
    pair p = open_pair((sl_compressor_config){.kind = SL_COMPRESSOR_SHARED_MASK,
                                              .fraction = 0.5,
                                              .order = SL_ORDER_CYCLIC},
                       D, SMALL_PART);
    float *v = gaussian(D, 3), *zero = vector_of(D), *decoded = vector_of(D);
    sl_message message = a_message;
    ck_assert_uint_eq(sl_codec_parts(p.codec), 2);
    for (uint64_t exchange = 1; exchange <= 3; exchange++) {
        const size_t from = exchange % 2 ? 0 : HALF, end = exchange % 2 ? HALF : D;
        message.exchange = exchange;
        memset(decoded, 0, D * sizeof *decoded);
        ck_assert_int_eq(encode_vector(&p, &message, v), 0);
        ck_assert_uint_eq(message_bytes(&p), (end - from) * sizeof *v);
        for (uint32_t part = 0; part < 2; part++)
            ck_assert_int_eq(sl_decoder_check(p.decoder, &message, part, p.payloads[part]), 0);
        message.exchange++;
        ck_assert_int_eq(sl_decoder_check(p.decoder, &message, 1, p.payloads[1]), SL_EPROTO);
        message.exchange--;
        decode(&p, &message, 1, decoded);
        expect_equal(decoded, zero, from);
        expect_equal(decoded + from, v + from, end - from);
        expect_equal(decoded + end, zero, D - end);
    }
    close_pair(&p);
    release(v);
    release(zero);
    release(decoded);
}
END_TEST

START_TEST(messages_differ_in_what_they_keep) {
    size_t d = 10000;
    pair p = open_pair(any_config(_i, d), d, SMALL_PART);
    sl_message others[] = {a_message, a_message, a_message, a_message, a_message};
    others[1].seed++;
    others[2].exchange++;
    others[3].sender++;
    others[4].stage++;
    float *ones = vector_of(d), *kept[5];
    for (size_t i = 0; i < d; i++)
        ones[i] = 1;
    for (int m = 0; m < 5; m++) {
        kept[m] = vector_of(d);
        ck_assert_int_eq(encode_vector(&p, &others[m], ones), 0);
        decode(&p, &others[m], 1, kept[m]);
        for (int n = 0; n < m; n++)
            ck_assert(memcmp(kept[m], kept[n], d * sizeof(float)) != 0);
    }
    for (int m = 0; m < 5; m++)
        release(kept[m]);
    release(ones);
    close_pair(&p);
}
END_TEST

/* ---- what theory promises ---- */

START_TEST(quality_in_numbers) {
    sl_compressor_config config = random_k(25, true);
    sl_quality q = sl_compressor_quality(&config, 100);
    ck_assert(q.unbiased && q.omega == 3 && !q.is_contractive && q.delta == 0);
    config.k = 80;
    q = sl_compressor_quality(&config, 100);
    ck_assert(q.unbiased && q.omega == 0.25 && q.is_contractive && q.delta == 0.75);
    config.scaled = false;
    q = sl_compressor_quality(&config, 100);
    ck_assert(!q.unbiased && isinf(q.omega) && q.is_contractive && q.delta == 0.8);
    config = top_k(25);
    q = sl_compressor_quality(&config, 100);
    ck_assert(!q.unbiased && isinf(q.omega) && q.is_contractive && q.delta == 0.25);
    config = dropping(0.3, true);
    q = sl_compressor_quality(&config, 100);
    ck_assert(q.unbiased && !q.is_contractive);
    ck_assert_double_eq(q.omega, 65536.0 / 19661 - 1);
    config = top_k(100);
    q = sl_compressor_quality(&config, 100);
    ck_assert(q.unbiased && q.omega == 0 && q.delta == 1);
}
END_TEST

/* ---- what is refused ---- */

static void expect_refused(sl_compressor_config config, size_t d, const char *key) {
    sl_error error = {0};
    sl_codec *codec = NULL;
    ck_assert_int_eq(sl_codec_open(&codec, &config, d, SMALL_PART, &error), SL_EINVAL);
    ck_assert_msg(strncmp(error.text, key, strlen(key)) == 0, "%s", error.text);
    ck_assert_ptr_null(codec);
}

START_TEST(impossible_parameters_are_named) {
    static const double fractions[] = {0, -0.1, 1.0001, NAN};
    for (int kind = 0; kind < 2; kind++) {
        sl_compressor_config config = {.kind = kind ? SL_COMPRESSOR_TOP_K : SL_COMPRESSOR_RANDOM_K,
                                       .k = 11};
        expect_refused(config, 10, "algorithm.compressor.k: 11 ");
        config.k = 0;
        for (int f = 0; f < 4; f++) {
            config.fraction = fractions[f];
            expect_refused(config, 10, "algorithm.compressor.fraction: ");
        }
    }
    for (int f = 0; f < 4; f++)
        expect_refused(dropping(fractions[f], true), 10, "algorithm.compressor.probability: ");
}
END_TEST

/* ---- a peer's bytes ---- */

/* A payload of one's own to spoil, in exactly as much memory as it says, so that a sanitizer sees
 * every byte too many. */
static sl_payload copy_of(sl_payload payload, size_t bytes) {
    uint8_t *copy = aligned_alloc(8, (bytes + 8) / 8 * 8);
    memset(copy, 0, (bytes + 8) / 8 * 8);
    memcpy(copy, payload.data, payload.bytes < bytes ? payload.bytes : bytes);
    return (sl_payload){copy, bytes};
}

static void expect_malformed(pair *p, uint32_t part, sl_payload payload) {
    ck_assert_int_eq(sl_decoder_check(p->decoder, &a_message, part, payload), SL_EPROTO);
}

/* Index i of `count` packed behind as many values. */
static uint32_t get_packed(sl_payload payload, size_t count, size_t width, size_t i) {
    uint32_t index = 0;
    const uint8_t *packed = (const uint8_t *)payload.data + 4 * count;
    for (size_t b = 0; b < width; b++)
        index |= (uint32_t)(packed[(i * width + b) / 8] >> (i * width + b) % 8 & 1) << b;
    return index;
}

static void set_packed(sl_payload payload, size_t count, size_t width, size_t i, uint32_t index) {
    uint8_t *packed = (uint8_t *)payload.data + 4 * count;
    for (size_t b = 0; b < width; b++) {
        size_t bit = i * width + b;
        packed[bit / 8] =
            (uint8_t)((packed[bit / 8] & ~(1u << bit % 8)) | (index >> b & 1) << bit % 8);
    }
}

static void expect_index_refused(pair *p, uint32_t part, size_t count, size_t width, size_t i,
                                 uint32_t index) {
    sl_payload spoiled = copy_of(p->payloads[part], p->payloads[part].bytes);
    set_packed(spoiled, count, width, i, index);
    expect_malformed(p, part, spoiled);
    free((void *)spoiled.data);
}

START_TEST(indices_out_of_order_or_range_are_refused) {
    enum { D = 30011, K = 1003, WIDTH = 15 };
    float *v = gaussian(D, 16);
    pair p = open_pair(top_k(K), D, SMALL_PART);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    ck_assert_uint_eq(sl_codec_parts(p.codec), 2);
    size_t counts[2] = {SMALL_PART * 8 / (32 + WIDTH) / 8 * 8};
    counts[1] = K - counts[0];
    for (uint32_t part = 0; part < 2; part++) {
        size_t n = counts[part];
        ck_assert_uint_eq(p.payloads[part].bytes, 4 * n + (WIDTH * n + 7) / 8);
        for (size_t i = 1; i < n; i++) {
            expect_index_refused(&p, part, n, WIDTH, i,
                                 get_packed(p.payloads[part], n, WIDTH, i - 1));
            expect_index_refused(&p, part, n, WIDTH, i, 0);
        }
        expect_index_refused(&p, part, n, WIDTH, n - 1, D);
        expect_index_refused(&p, part, n, WIDTH, n - 1, (1 << WIDTH) - 1);
    }
    expect_index_refused(&p, 0, counts[0], WIDTH, counts[0] - 1,
                         (uint32_t)(D - counts[1])); /* no room for those that follow */
    expect_index_refused(&p, 1, counts[1], WIDTH, 0,
                         (uint32_t)counts[0] - 1); /* nor for those before */
    ck_assert_uint_ne(WIDTH * counts[1] % 8, 0);
    sl_payload spoiled = copy_of(p.payloads[1], p.payloads[1].bytes);
    ((uint8_t *)spoiled.data)[spoiled.bytes - 1] |= 0x80;
    expect_malformed(&p, 1, spoiled);
    free((void *)spoiled.data);
    close_pair(&p);
    release(v);
}
END_TEST

START_TEST(bitmaps_that_contradict_the_length_are_refused) {
    enum { D = 30011, K = 10000 };
    float *v = gaussian(D, 17);
    for (int parts = 0; parts < 2; parts++) {
        pair p = open_pair(top_k(K), D, parts ? SMALL_PART : ONE_PART);
        ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
        uint32_t last = sl_codec_parts(p.codec) - 1;
        size_t from, elements;
        sl_codec_part_range(p.codec, last, &from, &elements);
        for (size_t bit = 0; bit < (elements + 7) / 8 * 8;
             bit++) { /* the bits behind the last element as well */
            sl_payload spoiled = copy_of(p.payloads[last], p.payloads[last].bytes);
            ((uint8_t *)spoiled.data)[spoiled.bytes - (elements + 7) / 8 + bit / 8] ^=
                (uint8_t)(1u << bit % 8);
            expect_malformed(&p, last, spoiled);
            free((void *)spoiled.data);
        }
        sl_payload moved =
            copy_of(p.payloads[last],
                    p.payloads[last].bytes); /* a bit moved behind the end: the count is right */
        uint8_t *bitmap = (uint8_t *)moved.data + moved.bytes - (elements + 7) / 8;
        for (size_t bit = 0;; bit++)
            if (bitmap[bit / 8] >> bit % 8 & 1) {
                bitmap[bit / 8] = (uint8_t)(bitmap[bit / 8] & ~(1u << bit % 8));
                break;
            }
        bitmap[(elements - 1) / 8] |= 0x80;
        expect_malformed(&p, last, moved);
        free((void *)moved.data);
        close_pair(&p);
    }
    release(v);
}
END_TEST

/* A message of one part has all k entries, not one less. */
START_TEST(a_bitmap_with_too_few_entries_is_refused) {
    enum { D = 64, K = 32 };
    float *v = gaussian(D, 18);
    pair fewer = open_pair(top_k(K - 1), D, ONE_PART), p = open_pair(top_k(K), D, ONE_PART);
    ck_assert_int_eq(encode_vector(&fewer, &a_message, v), 0);
    expect_malformed(&p, 0, fewer.payloads[0]);
    close_pair(&fewer);
    close_pair(&p);
    release(v);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_sparse_promises");
    TCase *each = tcase_create("each"), *drawn = tcase_create("drawn");
    tcase_set_timeout(each, 120);
    tcase_add_loop_test(drawn, messages_differ_in_what_they_keep, RANDOM, MARKING);
    suite_add_tcase(suite, each);
    suite_add_tcase(suite, drawn);
    ADD_TESTS(suite, "random", elements_are_kept_with_equal_probability,
              random_k_draws_every_subset_alike, random_k_takes_the_first_different_draws,
              a_shared_mask_is_that_of_all_senders, blocks_take_turns);
    ADD_TESTS(suite, "quality", quality_in_numbers);
    ADD_TESTS(suite, "refused", impossible_parameters_are_named,
              indices_out_of_order_or_range_are_refused,
              bitmaps_that_contradict_the_length_are_refused,
              a_bitmap_with_too_few_entries_is_refused);
    return run_suite(suite);
}
