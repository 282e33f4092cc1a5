/* test_rng.c - Philox against the published known answers (Random123 kat_vectors), and how good
 * what is built on it is. What it draws, tests/reference/drawn.py and families.py draw once more.
 */
#include "base/philox.h"
#include "harness.h"
#include "starling/rng.h"

typedef void block_function(const sl_rng_key *key, uint32_t index, uint32_t out[4]);

static void expect_block(block_function *draw, sl_rng_key key, uint32_t index, uint32_t a,
                         uint32_t b, uint32_t c, uint32_t d) {
    uint32_t out[4];
    draw(&key, index, out);
    ck_assert_uint_eq(out[0], a);
    ck_assert_uint_eq(out[1], b);
    ck_assert_uint_eq(out[2], c);
    ck_assert_uint_eq(out[3], d);
}

static const sl_rng_key ones = {~0ull, 0xFFFFFFFFFFFFull, 0xFFFFFFFFu, 0xFFFFu},
                        pi = {0x299f31d0a4093822ull, 0x037013198a2eull, 0x85a308d3, 0x7344};

START_TEST(philox_gives_the_published_answers) {
    expect_block(sl_rng_block, (sl_rng_key){0}, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
    expect_block(sl_rng_block, ones, 0xFFFFFFFFu, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
    expect_block(sl_rng_block, pi, 0x243f6a88, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1);
}

START_TEST(philox_of_seven_rounds_gives_the_published_answers) {
    expect_block(sl_rng_quick_block, (sl_rng_key){0}, 0, 0x5f6fb709, 0x0d893f64, 0x4f121f81,
                 0x4f730a48);
    expect_block(sl_rng_quick_block, ones, 0xFFFFFFFFu, 0x5207ddc2, 0x45165e59, 0x4d8ee751,
                 0x8c52f662);
    expect_block(sl_rng_quick_block, pi, 0x243f6a88, 0x4dfccaba, 0x190a87f0, 0xc47362ba,
                 0xb6b5242a);
}

/* ---- windows: sixteen bits of a block for each of sixteen elements, by which stochastic rounding
 * goes ---- */

/* Is window i of a block below `draws`, as a rounding up with probability draws / 65536 would ask?
 */
static uint32_t goes_up(const uint32_t *words, size_t i, uint32_t draws) {
    return philox_window(words + 4 * (i / PHILOX_WINDOWS), i % PHILOX_WINDOWS) < draws;
}

START_TEST(windows_give_each_probability_and_neighbours_hardly_depend_on_each_other) {
    enum { QUICK_BLOCKS = 1 << 16, ELEMENTS = QUICK_BLOCKS * PHILOX_WINDOWS, FARTHEST = 9 };
    static const uint32_t draws[] = {1, 128, 300, 21845, 32768, 32896, 65408, 65535};
    static uint32_t words[4 * QUICK_BLOCKS];
    const sl_rng_key key = {77, 4, 2, SL_PURPOSE_COMPRESS};
    sl_rng_quick_blocks(&key, 0, QUICK_BLOCKS, words);
    for (size_t d = 0; d < sizeof draws / sizeof *draws; d++) {
        const double p = draws[d] / 65536.0, one_in = p * (1 - p);
        uint32_t up = 0, both[FARTHEST + 1] = {0};
        for (size_t i = 0; i < ELEMENTS; i++) {
            const uint32_t mine = goes_up(words, i, draws[d]);
            up += mine;
            for (size_t far = 1; far <= FARTHEST; far++)
                both[far] +=
                    mine & goes_up(words,
                                   i / PHILOX_WINDOWS * PHILOX_WINDOWS + (i + far) % PHILOX_WINDOWS,
                                   draws[d]);
        }
        /* A neighbour's share of a window's bits is within 2^-8 of a step; the mean's own variance
         * grows by as much. */
        ck_assert_double_lt(fabs(up / (double)ELEMENTS - p), 5 * sqrt(1.02 * one_in / ELEMENTS));
        for (size_t far = 1; far <= FARTHEST; far++) {
            const double covariance = both[far] / (double)ELEMENTS - p * p,
                         noise =
                             5 * sqrt((p * p * (1 - p * p) + 4 * p * p * one_in) / ELEMENTS) + 1e-7;
            ck_assert_msg(fabs(covariance) < noise + (far == 1 ? 0x1p-10 : 0),
                          "at %zu: covariance %g, noise %g, for %u of 65536", far, covariance,
                          noise, draws[d]);
        }
    }
}

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
