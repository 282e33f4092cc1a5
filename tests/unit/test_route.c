/* test_route.c - what the forms of an all-reduce cost. That they sum, and that both ends of an edge
 * agree, tests/parity/test_algorithms.py and fault_world.c show. */
#include "harness.h"
#include "route/form.h"

/* Steps of both halves, and elements that the busiest sends, of 2^12 times 9: each cut is even. */
START_TEST(forms_cost_what_the_table_says) {
    enum { D = 36864 };
    static const struct {
        sl_all_reduce_form form;
        uint32_t nodes, group, steps;
        double sent; /* vectors */
    } rows[] = {
        {SL_ALL_REDUCE_RING, 8, 0, 14, 14.0 / 8},
        {SL_ALL_REDUCE_TREE, 8, 0, 6, 3},
        {SL_ALL_REDUCE_TREE, 9, 0, 8, 4},
        {SL_ALL_REDUCE_RECURSIVE_DOUBLING, 8, 0, 5, 3},
        {SL_ALL_REDUCE_RECURSIVE_DOUBLING, 12, 0, 5, 4},
        {SL_ALL_REDUCE_HALVING_DOUBLING, 8, 0, 8, 14.0 / 8},
        {SL_ALL_REDUCE_HALVING_DOUBLING, 12, 0, 8, 14.0 / 8 + 1},
        {SL_ALL_REDUCE_HIERARCHICAL, 12, 4, 10, 3 + 4.0 / 3},
        {SL_ALL_REDUCE_TORUS_2D, 12, 4, 10, 22.0 / 12},
        {SL_ALL_REDUCE_TWO_RINGS, 12, 4, 20, 22.0 / 12},
        {SL_ALL_REDUCE_DOUBLE_TREE, 8, 0, 24, 2},
        {SL_ALL_REDUCE_DOUBLE_TREE, 12, 0, 36, 2},
        {SL_ALL_REDUCE_DOUBLE_TREE, 7, 0, 24, 2},
        {SL_ALL_REDUCE_DOUBLE_TREE, 32, 0, 48, 2},
        {SL_ALL_REDUCE_STAR, 8, 0, 2, 7},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const sl_form form = sl_form_of(rows[k].form, rows[k].group, rows[k].nodes, D);
        const uint32_t halves[] = {sl_form_steps(&form, false), sl_form_steps(&form, true)};
        size_t busiest = 0;
        for (uint32_t i = 0; i < rows[k].nodes; i++) {
            size_t sent = 0;
            for (uint32_t step = 0; step < halves[0] + halves[1]; step++) {
                const bool gather = step >= halves[0];
                const sl_move m = sl_form_move(&form, gather, i, step - gather * halves[0]);
                sent += m.leaves.count * (m.to == SL_EVERYWHERE ? rows[k].nodes - 1 : 1);
            }
            busiest = sent > busiest ? sent : busiest;
        }
        ck_assert_uint_eq(halves[0] + halves[1], rows[k].steps);
        ck_assert_double_eq_tol((double)busiest / D, rows[k].sent, 1e-12);
    }
}
