/* test_membership_trace.c - members as a protocol transcript: events in, messages and updates out;
 * see members_scene.h.
 */
#include "members_scene.h"

/* ---- transcripts ---- */

/* Rank 0 leads, after the death of 4: PREPARE has left. */
static void begin_change(void) {
    open_members(5);
    die(4);
    lose_letters();
    tick();
}

/* ACCEPT has left. */
static void propose_change(void) {
    begin_change();
    arrive(SL_MEMBERSHIP_PREPARE, EVERYBODY);
    arrive(SL_MEMBERSHIP_ANSWER, 0);
    now_s += SL_ANSWER_S;
    tick();
}

FIXTURES(forget_updates, close_members);

START_TEST(a_loss_becomes_a_view) {
    begin_change();
    expect_cuts(4, 1);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_PREPARE, EVERYBODY), 4);
    expect_rounds_until(1, 10); /* cut, and bound */
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_ANSWER, 0), 3);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_ACCEPT, EVERYBODY),
                     0); /* the suspect may answer for 1 s */
    now_s += SL_ANSWER_S;
    tick();
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_ACCEPT, EVERYBODY), 3);
    expect_view(0, 1, 5);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_ACCEPTED, 0), 3);
    expect_view(0, 2, 4);
    expect_view(1, 1, 5);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_COMMIT, EVERYBODY), 3);
    for (uint32_t i = 0; i < 4; i++) {
        expect_view(i, 2, 4);
        ck_assert_uint_eq(sl_membership_newest(members[i])->round, 11);
        ck_assert_uint_eq(began[i], i == 1 ? 11 : 10); /* COMMIT let it begin 11 */
        ready(i);
        ck_assert_uint_eq(began[i], i == 1 ? 12 : 11);
        ck_assert_uint_eq(viewed[i], 2);
    }
    expect_cuts(4, 1);
}

/* ---- what may hold ---- */

/* Rank 0 has died, and 1 leads: PREPARE has left. Rank 2 has accepted what 0 has proposed. */
static sl_ballot lead_again(void) {
    propose_change();
    arrive(SL_MEMBERSHIP_ACCEPT, 2);
    die(0);
    lose_letters();
    tick();
    letter *prepare = take(SL_MEMBERSHIP_PREPARE, 3);
    ck_assert_ptr_nonnull(prepare);
    const sl_ballot ballot = prepare->message.ballot;
    ck_assert_uint_eq(ballot.rank, 1);
    free(prepare);
    return ballot;
}

/* What rank 1 proposes, to rank 3. */
static letter *propose_again(void) {
    now_s += SL_ANSWER_S;
    step(1, (sl_membership_event){.type = SL_MEMBERSHIP_TICK});
    letter *accept = take(SL_MEMBERSHIP_ACCEPT, 3);
    ck_assert_ptr_nonnull(accept);
    ck_assert_uint_eq(accept->message.decision->ballot.rank, 1);
    return accept;
}

static void answer_by_hand(uint32_t from, sl_ballot ballot, uint64_t round,
                           const sl_decision *accepted) {
    const sl_membership_message answer = {.type = SL_MEMBERSHIP_ANSWER,
                                          .from = from,
                                          .incarnation = SL_FOUNDER,
                                          .number = 1,
                                          .standing = SL_MEMBER,
                                          .ballot = ballot,
                                          .round = round,
                                          .accepted = accepted};
    hear(1, answer);
}

START_TEST(of_two_accepted_proposals_that_of_the_higher_ballot_is_proposed) {
    const sl_decision
        lower = {.ballot = {2, 3},
                 .view = {.number = 2, .round = 11, .exchange = 10, .members = all, .count = 3}},
        higher = {.ballot = {3, 0},
                  .view = {.number = 2, .round = 12, .exchange = 11, .members = all, .count = 4}};
    for (int order = 0; order < 2; order++) {
        const sl_ballot ballot = lead_again();
        answer_by_hand(2, ballot, 10, order ? &lower : &higher);
        answer_by_hand(3, ballot, 10, order ? &higher : &lower);
        letter *accept = propose_again();
        ck_assert_uint_eq(accept->message.decision->view.round, 12);
        ck_assert_uint_eq(accept->message.decision->view.count, 4);
        free(accept);
        close_members();
    }
}

/* A later leader has released its members, with a quorum that did not know of it. */
START_TEST(a_proposal_whose_members_are_in_later_rounds_is_forgotten) {
    const sl_ballot ballot = lead_again();
    arrive(SL_MEMBERSHIP_PREPARE, 2);
    arrive(SL_MEMBERSHIP_ANSWER, 1);
    answer_by_hand(3, ballot, 11, NULL);
    letter *accept = propose_again();
    ck_assert_uint_eq(accept->message.decision->view.count, 3);
    ck_assert_uint_eq(accept->message.decision->view.round, 12);
    free(accept);
}

/* ---- promises ---- */

/* PREPARE of rank 1 reaches rank 2 between rank 0's PREPARE and ACCEPT. */
START_TEST(a_leader_that_is_overtaken_is_told) {
    const sl_membership_message prepare = {.type = SL_MEMBERSHIP_PREPARE,
                                           .from = 1,
                                           .incarnation = SL_FOUNDER,
                                           .number = 1,
                                           .standing = SL_MEMBER,
                                           .ballot = {9, 1}};
    propose_change();
    hear(2, prepare);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_ACCEPT, 2), 1);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_REFUSE, 0), 1);
    for (int k = 0; k < 18; k++) { /* it leaves it to rank 1, for 2 s */
        now_s += 0.1;
        tick();
        ck_assert_int_eq(arrive(SL_MEMBERSHIP_PREPARE, 2), 0);
        lose_letters();
    }
}

/* Three leaders in turn, and one member that they reach. */
START_TEST(leaders_that_reach_one_member_agree) {
    open_members(4);
    cut_off(0, 1);
    cut_off(0, 2);
    cut_off(1, 2);
    train(12);
    for (uint32_t i = 0; i < 4; i++) {
        expect_same(i, 3);
        expect_training(i);
    }
    ck_assert_uint_eq(sl_membership_newest(members[3])->count, 4);
}

/* Neither 0 nor 3 could agree on a view with the other. */
START_TEST(who_reaches_most_leads) {
    open_members(4);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t j = i + 1; j < 4; j++)
            meet(i, j);
    arrive(SL_MEMBERSHIP_NEWS, EVERYBODY);
    lost(0, 3);
    lost(3, 0);
    arrive(SL_MEMBERSHIP_NEWS, EVERYBODY);
    tick();
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_PREPARE, EVERYBODY), 3);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_ANSWER, 1), 3);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_ACCEPT, EVERYBODY), 3);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_ACCEPTED, 1), 3);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_COMMIT, EVERYBODY), 3);
    for (uint32_t i = 0; i < 4; i++)
        expect_view(i, 2, 4);
}

/* One may be wrong, or lie. */
START_TEST(who_has_not_accepted_believes_a_quorum_only) {
    open_members(5);
    const sl_decision d = {
        .ballot = {9, 1},
        .view = {.number = 2, .round = 11, .exchange = 10, .members = all, .count = 4}};
    for (uint32_t i = 1; i < 4; i++) {
        expect_view(0, 1, 5);
        hear(0, commit_of(i, &d));
        hear(0, commit_of(i, &d));
    }
    expect_view(0, 2, 4);
}

/* ---- who goes ---- */

START_TEST(a_leaver_ends_its_rounds) {
    open_members(3);
    ready(2); /* it is ahead */
    step(1, (sl_membership_event){.type = SL_MEMBERSHIP_LEAVE});
    pass(1);
    expect_view(0, 2, 2);
    expect_same(0, 2);
    ck_assert_uint_eq(sl_membership_newest(members[0])->round, 12);
    ck_assert(!is_told_to_leave(1) && sl_membership_is_let_go(members[1]));
    expect_rounds_until(1, 11);
    ck_assert(is_told(1, SL_ORDER_LEAVE));
    expect_cuts(3, 0);
    expect_training(0);
}

START_TEST(a_leaver_waits_for_so_long) {
    open_members(3);
    step(1, (sl_membership_event){.type = SL_MEMBERSHIP_LEAVE});
    lose_letters();
    now_s += SL_LEAVE_S - 0.5;
    tick();
    ck_assert(!is_told_to_leave(1));
    now_s += 1;
    tick();
    ck_assert(is_told(1, SL_ORDER_LEAVE));
}

START_TEST(all_leave_after_one_round) {
    open_members(3);
    for (uint32_t i = 0; i < 3; i++)
        step(i, (sl_membership_event){.type = SL_MEMBERSHIP_LEAVE});
    ready(2); /* it is ahead */
    pass(4);
    for (uint32_t i = 0; i < 3; i++) {
        while (!is_told_to_leave(i))
            ready(i);
        ck_assert(is_told(i, SL_ORDER_LEAVE_ALL));
        ck_assert_uint_eq(began[i], 11);
    }
}

START_TEST(most_step_aside) {
    open_members(3);
    step(1, (sl_membership_event){.type = SL_MEMBERSHIP_ASIDE});
    step(2, (sl_membership_event){.type = SL_MEMBERSHIP_ASIDE});
    ck_assert(!is_told(1, SL_ORDER_DIVERGED));
    pass(1);
    ck_assert(is_told(1, SL_ORDER_DIVERGED) && !is_told(0, SL_ORDER_DIVERGED));
}

START_TEST(damaged_messages_are_refused) {
    open_members(2);
    const sl_member wrong[] = {{1, 1}, {0, 1}};
    const uint32_t far = HERE;
    const uint64_t huge = ((uint64_t)1 << 53) + 1;
    const sl_decision d = {.view = {.number = 9, .round = 99, .members = wrong, .count = 2}};
    const sl_membership_message messages[] = {
        {.type = SL_MEMBERSHIP_COMMIT, .from = 1, .incarnation = 1, .decision = &d},
        {.type = SL_MEMBERSHIP_COMMIT, .from = 1, .incarnation = 1},
        {.type = SL_MEMBERSHIP_ACCEPT, .from = 1, .incarnation = 1},
        {.type = SL_MEMBERSHIP_NEWS, .from = HERE, .incarnation = 1},
        {.type = SL_MEMBERSHIP_NEWS, .from = 0, .incarnation = 1},
        {.type = SL_MEMBERSHIP_NEWS, .from = 1, .incarnation = 1, .cut = 1, .sponsor = HERE},
        {.type = SL_MEMBERSHIP_NEWS, .from = 1, .incarnation = 1, .cut = 1, .number = huge},
        {.type = SL_MEMBERSHIP_NEWS, .from = 1, .incarnation = 1, .cut = 1, .round = huge},
        {.type = SL_MEMBERSHIP_NEWS, .from = 1, .incarnation = 1, .cut = 1, .ballot = {huge, 1}},
        {.type = SL_MEMBERSHIP_NEWS, .from = 1, .unreachable = &far, .unreachable_count = 1},
        {.type = SL_MEMBERSHIP_NEWS, .from = 1, .reached = &far, .reached_count = 1},
    };
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        hear(0, messages[i]);
        expect_view(0, 1, 2);
        ck_assert_int_eq(cuts[0], 0);
    }
}
