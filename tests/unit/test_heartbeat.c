/* test_heartbeat.c - what an agent says of its wait, and what it makes of its neighbour's words. */
#include "frame_peer.h"

static void say(peer *p, uint32_t waits_for, sl_agent_view root) {
    uint8_t frame[1024], payload[SL_HEARTBEAT_BYTES];
    const sl_heartbeat h = {{1, SL_AGENT_COMPUTES, 1, 41}, waits_for, root};
    sl_heartbeat_encode(&h, payload);
    peer_send(p, frame, make_frame(frame, SL_FRAME_HEARTBEAT, 0, 0, payload, sizeof payload));
}

static bool seen(sl_agent_doing doing) {
    const sl_agent_progress progress = sl_agent_progress_read(agent);
    return progress.waits && progress.root.doing == doing;
}

/* Says so, again and again, until the agent has seen at the end of its wait who does this. */
static void say_until(peer *p, uint32_t waits_for, sl_agent_view root, sl_agent_doing doing) {
    greet_properly(p);
    peer_agree(p);
    for (int i = 0; i < 500 && !p->down && !seen(doing); i++)
        say(p, waits_for, root);
    for (int i = 0; i < 500 && !p->down && agent_says.waits_for != 1; i++)
        say(p, waits_for, root);
    sl_agent_stop(agent);
}

static void compute(peer *p) {
    say_until(p, 1, (sl_agent_view){1, SL_AGENT_COMPUTES, 1, 41}, SL_AGENT_COMPUTES);
}

START_TEST(who_is_waited_for_and_waits_for_nobody_is_the_root) {
    meet(compute);
    ck_assert(last_progress.waits);
    ck_assert_uint_eq(last_progress.root.rank, 1);
    ck_assert_int_eq(last_progress.root.doing, SL_AGENT_COMPUTES);
    ck_assert_uint_eq(last_progress.root.round, 1);
    ck_assert_double_ge(last_progress.root.still_s, 41);
    ck_assert_int_eq(last_progress.own.doing, SL_AGENT_EXCHANGES);
    ck_assert_double_lt(last_progress.own.still_s, 41);
    ck_assert_uint_eq(agent_says.waits_for, 1);
    ck_assert_uint_eq(agent_says.root.rank, 1);
    ck_assert_int_eq(agent_says.own.doing, SL_AGENT_EXCHANGES);
    ck_assert_uint_eq(agent_says.own.round, 1);
}
END_TEST

/* Until long after the agent has heard of it. */
static void wait_for_the_agent(peer *p) {
    greet_properly(p);
    peer_agree(p);
    agent_says = (sl_heartbeat){0};
    while (!p->down && agent_says.own.still_s < 1.5)
        say(p, 0, (sl_agent_view){0, SL_AGENT_COMPUTES, 1, 50});
    sl_agent_stop(agent);
}

START_TEST(words_that_lead_back_name_nobody) {
    meet(wait_for_the_agent);
    ck_assert_uint_eq(agent_says.waits_for, 1);
    ck_assert(!sl_heartbeat_knows_root(&agent_says));
    ck_assert(!last_progress.waits);
}
END_TEST

static void fall_silent(peer *p) {
    greet_properly(p);
    peer_agree(p);
}

START_TEST(who_says_nothing_is_silent) {
    meet(fall_silent);
    ck_assert_int_eq(agent_result, SL_EPEER);
    ck_assert_int_eq(last_progress.root.doing, SL_AGENT_SILENT);
    ck_assert_uint_eq(last_progress.root.rank, 1);
    ck_assert_double_ge(last_progress.root.still_s, 1);
}
END_TEST

static void stay_away(peer *p) {
    (void)p;
    for (int i = 0; i < 1000 && !seen(SL_AGENT_AWAY); i++)
        usleep(10000);
    sl_agent_stop(agent);
}

START_TEST(who_has_not_come_is_away) {
    meet(stay_away);
    ck_assert_int_eq(last_progress.own.doing, SL_AGENT_CONNECTS);
    ck_assert_int_eq(last_progress.root.doing, SL_AGENT_AWAY);
    ck_assert_uint_eq(last_progress.root.rank, 1);
}
END_TEST

static void say_half(peer *p) {
    uint8_t frame[1024];
    static const uint8_t payload[SL_HEARTBEAT_BYTES];
    greet_properly(p);
    peer_agree(p);
    peer_send(p, frame, make_frame(frame, SL_FRAME_HEARTBEAT, 0, 0, payload, sizeof payload / 2));
}

static void wait_for_a_stranger(peer *p) {
    greet_properly(p);
    peer_agree(p);
    say(p, 2, (sl_agent_view){1, SL_AGENT_COMPUTES, 1, 41});
}

static void do_what_nobody_does(peer *p) {
    greet_properly(p);
    peer_agree(p);
    say(p, 1, (sl_agent_view){1, SL_AGENT_AWAY + 1, 1, 41});
}

START_TEST(words_that_make_no_sense_are_refused) {
    meet(say_half);
    ck_assert_int_eq(agent_result, SL_EPROTO);
    ck_assert_ptr_nonnull(strstr(agent_text, "HEARTBEAT of the wrong length"));
    const meeting others[] = {wait_for_a_stranger, do_what_nobody_does};
    for (int i = 0; i < 2; i++) {
        meet(others[i]);
        ck_assert_int_eq(agent_result, SL_EPROTO);
        ck_assert_ptr_nonnull(strstr(agent_text, "HEARTBEAT with what no agent is, or does"));
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("heartbeat");
    ADD_TESTS(suite, "roots", who_is_waited_for_and_waits_for_nobody_is_the_root,
              words_that_lead_back_name_nobody, who_says_nothing_is_silent,
              who_has_not_come_is_away, words_that_make_no_sense_are_refused);
    return run_suite(suite);
}
