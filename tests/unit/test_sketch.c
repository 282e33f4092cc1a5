/* test_sketch.c - count-sketches: tables add up, large elements are found among small ones, and
 * the estimates of many seeds have the element as their mean; the largest ones of a vector. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "algorithm/centralized/sketch.h"
#include "harness.h"
#include "starling/rng.h"

enum { D = 5003, ROWS = 5, COLUMNS = 331, CELLS = ROWS * COLUMNS };

static const sl_sketch usual = {.rows = ROWS, .columns = COLUMNS, .dimension = D, .seed = 3};
static float v[D], w[D], found[D], table[CELLS], other[CELLS];

/* Small whole numbers, whose sums are exact. */
static void draw(float *out, uint32_t what) {
    sl_rng rng = sl_rng_open(7, what, 1, SL_PURPOSE_DATA);
    for (size_t i = 0; i < D; i++)
        out[i] = (float)sl_rng_below(&rng, 201) - 100;
}

static void sketch_of(const sl_sketch *s, float *out, const float *vector) {
    memset(out, 0, s->rows * s->columns * sizeof *out);
    sl_sketch_add(s, out, vector);
}

/* By the definition, with a cursor over each row's stream: of a sum of vectors. */
START_TEST(an_element_falls_where_its_word_says) {
    draw(v, 1);
    draw(w, 2);
    sketch_of(&usual, table, v);
    sl_sketch_add(&usual, table, w);
    memset(other, 0, sizeof other);
    for (uint32_t row = 0; row < ROWS; row++) {
        sl_rng rng = sl_rng_open(usual.seed, row, 0, SL_PURPOSE_SKETCH);
        for (size_t i = 0; i < D; i++) {
            const uint32_t word = sl_rng_u32(&rng);
            other[row * COLUMNS + (word / 2) * (uint64_t)COLUMNS / (UINT64_C(1) << 31)] +=
                word % 2 == 1 ? -v[i] - w[i] : v[i] + w[i];
        }
    }
    ck_assert_mem_eq(table, other, sizeof table);
}
END_TEST

START_TEST(what_is_large_is_found) {
    static const size_t places[] = {0, 77, 1024, 4000, D - 1};
    draw(v, 1);
    for (size_t i = 0; i < D; i++)
        v[i] /= 1000;
    for (size_t i = 0; i < 5; i++)
        v[places[i]] = i % 2 ? -900 : 900;
    sketch_of(&usual, table, v);
    sl_sketch_estimate(&usual, found, table);
    sl_keep_largest(found, D, 5);
    for (size_t i = 0, next = 0; i < D; i++) {
        const bool is_large = next < 5 && i == places[next];
        ck_assert_msg(is_large ? fabsf(found[i] - v[i]) < 5 : found[i] == 0, "%zu: %g", i,
                      (double)found[i]);
        next += is_large;
    }
    sl_sketch_forget(&usual, table, found);
    sl_sketch_estimate(&usual, found, table);
    for (size_t i = 0; i < 5; i++)
        ck_assert_float_eq(found[places[i]], 0);
    for (size_t i = 0; i < D; i++)
        ck_assert_float_lt(fabsf(found[i]), 5);
}
END_TEST

/* Of any number of rows, within five standard errors. */
START_TEST(estimates_are_right_on_average) {
    enum { SEEDS = 400, WHICH = 1234 };
    sl_sketch s = {.rows = (size_t)_i, .columns = CELLS / (size_t)_i, .dimension = D};
    double mean = 0, square = 0;
    draw(v, 1);
    v[WHICH] = 300;
    for (s.seed = 0; s.seed < SEEDS; s.seed++) {
        sketch_of(&s, table, v);
        sl_sketch_estimate(&s, found, table);
        mean += found[WHICH] / (double)SEEDS;
        square += found[WHICH] * (double)found[WHICH] / SEEDS;
    }
    ck_assert_double_gt(square, mean * mean);
    ck_assert_double_lt(fabs(mean - 300), 5 * sqrt((square - mean * mean) / SEEDS));
}
END_TEST

START_TEST(of_equal_ones_the_first_stay) {
    for (size_t k = 1; k <= D; k += 617) {
        draw(v, 4);
        memcpy(w, v, sizeof w);
        sl_keep_largest(w, D, k);
        size_t kept = 0;
        float least = 1000, last = -1;
        for (size_t i = 0; i < D; i++)
            if (w[i] != 0) {
                ck_assert_float_eq(w[i], v[i]);
                least = fminf(least, fabsf(w[i]));
                kept++;
            }
        for (size_t i = 0; i < D; i++) {
            ck_assert(w[i] != 0 || fabsf(v[i]) <= least);
            if (fabsf(v[i]) == least) {
                ck_assert_msg(last != 0 || w[i] == 0, "%zu was kept after one that was not", i);
                last = w[i];
            }
        }
        ck_assert_msg(kept == k || (kept < k && least == 1), "%zu of %zu", kept, k);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("sketch");
    add_loop(suite, estimates_are_right_on_average, 1, SL_SKETCH_ROWS_MAX + 1);
    ADD_TESTS(suite, "tables", an_element_falls_where_its_word_says, what_is_large_is_found,
              of_equal_ones_the_first_stay);
    return run_suite(suite);
}
