/* test_merge_trace.c - parts of a network as a protocol transcript: they agree on epochs of their
 * own, and become one again. Ranks 0 to 3, as in test_membership_trace.c.
 */
#include "members_scene.h"

/* Ranks below `parted`, and the others of four, agree on epochs of their own. */
static void train_apart(uint32_t parted) {
    open_members(4);
    for (uint32_t i = 0; i < parted; i++)
        for (uint32_t j = parted; j < 4; j++) {
            lost(i, j);
            lost(j, i);
        }
    lose_letters();
    pass_parted(3, parted);
    expect_same(0, parted - 1);
    expect_same(parted, 3);
    expect_epoch(0, 2, parted);
    expect_epoch(3, 2, 4 - parted);
}

static void all_meet(uint32_t parted) {
    for (uint32_t i = 0; i < parted; i++)
        for (uint32_t j = parted; j < 4; j++)
            meet(i, j);
}

START_TEST(sides_with_different_rounds_merge) {
    train_apart(2);
    expect_rounds_until(2, 74);
    expect_rounds_until(3, 74);
    ready(0);
    all_meet(2);
    pass(4);
    for (uint32_t i = 0; i < 4; i++) {
        expect_epoch(i, 3, 4);
        expect_same(i, 0);
        ck_assert_uint_eq(sl_membership_epoch(members[i])->round, 74 + SLACK + 1);
    }
    for (int k = 0; k < 8; k++)
        ready(1); /* in round 10, and 0 in 11: both end round 15, the limit of epoch 2, and go on */
    ck_assert_uint_eq(viewed[1], 3);
    ck_assert_uint_ge(began[1], 77);
    close_members();
}
END_TEST

/* Nobody is dropped: none was in the epoch of the other side. */
START_TEST(a_side_of_one_merges_with_all_others) {
    train_apart(1);
    expect_rounds_until(0, 74);
    all_meet(1);
    pass(4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert(!update[i].dropped);
        expect_epoch(i, 3, 4);
        expect_same(i, 0);
    }
    ck_assert_uint_eq(sl_membership_epoch(members[1])->round, 74 + SLACK + 1);
    close_members();
}
END_TEST

/* The number of epochs on one side does not matter. */
START_TEST(sides_with_different_numbers_merge) {
    train_apart(2);
    kill_member(3);
    lost(2, 3);
    pass_parted(3, 2);
    expect_epoch(2, 3, 1);
    for (uint32_t i = 0; i < 2; i++)
        meet(i, 2);
    pass(4);
    for (uint32_t i = 0; i < 3; i++) {
        expect_epoch(i, 4, 3);
        expect_same(i, 0);
    }
    close_members();
}
END_TEST

START_TEST(the_leader_of_a_merge_dies) {
    train_apart(2);
    all_meet(2);
    for (int k = 0; k < 40 && arrive(SL_MEMBERSHIP_PREPARE, 2) == 0; k++) {
        now_s += 0.1;
        arrive(SL_MEMBERSHIP_NEWS, EVERYBODY);
        tick();
    }
    kill_member(0);
    all_lose(0);
    lose_letters();
    pass(10);
    for (uint32_t i = 1; i < 4; i++) {
        expect_epoch(i, sl_membership_epoch(members[1])->number, 3);
        expect_same(i, 1);
        expect_rounds_until(i, began[i] + 64);
    }
    close_members();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("merge trace");
    ADD_TESTS_WITH(suite, "parts", forget_updates, NULL, sides_with_different_rounds_merge,
                   a_side_of_one_merges_with_all_others, sides_with_different_numbers_merge,
                   the_leader_of_a_merge_dies);
    return run_suite(suite);
}
