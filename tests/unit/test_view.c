/* test_view.c - starling/view.h: which lists a view may have. Its hash tells views apart in
 * tests/world/membership_world.c. */
#include "harness.h"
#include "starling/view.h"

static const sl_member members[] = {{2, 7}, {3, 1}, {5, 9}, {UINT32_MAX, 4}};
static const sl_pair broken[] = {{2, 3}, {2, 5}, {3, 5}};
static const sl_view whole = {.number = 4,
                              .round = 100,
                              .exchange = 50,
                              .members = members,
                              .count = 4,
                              .broken = broken,
                              .broken_count = 3};

START_TEST(lists_out_of_order_are_not_valid) {
    ck_assert(sl_view_is_valid(&whole));
    const sl_member twice[] = {{2, 7}, {2, 8}, {5, 9}, {6, 1}};
    const sl_pair edges[][3] = {
        {{2, 3}, {2, 3}, {3, 5}}, /* one twice */
        {{2, 5}, {2, 3}, {3, 5}}, /* they fall */
        {{2, 3}, {5, 2}, {5, 3}}, /* low > high */
        {{2, 3}, {2, 4}, {3, 5}}, /* 4 is no member */
    };
    sl_view wrong = whole;
    wrong.members = twice;
    ck_assert(!sl_view_is_valid(&wrong));
    for (int i = 0; i < 4; i++) {
        wrong = whole;
        wrong.broken = edges[i];
        ck_assert(!sl_view_is_valid(&wrong));
    }
    wrong = whole;
    wrong.number = 0;
    ck_assert(!sl_view_is_valid(&wrong));
    wrong = whole;
    wrong.round = 0;
    ck_assert(!sl_view_is_valid(&wrong));
    wrong = whole;
    wrong.count = wrong.broken_count = 0;
    ck_assert(!sl_view_is_valid(&wrong));
}
