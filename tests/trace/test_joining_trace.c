/* test_joining_trace.c - who joins members as a protocol transcript: with a sponsor that stays,
 * dies, or is dropped, and before or after all agree. Ranks 0 to 2 are members, and 3 joins, or
 * another process of it; see members_scene.h.
 */
#include "members_scene.h"

static void come(uint32_t rank, uint32_t sponsor) {
    start(rank, NULL, 0);
    for (uint32_t i = 0; i < 3; i++)
        if (members[i] != NULL)
            meet(i, rank);
    join(rank, sponsor);
}

/* All have accepted that rank 3 joins, and nobody has heard so yet. */
static void accept_joiner(void) {
    open_members(3);
    come(3, 2);
    arrive(SL_MEMBERSHIP_NEWS, EVERYBODY);
    tick();
    arrive(SL_MEMBERSHIP_PREPARE, EVERYBODY);
    arrive(SL_MEMBERSHIP_ANSWER, 0);
    arrive(SL_MEMBERSHIP_ACCEPT, EVERYBODY);
}

FIXTURES(forget_updates, close_members);

/* The view begins after the round of whom is ahead; the others end their rounds until then. */
START_TEST(a_joiner_lets_all_end_their_rounds) {
    open_members(3);
    ready(1);
    ready(1);
    come(3, 2);
    pass(1);
    expect_view(3, 2, 4);
    ck_assert(began[3] == 13 && viewed[3] == 2);
    ready(0);
    ck_assert(began[0] == 11 && viewed[0] == 0);
    ready(0);
    ready(0);
    ck_assert(began[0] == 13 && viewed[0] == 2);
    expect_cuts(4, 0);
}

/* Nothing would change then: nobody is bound any more. */
START_TEST(a_joiner_that_dies_changes_nothing) {
    open_members(3);
    come(3, 2);
    arrive(SL_MEMBERSHIP_NEWS, EVERYBODY);
    tick();
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_PREPARE, EVERYBODY), 3);
    expect_rounds_until(1, 10);
    die(3);
    lose_letters();
    now_s += SL_ANSWER_S;
    tick();
    arrive(SL_MEMBERSHIP_PREPARE, EVERYBODY);
    arrive(SL_MEMBERSHIP_ANSWER, 0);
    now_s += SL_ANSWER_S;
    tick();
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_RELEASE, EVERYBODY), 2);
    expect_agreed(0, 3, 1, 3);
    expect_cuts(3, 0);
}

/* Its sponsor lives, and it reaches it: who is out lets nobody in. */
START_TEST(a_joiner_whose_sponsor_is_dropped_asks_again) {
    open_members(3);
    lost(0, 2);
    lost(1, 2);
    train(3);
    expect_view(0, 2, 2);
    ck_assert(is_told(2, SL_ORDER_RETURN));
    come(3, 2);
    train(2);
    ck_assert(is_told(3, SL_ORDER_ASK_AGAIN));
    join(3, 1);
    train(2);
    expect_same(3, 0);
    ck_assert_uint_eq(sl_membership_newest(members[3])->count, 3);
}

/* It has accepted, and may not go back on that: the proposal may hold. */
START_TEST(a_joiner_that_gave_up_accepts_again) {
    accept_joiner();
    die(0);
    lost(3, 2);
    lose_letters();
    tick();
    ck_assert(is_told(3, SL_ORDER_ASK_AGAIN));
    train(8);
    ck_assert_uint_gt(number_of(1), 2);
    expect_same(1, 2);
}

/* The others take it for a member then. It tells them that it is none. */
START_TEST(a_joiner_that_gave_up_before_commit_says_so) {
    accept_joiner();
    arrive(SL_MEMBERSHIP_ACCEPTED, 0);
    lost(3, 2);
    tick();
    ck_assert(is_told(3, SL_ORDER_ASK_AGAIN));
    arrive(SL_MEMBERSHIP_COMMIT, EVERYBODY);
    expect_view(0, 2, 4);
    ck_assert_ptr_null(sl_membership_newest(members[3]));
    ck_assert(!sl_membership_is_out(members[0], 3, 2));
    for (int i = 0; i < 2; i++) { /* once most have told it, it knows */
        arrive(SL_MEMBERSHIP_NEWS, EVERYBODY);
        arrive(SL_MEMBERSHIP_COMMIT, EVERYBODY);
    }
    ck_assert(sl_membership_is_out(members[0], 3, 2));
    train(2);
    expect_view(0, 3, 3);
    expect_same(0, 2);
}

/* It is no acceptor: whoever asks it first binds it to nothing. */
START_TEST(a_joiner_promises_nothing) {
    open_members(3);
    come(3, 2);
    const sl_membership_message prepare = {
        .type = SL_MEMBERSHIP_PREPARE, .from = 4, .incarnation = 1, .number = 9, .ballot = {9, 4}};
    hear(3, prepare);
    arrive(SL_MEMBERSHIP_NEWS, EVERYBODY);
    tick();
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_PREPARE, EVERYBODY), 3);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_REFUSE, EVERYBODY), 0);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_ANSWER, 0), 3);
    train(0.3);
    expect_view(3, 2, 4);
}

/* It decides nothing: members alone are a quorum. */
START_TEST(joiners_are_no_quorum) {
    open_members(3);
    come(3, 0);
    come(4, 0);
    kill_member(1);
    kill_member(2);
    for (uint32_t i = 0; i < 5; i++)
        for (uint32_t dead = 1; dead < 3; dead++)
            if (i != dead)
                lost(i, dead);
    train(8);
    expect_view(0, 1, 3);
    expect_rounds_until(0, 10);
    ck_assert_ptr_null(sl_membership_newest(members[3]));
}

/* Rank 1 has heard the former one say that it leaves, and never hears the one that follows. */
START_TEST(what_a_former_process_wanted_is_over) {
    open_members(4);
    step(3, (sl_membership_event){.type = SL_MEMBERSHIP_LEAVE});
    arrive(SL_MEMBERSHIP_NEWS, EVERYBODY);
    ck_assert_int_eq(sl_membership_standing_of(members[1], 3), SL_LEAVES);
    die(3);
    train(8);
    expect_view(1, 2, 3);
    start(3, NULL, 0);
    cut_off(1, 3);
    meet(0, 3);
    meet(2, 3);
    join(3, 0);
    train(30);
    expect_view(1, 3, 4);
    expect_same(1, 3);
    ck_assert_int_ne(sl_membership_standing_of(members[1], 3), SL_LEAVES);
}

/* It has sent all that it owed; so will the one that follows, some day. */
START_TEST(who_follows_one_that_left_is_let_in) {
    open_members(2);
    step(1, (sl_membership_event){.type = SL_MEMBERSHIP_LEAVE});
    train(1);
    expect_view(0, 2, 1);
    step(0, (sl_membership_event){.type = SL_MEMBERSHIP_DONE, .peer = 1});
    kill_member(1);
    come(1, 0);
    train(2);
    expect_view(1, 3, 2);
    expect_same(0, 1);
}

/* One member's word that there is a later view is no view; that of most is. */
START_TEST(a_view_that_was_not_accepted_needs_a_quorum) {
    open_members(5);
    sl_member of[] = {{1, SL_FOUNDER}, {2, SL_FOUNDER}, {3, SL_FOUNDER}, {4, SL_FOUNDER}};
    const sl_decision d = {
        .ballot = {1, 1},
        .view = {.number = 2, .round = 11, .exchange = 10, .members = of, .count = 4}};
    for (uint32_t from = 1; from < 4; from++) {
        ck_assert(!is_told(0, SL_ORDER_RETURN));
        hear(0, commit_of(from, &d));
    }
    ck_assert(is_told(0, SL_ORDER_RETURN));
}
