/* test_ranges.c - what leaves when: MG-WFBP's rule and first pieces first, on cases that can be
 * reckoned by hand, and what holds of all. tests/parity/test_overlap.py has the bits. */
#include "harness.h"
#include "starling/layer_budget.h"

static sl_error error;

/* A gradient of 3 s: forward until 1, and 10 elements backward until 3. */
static const size_t ends[] = {1, 2, 6, 10};
static const sl_shapes shapes = {.dimension = 10, .ends = ends, .count = 4};

static void expect(sl_ranges *r, const size_t *borders, size_t count) {
    ck_assert_uint_eq(r->count, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_uint_eq(r->items[i].from, borders[i]);
    sl_ranges_close(r);
}

START_TEST(a_tensor_waits_where_a_message_of_its_own_costs_more) {
    static const struct {
        double a, b;
        size_t from[4], count;
    } rows[] = {
        {0, 0, {6, 2, 1, 0}, 4}, /* there at 1.8, 2.6, 2.8 and 3 */
        {0.1, 0, {6, 2, 1, 0}, 4},
        {0.3, 0, {6, 0}, 2},      /* 2.8 < 2.6 + a, and 3 < 2.8 + a */
        {0.1, 0.1, {6, 2, 0}, 3}, /* the link is free at 3.1 */
        {0, 0.24, {6, 2, 0}, 3},  /* at 2.76, and at 3.76 */
        {0, 1, {6, 0}, 2},        /* at 5.8 */
        {1, 0, {0}, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sl_ranges r;
        const sl_sending_costs costs = {3, rows[i].a, rows[i].b, 0};
        EXPECT_WELL(sl_ranges_merged(&r, &shapes, &costs, &error));
        expect(&r, rows[i].from, rows[i].count);
    }
}

/* Backward, tensors of 16 and 48 elements and a matrix of 64 with a bias of 8 take 2 s in their
 * proportions. An entry of 64 elements is 32 bits and an index of 6 bits, of 8 one of 3 bits. */
START_TEST(a_layer_sends_what_is_hidden_beside_the_one_below) {
    static const size_t of[] = {16, 64, 128, 136}, rows[] = {4, 6, 8, 1};
    const sl_shapes s = {.dimension = 136, .ends = of, .rows = rows, .count = 4};
    const double below_s = 48 * 2.0 / 136; /* beside which the last two leave */
    sl_compressor_config c = {
        .kind = SL_COMPRESSOR_TOP_K, .fraction = 0.5, .fraction_min = 1.0 / 72};
    double f[4];
    sl_sending_costs costs = {3, below_s / 2, 0, below_s / 2 / (5 * (32 + 6) + 32 + 3)};
    sl_layer_fractions(f, &c, &s, &costs);
    ck_assert_double_eq(f[3], f[2]);
    ck_assert_double_eq_tol(f[2], 5.0 / 72, 1.01 / 72); /* 5 of 64, and 1 of 8 */
    ck_assert_uint_eq((size_t)(f[2] * 64 + 0.5), 5);
    ck_assert_uint_le((size_t)(f[3] * 8 + 0.5), 1);
    ck_assert_double_eq(f[1], 1.0 / 48); /* beside 16 elements not even a */
    ck_assert_double_eq(f[0], 1.0 / 16); /* beside nothing */
    costs = (sl_sending_costs){3, 0, 0, 0};
    sl_layer_fractions(f, &c, &s, &costs);
    for (size_t t = 0; t < 4; t++)
        ck_assert_double_eq(f[t], 0.5);
}

/* Five pieces of two, there at 1.4, 1.8, 2.2, 2.6 and 3. */
START_TEST(the_first_of_the_pieces_that_are_there_leaves) {
    static const struct {
        double element_s;
        size_t from[5];
    } rows[] = {
        {0.1, {8, 6, 4, 2, 0}},
        {0.4, {8, 4, 0, 2, 6}}, /* free at 2.2, where 4 is there, and at 3 */
        {0.3, {8, 6, 2, 0, 4}}, /* free at 2, 2.6 and 3.2 */
        {5, {8, 0, 2, 4, 6}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sl_ranges r;
        const sl_sending_costs costs = {3, 1e-9, rows[i].element_s, 0};
        EXPECT_WELL(sl_ranges_partitioned(&r, 10, 2, &costs, &error));
        expect(&r, rows[i].from, 5);
    }
}

static void expect_all(const sl_ranges *r, size_t d) {
    size_t elements = 0;
    for (size_t e = 0; e < d; e++) {
        const sl_range *in = &r->items[sl_ranges_find(r, e)];
        ck_assert(in->from <= e && e - in->from < in->count);
    }
    for (size_t i = 0; i < r->count; i++)
        elements += r->items[i].count;
    ck_assert_uint_eq(elements, d);
}

START_LOOP_TEST(each_element_leaves_once_and_merging_is_never_late, 200) {
    size_t ends_of[12], d = 0;
    const size_t tensors = 1 + (size_t)_i % 12;
    for (size_t t = 0; t < tensors; t++)
        ends_of[t] = d += 1 + (t * 7919 + (size_t)_i * 104729) % 97;
    const sl_shapes s = {.dimension = d, .ends = ends_of, .count = tensors};
    const sl_sending_costs costs = {1, 0.03 * (_i % 10), (_i % 7) * 0.4 / (double)d, 0};
    sl_ranges layers, merged, pieces;
    EXPECT_WELL(sl_ranges_layers(&layers, &s, &error));
    EXPECT_WELL(sl_ranges_merged(&merged, &s, &costs, &error));
    EXPECT_WELL(sl_ranges_partitioned(&pieces, d, 1 + (size_t)_i % 20, &costs, &error));
    ck_assert_double_le(sl_ranges_seconds(&merged, d, &costs),
                        sl_ranges_seconds(&layers, d, &costs) + 1e-12);
    expect_all(&layers, d);
    expect_all(&merged, d);
    expect_all(&pieces, d);
    for (size_t from = 0; from <= d; from++) {
        const size_t border = sl_ranges_border(&merged, from, d);
        ck_assert(border >= from);
        for (size_t i = 0; i < merged.count; i++)
            ck_assert(merged.items[i].from < from || merged.items[i].from >= border);
    }
    sl_ranges_close(&layers);
    sl_ranges_close(&merged);
    sl_ranges_close(&pieces);
}
