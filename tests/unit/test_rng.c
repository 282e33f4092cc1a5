/* test_rng.c - Philox against the published known answers (Random123 kat_vectors), and what is built on it. */
#include <math.h>
#include <string.h>

#include "harness.h"
#include "starling/rng.h"

static void expect_block(sl_rng_key key, uint32_t index, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    uint32_t out[4];
    sl_rng_block(&key, index, out);
    ck_assert_uint_eq(out[0], a);
    ck_assert_uint_eq(out[1], b);
    ck_assert_uint_eq(out[2], c);
    ck_assert_uint_eq(out[3], d);
}

START_TEST(philox_gives_the_published_answers) {
    expect_block((sl_rng_key){0}, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
    expect_block((sl_rng_key){~0ull, 0xFFFFFFFFFFFFull, 0xFFFFFFFFu, 0xFFFFu}, 0xFFFFFFFFu, 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
                 0x6d5451fd);
    expect_block((sl_rng_key){0x299f31d0a4093822ull, 0x037013198a2eull, 0x85a308d3, 0x7344}, 0x243f6a88, 0xd16cfe09, 0x94fdcceb,
                 0x5001e420, 0x24126ea1);
}
END_TEST

START_TEST(a_cursor_reads_the_stream_in_order) {
    sl_rng rng = sl_rng_open(7, 3, 11, SL_PURPOSE_DATA);
    for (uint32_t block = 0; block < 5; block++) {
        uint32_t expected[4];
        sl_rng_block(&rng.key, block, expected);
        for (int i = 0; i < 4; i++)
            ck_assert_uint_eq(sl_rng_u32(&rng), expected[i]);
    }
}
END_TEST

START_TEST(below_is_uniform_and_in_range) {
    sl_rng rng = sl_rng_open(1, 0, 0, SL_PURPOSE_INIT);
    enum { BUCKETS = 7, DRAWS = 70000 };
    int count[BUCKETS] = {0};
    for (int i = 0; i < DRAWS; i++)
        count[sl_rng_below(&rng, BUCKETS)]++;
    for (int b = 0; b < BUCKETS; b++)
        ck_assert_int_lt(abs(count[b] - DRAWS / BUCKETS), 500); /* 5 sigma */
}
END_TEST

START_TEST(normal_has_mean_0_and_variance_1) {
    sl_rng rng = sl_rng_open(2, 0, 0, SL_PURPOSE_INIT);
    enum { DRAWS = 100000 };
    double sum = 0, squares = 0;
    for (int i = 0; i < DRAWS; i++) {
        double z = sl_rng_normal(&rng);
        sum += z;
        squares += z * z;
    }
    ck_assert_double_lt(fabs(sum / DRAWS), 5 / sqrt(DRAWS));
    ck_assert_double_lt(fabs(squares / DRAWS - 1), 5 * sqrt(2.0 / DRAWS));
}
END_TEST

START_TEST(shuffle_is_a_permutation) {
    sl_rng rng = sl_rng_open(3, 0, 0, SL_PURPOSE_SHUFFLE);
    uint32_t items[257], seen[257] = {0};
    for (uint32_t i = 0; i < 257; i++)
        items[i] = i;
    sl_rng_shuffle(&rng, items, 257);
    uint32_t fixed = 0;
    for (uint32_t i = 0; i < 257; i++) {
        seen[items[i]]++;
        fixed += items[i] == i;
    }
    for (uint32_t i = 0; i < 257; i++)
        ck_assert_uint_eq(seen[i], 1);
    ck_assert_uint_lt(fixed, 10);
}
END_TEST

/* Whatever is drawn ahead: from the last item on, each is exchanged with one at or before it. */
START_TEST(shuffle_is_that_of_fisher_and_yates) {
    uint32_t items[100], plain[100];
    for (uint32_t count = 0; count <= 100; count++) {
        for (uint32_t i = 0; i < count; i++)
            items[i] = plain[i] = i;
        sl_rng rng = sl_rng_open(3, 0, count, SL_PURPOSE_SHUFFLE), again = rng;
        sl_rng_shuffle(&rng, items, count);
        for (uint32_t last = count; last-- > 1;) {
            uint32_t j = sl_rng_below(&again, last + 1), swap = plain[last];
            plain[last] = plain[j];
            plain[j] = swap;
        }
        ck_assert_mem_eq(items, plain, count * sizeof *items);
        ck_assert_uint_eq(sl_rng_u32(&rng), sl_rng_u32(&again));
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("rng");
    ADD_TESTS(suite, "philox", philox_gives_the_published_answers, a_cursor_reads_the_stream_in_order);
    ADD_TESTS(suite, "draws", below_is_uniform_and_in_range, normal_has_mean_0_and_variance_1, shuffle_is_a_permutation, shuffle_is_that_of_fisher_and_yates);
    return run_suite(suite);
}
