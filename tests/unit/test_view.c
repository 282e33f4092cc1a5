/* test_view.c - starling/view.h: the hash of a view, and its lists. */
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

START_TEST(each_field_is_in_the_hash) {
    sl_view changed[8];
    sl_member other[] = {{2, 7}, {3, 2}, {5, 9}, {UINT32_MAX, 4}};
    sl_pair edges[] = {{2, 3}, {2, UINT32_MAX}, {3, 5}};
    for (int i = 0; i < 8; i++)
        changed[i] = whole;
    changed[1].number++;
    changed[2].round++;
    changed[3].exchange++;
    changed[4].count--;
    changed[5].members = other;
    changed[6].broken_count--;
    changed[7].broken = edges;
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < i; j++)
            ck_assert_uint_ne(sl_view_hash(&changed[i]), sl_view_hash(&changed[j]));
}

/* Numbers of an implementation in Python. */
START_TEST(the_hash_is_the_same_everywhere) {
    ck_assert_uint_eq(sl_view_hash(&whole), 11667855181712771098U);
    const sl_view alone = {.number = 1, .round = 1, .members = members, .count = 1};
    ck_assert_uint_eq(sl_view_hash(&alone), 7589440394880765628U);
}

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
