/* test_loss_trace.c - members that lose each other as a protocol transcript: their nodes are cut,
 * and a part that has no quorum rests; see members_scene.h.
 */
#include "members_scene.h"

/* ---- cuts ---- */

FIXTURES(forget_updates, close_members);

START_TEST(who_is_cut_trains_no_further_until_a_view) {
    open_members(4);
    lost(3, 0);
    lose_letters();
    expect_rounds_until(3, 10);
    meet(0, 3); /* its node was cut, and so there is a view, of the same members */
    expect_rounds_until(3, 10);
    pass(3);
    expect_agreed(0, 4, 2, 4);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(viewed[i], 2);
    train(3);
    expect_view(0, 2, 4);
    expect_cuts(4, 1);
}

/* Rank 3 leaves: a view without it is agreed on, and lets round 10 end. Only 0 has heard so. */
static void await_view(void) {
    open_members(4);
    step(3, (sl_membership_event){.type = SL_MEMBERSHIP_LEAVE});
    arrive(SL_MEMBERSHIP_NEWS, EVERYBODY);
    tick();
    arrive(SL_MEMBERSHIP_PREPARE, EVERYBODY);
    arrive(SL_MEMBERSHIP_ANSWER, 0);
    arrive(SL_MEMBERSHIP_ACCEPT, EVERYBODY);
    arrive(SL_MEMBERSHIP_ACCEPTED, 0);
    expect_view(0, 2, 3);
    expect_cuts(4, 0);
    lose_letters();
}

/* It has not heard of the next one, under which all exchange. */
START_TEST(who_loses_the_leaver_cuts_the_view_before) {
    await_view();
    lost(1, 3);
    arrive(SL_MEMBERSHIP_NEWS, 0);
    ck_assert(cuts[1] == 1 && cuts[0] == 1);
    ready(0);
    ck_assert(viewed[0] == 2 && began[0] == 11);
    expect_training(0);
    ck_assert_int_eq(cuts[0], 1);
}

/* ---- quorums ---- */

static void expect_rest(uint32_t rank, uint32_t reached, uint32_t needed) {
    uint32_t found, wanted;
    ck_assert(sl_membership_lacks_quorum(members[rank], &found, &wanted));
    ck_assert_msg(found == reached && wanted == needed, "%u of %u, %u needed", found, reached,
                  wanted);
    expect_view(rank, 1, sl_membership_newest(members[rank])->count);
    expect_rounds_until(rank, 10);
}

START_TEST(a_minority_rests_and_comes_back) {
    open_members(5);
    part(3, 5);
    train(12);
    expect_agreed(0, 3, 2, 3);
    expect_rest(3, 2, 3);
    expect_rest(4, 2, 3);
    heal(3, 5);
    train(0.3);
    for (uint32_t i = 3; i < 5; i++) {
        ck_assert(is_told(i, SL_ORDER_RETURN));
        join(i, 0);
    }
    train(3);
    expect_agreed(0, 5, number_of(0), 5);
    expect_cuts(5, 1);
}

/* Four live, and 1 is the lowest of them. */
START_TEST(where_the_lowest_has_ended_the_next_one_splits) {
    open_members(5);
    all_see_it_end(0);
    part(3, 5);
    train(12);
    expect_agreed(1, 3, 2, 2);
    expect_rest(3, 2, 3);
}

START_TEST(who_has_done_its_last_round_does_not_count) {
    open_members(2);
    kill_member(0);
    lost(1, 0);
    step(1, (sl_membership_event){.type = SL_MEMBERSHIP_DONE, .peer = 0});
    train(2);
    expect_agreed(1, 2, 2, 1);
}

START_TEST(settings_may_ask_for_more) {
    quorum = 4;
    open_members(5);
    kill_member(3);
    kill_member(4);
    all_lose(3);
    all_lose(4);
    train(12);
    for (uint32_t i = 0; i < 3; i++)
        expect_rest(i, 3, 4);
}

/* ---- parts that both go on, as settings allow it ---- */

static void train_apart(uint32_t from, uint32_t n) {
    quorum = 1;
    open_members(n);
    part(from, n);
    train(8);
    expect_agreed(0, from, 2, from);
    expect_agreed(from, n, 2, n - from);
}

/* Ranks from `low` to `high` were in the part that does not go on. */
static void expect_dropped(uint32_t low, uint32_t high, uint32_t n) {
    heal(2, n);
    train(1);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_msg(is_told(i, SL_ORDER_RETURN) == (i >= low && i < high), "rank %u", i);
    for (uint32_t i = low; i < high; i++)
        join(i, low == 0 ? high : 0);
    train(8);
    expect_agreed(0, n, number_of(0), n);
}

START_TEST(of_parts_alike_that_without_the_lowest_rank_is_dropped) {
    train_apart(2, 4);
    expect_dropped(2, 4, 4);
}

/* Each tells the other of its view, and neither believes one member alone: once is enough. When all
 * meet, the smaller part is dropped. */
START_TEST(members_of_two_parts_that_meet_alone_tell_each_other_once) {
    train_apart(2, 5);
    meet(0, 2);
    train(2);
    expect_view(0, 2, 2);
    expect_view(2, 2, 3);
    expect_dropped(0, 2, 5);
}

/* How many views a part has been through does not matter. */
START_TEST(a_smaller_part_of_a_higher_number_is_dropped) {
    train_apart(2, 5);
    step(0, (sl_membership_event){.type = SL_MEMBERSHIP_LOST, .peer = 1});
    train(3); /* only the edge, which is whole again */
    meet(0, 1);
    train(3);
    ck_assert_uint_gt(number_of(0), 2);
    expect_dropped(0, 2, 5);
}
