/* test_membership_trace.c - members as a protocol transcript: events in, messages and updates out.
 *
 * Ranks 0, 1, 2, 3 of a run, all in epoch 1; slack 2. Messages wait in a list until the test lets
 * them arrive, or loses them.
 */
#include "members_scene.h"

/* ---- transcripts ---- */

/* Rank 0 leads, after the death of 3: PREPARE has left. */
static void begin_change(void) {
    open_members(4);
    kill_member(3);
    all_lose(3);
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

START_TEST(a_loss_becomes_an_epoch) {
    begin_change();
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_PREPARE, EVERYBODY), 3);
    expect_rounds_until(1, 12); /* 10 + slack */
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_ANSWER, 0), 2);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_ACCEPT, EVERYBODY),
                     0); /* the suspect may answer for 1 s */
    now_s += SL_ANSWER_S;
    tick();
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_ACCEPT, EVERYBODY), 2);
    expect_epoch(0, 1, 4);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_ACCEPTED, 0), 2);
    expect_epoch(0, 2, 3);
    expect_epoch(1, 1, 4);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_COMMIT, EVERYBODY), 2);
    for (uint32_t i = 0; i < 3; i++) {
        expect_epoch(i, 2, 3);
        ck_assert_uint_eq(sl_membership_epoch(members[i])->round, 13);
        for (int k = 0; k < 3; k++)
            ready(i);
        ck_assert_uint_eq(began[i], i == 1 ? 16 : 13); /* COMMIT let it begin 13 */
        ck_assert_uint_eq(viewed[i], 2);
    }
    close_members();
}
END_TEST

/* The leader dies when so much of its change is done; the others agree on 1 and 2. */
static void expect_survivors(uint64_t number) {
    kill_member(0);
    all_lose(0);
    all_lose(3);
    lose_letters();
    pass(4);
    expect_epoch(1, number, 2);
    expect_same(1, 2);
    expect_rounds_until(1, began[1] < 64 ? began[1] + 64 : began[1]);
    close_members();
}

START_TEST(the_leader_dies_before_prepare) {
    open_members(4);
    kill_member(3);
    all_lose(3);
    expect_survivors(2);
}
END_TEST

START_TEST(the_leader_dies_after_prepare) {
    begin_change();
    arrive(SL_MEMBERSHIP_PREPARE, EVERYBODY);
    expect_survivors(2);
}
END_TEST

START_TEST(the_leader_dies_after_accept_to_one) {
    propose_change();
    arrive(SL_MEMBERSHIP_ACCEPT, 1);
    expect_survivors(2); /* rank 2 has not accepted: it cannot hold */
}
END_TEST

START_TEST(the_leader_dies_after_accept_to_all) {
    propose_change();
    arrive(SL_MEMBERSHIP_ACCEPT, EVERYBODY);
    expect_survivors(3); /* what both have accepted may hold: it becomes epoch 2 */
}
END_TEST

static void commit_to(uint32_t rank) {
    propose_change();
    arrive(SL_MEMBERSHIP_ACCEPT, EVERYBODY);
    arrive(SL_MEMBERSHIP_ACCEPTED, 0);
    if (rank < HERE)
        arrive(SL_MEMBERSHIP_COMMIT, rank);
}

START_TEST(the_leader_dies_after_commit_to_none) {
    commit_to(HERE);
    expect_survivors(3);
}
END_TEST

START_TEST(the_leader_dies_after_commit_to_one) {
    commit_to(2);
    expect_epoch(2, 2, 3);
    expect_survivors(3);
}
END_TEST

START_TEST(a_promise_that_never_hears_commit) {
    commit_to(2);
    lose_letters();
    expect_rounds_until(1, 12);
    now_s += 2;
    tick(); /* its own NEWS say that it is behind */
    arrive(SL_MEMBERSHIP_NEWS, EVERYBODY);
    ck_assert_int_gt(arrive(SL_MEMBERSHIP_COMMIT, 1), 0);
    expect_epoch(1, 2, 3);
    ck_assert_uint_eq(began[1], 13);
    close_members();
}
END_TEST

START_TEST(two_leaders) {
    begin_change();
    lost(1, 0); /* it cannot reach the leader, which lives */
    lost(2, 0);
    tick();
    tick();
    arrive(SL_MEMBERSHIP_PREPARE, 1); /* of 0: rank 1 leads itself, with a higher ballot */
    ck_assert_int_gt(arrive(SL_MEMBERSHIP_REFUSE, 0) + arrive(SL_MEMBERSHIP_ANSWER, 0), 0);
    meet(0, 1);
    meet(0, 2);
    pass(8);
    expect_same(0, 1);
    expect_same(0, 2);
    ck_assert_uint_eq(sl_membership_epoch(members[0])->count, 3);
    close_members();
}
END_TEST

/* PREPARE of rank 1 reaches rank 2 between rank 0's PREPARE and ACCEPT. */
START_TEST(a_leader_that_is_overtaken_is_told) {
    const sl_membership_message prepare = {.type = SL_MEMBERSHIP_PREPARE,
                                           .from = 1,
                                           .incarnation = 1,
                                           .number = 1,
                                           .hash = sl_epoch_hash(first_of(4)),
                                           .ballot = {9, 1}};
    propose_change();
    step(2, (sl_membership_event){.type = SL_MEMBERSHIP_MESSAGE, .message = &prepare});
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_ACCEPT, 2), 1);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_REFUSE, 0), 1);
    for (int k = 0; k < 18; k++) { /* it leaves it to rank 1, for 2 s */
        now_s += 0.1;
        tick();
        ck_assert_int_eq(arrive(SL_MEMBERSHIP_PREPARE, 2), 0);
        lose_letters();
    }
    close_members();
}
END_TEST

/* Three leaders in turn, and one member that they reach. */
START_TEST(leaders_that_reach_one_member_agree) {
    open_members(4);
    cut_off(0, 1);
    cut_off(0, 2);
    cut_off(1, 2);
    pass(12);
    for (uint32_t i = 0; i < 4; i++)
        expect_same(i, 3);
    ck_assert_uint_eq(sl_membership_epoch(members[3])->count, 4);
    close_members();
}
END_TEST

START_TEST(a_suspect_that_answers_stays) {
    open_members(4);
    lost(1, 3);
    pass(0.3); /* rank 0 asks all, and 3 answers: only the edge is broken */
    for (uint32_t i = 0; i < 4; i++) {
        expect_epoch(i, 2, 4);
        ck_assert(sl_epoch_is_broken(sl_membership_epoch(members[i]), 1, 3));
    }
    meet(1, 3);
    pass(1);
    for (uint32_t i = 0; i < 4; i++) {
        expect_epoch(i, 3, 4);
        ck_assert_uint_eq(sl_membership_epoch(members[i])->broken_count, 0);
    }
    close_members();
}
END_TEST

START_TEST(a_suspect_that_is_back_changes_nothing) {
    begin_change();
    start(3, first_of(4), 9);
    for (uint32_t i = 0; i < 3; i++)
        meet(i, 3);
    arrive(SL_MEMBERSHIP_PREPARE, EVERYBODY);
    expect_rounds_until(1, 12);
    arrive(SL_MEMBERSHIP_ANSWER, 0);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_RELEASE, EVERYBODY), 3);
    ck_assert_uint_eq(began[1], 13);
    expect_epoch(0, 1, 4);
    close_members();
}
END_TEST

/* Nodes do without it until a view. So there is one, of the same members. */
START_TEST(a_suspect_that_is_folded_gets_an_epoch) {
    open_members(4);
    lost(1, 3);
    lose_letters();
    step(1, (sl_membership_event){.type = SL_MEMBERSHIP_REACHED, .peer = 3, .folded = true});
    pass(1);
    for (uint32_t i = 0; i < 4; i++) {
        expect_epoch(i, 2, 4);
        expect_same(i, 0);
        for (int k = 0; k < 8; k++)
            ready(i);
        ck_assert_uint_eq(viewed[i], 2);
    }
    pass(3);
    expect_epoch(0, 2, 4);
    close_members();
}
END_TEST

/* Its node does without whom it reaches again until the next epoch, which comes for that. */
START_TEST(who_has_folded_somebody_trains_no_further_alone) {
    open_members(4);
    lost(3, 0);
    lose_letters();
    expect_rounds_until(3, 12);
    step(3, (sl_membership_event){.type = SL_MEMBERSHIP_REACHED, .peer = 0, .folded = true});
    expect_rounds_until(3, 12);
    pass(3);
    expect_epoch(3, 2, 4);
    expect_rounds_until(3, began[3] + 64);
    close_members();
}
END_TEST

START_TEST(who_has_lost_somebody_trains_no_further_alone) {
    open_members(4);
    lost(3, 0);
    lose_letters();
    expect_rounds_until(3, 12);
    meet(0, 3);
    expect_rounds_until(3, 13 + 64); /* nothing has kept it but the loss */
    close_members();
}
END_TEST

START_TEST(two_die_in_one_round) {
    open_members(4);
    kill_member(2);
    kill_member(3);
    all_lose(3);
    lost(1, 2); /* rank 0 has not noticed, and waits for 2 */
    pass(2);
    expect_epoch(0, 1, 4);
    lost(0, 2);
    pass(0.3);
    expect_epoch(0, 2, 2);
    expect_same(0, 1);
    close_members();
}
END_TEST

START_TEST(a_view_of_one) {
    open_members(2);
    kill_member(1);
    lost(0, 1);
    pass(2);
    expect_epoch(0, 2, 1);
    expect_rounds_until(0, 10 + 64);
    close_members();
}
END_TEST

/* Rank 3 was stopped, and wakes up when the others have agreed. */
static void wake_up_dropped(void) {
    commit_to(HERE);
    arrive(SL_MEMBERSHIP_COMMIT, EVERYBODY);
    start(3, first_of(4), 9);
    for (uint32_t i = 0; i < 3; i++)
        meet(i, 3);
}

START_TEST(who_is_left_out_by_most_is_dropped) {
    wake_up_dropped();
    pass(0.3);
    ck_assert(update[3].dropped);
    ck_assert_ptr_null(sl_membership_epoch(members[3]));
    step(3, (sl_membership_event){.type = SL_MEMBERSHIP_JOIN, .peer = 0});
    pass(2);
    expect_epoch(3, 3, 4);
    close_members();
}
END_TEST

/* Takes such a letter to that rank out of the post; NULL: there is none. */
static letter *take(sl_membership_type type, uint32_t to) {
    for (int i = 0; i < count; i++) {
        letter *l = waiting[i].letter;
        if (l == NULL || l->message.type != type || waiting[i].to != to)
            continue;
        waiting[i].letter = NULL;
        return l;
    }
    return NULL;
}

/* The leader dies, and the next one finds an epoch that has it, accepted by all whom it knows. */
START_TEST(who_is_dropped_after_its_answer_is_asked_again) {
    wake_up_dropped();
    arrive(SL_MEMBERSHIP_NEWS, EVERYBODY);
    letter *commit = take(SL_MEMBERSHIP_COMMIT, 3);
    while (arrive(SL_MEMBERSHIP_PREPARE, 3) == 0) {
        now_s += 0.1;
        tick();
    }
    arrive(SL_MEMBERSHIP_PREPARE, EVERYBODY);
    deliver(3, commit);
    free(commit);
    ck_assert(update[3].dropped);
    arrive(SL_MEMBERSHIP_ANSWER, 0);
    arrive(SL_MEMBERSHIP_ACCEPT, EVERYBODY);
    kill_member(0);
    lose_letters();
    all_lose(0);
    pass(4);
    expect_epoch(1, 3, 2);
    expect_same(1, 2);
    close_members();
}
END_TEST

/* It led, and hears that the others have gone on without it: nobody is bound by its ballot. */
START_TEST(who_is_dropped_as_it_leads_releases) {
    open_members(4);
    const uint64_t first = sl_epoch_hash(first_of(4));
    const sl_epoch_side side = {first, 12};
    const sl_decision d = {.ballot = {4, 0},
                           .epoch = {.number = 2, .round = 13, .members = all, .count = 3},
                           .sides = &side,
                           .side_count = 1};
    const sl_membership_message prepare = {.type = SL_MEMBERSHIP_PREPARE,
                                           .from = 3,
                                           .incarnation = 1,
                                           .number = 1,
                                           .hash = first,
                                           .ballot = {5, 3}};
    const sl_membership_message commit = {.type = SL_MEMBERSHIP_COMMIT,
                                          .from = 0,
                                          .incarnation = 1,
                                          .number = 2,
                                          .hash = sl_epoch_hash(&d.epoch),
                                          .decision = &d};
    step(1, (sl_membership_event){.type = SL_MEMBERSHIP_MESSAGE, .message = &prepare});
    expect_rounds_until(1, 12);
    step(3, (sl_membership_event){.type = SL_MEMBERSHIP_MESSAGE, .message = &commit});
    ck_assert(update[3].dropped);
    lose_letters();
    now_s += SL_NEWS_S;
    tick();
    arrive(SL_MEMBERSHIP_NEWS, 3);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_RELEASE, 1), 1);
    expect_rounds_until(1, 12 + 64 + 1);
    close_members();
}
END_TEST

START_TEST(messages_of_old_epochs_change_nothing) {
    propose_change();
    letter *old[WAITING]; /* ACCEPT and ANSWER of what is about to be decided */
    uint32_t to[WAITING];
    int many = 0;
    for (int i = 0; i < count; i++)
        if (waiting[i].letter != NULL) {
            to[many] = waiting[i].to;
            old[many++] = letter_copy(&waiting[i].letter->message);
        }
    ck_assert_int_gt(many, 0);
    pass(1);
    expect_epoch(1, 2, 3);
    const uint64_t hash = sl_epoch_hash(sl_membership_epoch(members[1]));
    for (int i = 0; i < many; i++) {
        deliver(to[i], old[i]);
        free(old[i]);
    }
    lose_letters();
    pass(2);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_uint_eq(sl_epoch_hash(sl_membership_epoch(members[i])), hash);
    expect_rounds_until(1, began[1] + 64);
    close_members();
}
END_TEST

START_TEST(a_leaver_ends_its_rounds) {
    open_members(3);
    step(1, (sl_membership_event){.type = SL_MEMBERSHIP_LEAVE});
    pass(1);
    expect_epoch(0, 2, 2);
    expect_same(0, 2);
    const uint64_t first = sl_membership_epoch(members[0])->round;
    ck_assert(!update[1].left);
    expect_rounds_until(1, first - 1);
    ck_assert(update[1].left);
    close_members();
}
END_TEST

START_TEST(a_leaver_waits_for_so_long) {
    open_members(3);
    step(1, (sl_membership_event){.type = SL_MEMBERSHIP_LEAVE});
    lose_letters();
    now_s += SL_LEAVE_S - 0.5;
    tick();
    ck_assert(!update[1].left);
    now_s += 1;
    tick();
    ck_assert(update[1].left && !update[1].nobody_stays);
    close_members();
}
END_TEST

START_TEST(who_steps_aside_is_dropped_and_joins) {
    open_members(3);
    step(1, (sl_membership_event){.type = SL_MEMBERSHIP_ASIDE});
    ck_assert(!update[1].dropped && !update[1].diverged);
    pass(1);
    expect_epoch(0, 2, 2);
    expect_same(0, 2);
    ck_assert_ptr_null(sl_membership_epoch(members[1])); /* it owes no round */
    step(1, (sl_membership_event){.type = SL_MEMBERSHIP_JOIN, .peer = 2});
    pass(2);
    expect_epoch(0, 3, 3);
    expect_same(0, 1);
    ck_assert(!sl_membership_is_aside(members[0], 1, 3));
    close_members();
}
END_TEST

START_TEST(most_step_aside) {
    open_members(3);
    step(1, (sl_membership_event){.type = SL_MEMBERSHIP_ASIDE});
    step(2, (sl_membership_event){.type = SL_MEMBERSHIP_ASIDE});
    ck_assert(!update[1].diverged);
    pass(1);
    ck_assert(update[1].diverged && !update[0].diverged);
    close_members();
}
END_TEST

START_TEST(all_leave_after_one_round) {
    open_members(3);
    for (uint32_t i = 0; i < 3; i++)
        step(i, (sl_membership_event){.type = SL_MEMBERSHIP_LEAVE});
    ready(2); /* it is ahead */
    pass(4);
    for (uint32_t i = 0; i < 3; i++) {
        while (!update[i].left)
            ready(i);
        ck_assert(update[i].nobody_stays);
        ck_assert_uint_eq(began[i], began[0]);
    }
    close_members();
}
END_TEST

/* Neither 0 nor 3 could agree on an epoch with the other. */
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
        expect_epoch(i, 2, 4);
    close_members();
}
END_TEST

/* It hears of those who reach 0 with their answers. */
START_TEST(a_leader_that_reaches_fewer_yields) {
    open_members(4);
    for (uint32_t i = 2; i < 4; i++) {
        meet(i, 0);
        meet(i, 1);
    }
    lose_letters();
    lost(1, 0);
    tick();
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_PREPARE, 2), 1);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_PREPARE, 3), 1);
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_ANSWER, 1), 2);
    now_s += SL_ANSWER_S + 0.1;
    step(1, (sl_membership_event){.type = SL_MEMBERSHIP_TICK});
    ck_assert_int_eq(arrive(SL_MEMBERSHIP_RELEASE, EVERYBODY), 2);
    for (uint32_t i = 0; i < 4; i++)
        expect_epoch(i, 1, 4);
    close_members();
}
END_TEST

START_TEST(damaged_messages_are_refused) {
    open_members(2);
    const sl_member wrong[] = {{1, 1}, {0, 1}};
    const uint32_t far = HERE;
    const sl_decision d = {.epoch = {.number = 9, .round = 99, .members = wrong, .count = 2}};
    const sl_membership_message messages[] = {
        {.type = SL_MEMBERSHIP_COMMIT, .from = 1, .incarnation = 1, .decision = &d},
        {.type = SL_MEMBERSHIP_COMMIT, .from = 1, .incarnation = 1},
        {.type = SL_MEMBERSHIP_ACCEPT, .from = 1, .incarnation = 1},
        {.type = SL_MEMBERSHIP_NEWS, .from = HERE, .incarnation = 1},
        {.type = SL_MEMBERSHIP_NEWS, .from = 0, .incarnation = 1},
        {.type = SL_MEMBERSHIP_NEWS, .from = 1, .incarnation = 1, .sponsor = HERE},
        {.type = SL_MEMBERSHIP_NEWS, .from = 1, .unreachable = &far, .unreachable_count = 1},
        {.type = SL_MEMBERSHIP_NEWS, .from = 1, .reached = &far, .reached_count = 1},
    };
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        step(0, (sl_membership_event){.type = SL_MEMBERSHIP_MESSAGE, .message = &messages[i]});
        expect_epoch(0, 1, 2);
    }
    close_members();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("membership trace");
    ADD_TESTS_WITH(suite, "leaders", forget_updates, NULL, a_loss_becomes_an_epoch,
                   the_leader_dies_before_prepare, the_leader_dies_after_prepare,
                   the_leader_dies_after_accept_to_one, the_leader_dies_after_accept_to_all,
                   the_leader_dies_after_commit_to_none, the_leader_dies_after_commit_to_one,
                   a_promise_that_never_hears_commit, two_leaders,
                   a_leader_that_is_overtaken_is_told, leaders_that_reach_one_member_agree,
                   who_reaches_most_leads, a_leader_that_reaches_fewer_yields);
    ADD_TESTS_WITH(suite, "members", forget_updates, NULL, a_suspect_that_answers_stays,
                   a_suspect_that_is_back_changes_nothing, a_suspect_that_is_folded_gets_an_epoch,
                   who_has_folded_somebody_trains_no_further_alone,
                   who_has_lost_somebody_trains_no_further_alone, two_die_in_one_round,
                   a_view_of_one, who_is_left_out_by_most_is_dropped,
                   who_is_dropped_after_its_answer_is_asked_again,
                   who_is_dropped_as_it_leads_releases, messages_of_old_epochs_change_nothing,
                   damaged_messages_are_refused);
    ADD_TESTS_WITH(suite, "go", forget_updates, NULL, a_leaver_ends_its_rounds,
                   a_leaver_waits_for_so_long, all_leave_after_one_round,
                   who_steps_aside_is_dropped_and_joins, most_step_aside);
    return run_suite(suite);
}
