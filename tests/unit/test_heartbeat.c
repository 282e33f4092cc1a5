/* test_heartbeat.c - what an agent says of its wait, and what it makes of its neighbour's words. */
#include "frame_peer.h"

static void say(peer *p, uint32_t waits_for, sl_agent_view root) {
    uint8_t payload[SL_HEARTBEAT_BYTES];
    const sl_heartbeat h = {{1, SL_AGENT_COMPUTES, 1, 41}, waits_for, root};
    sl_heartbeat_encode(&h, payload);
    peer_send_frame(p, SL_FRAME_HEARTBEAT, 0, payload, sizeof payload);
}

/* ---- what it makes of words ---- */

static sl_agent_progress progress; /* when last seen */

static bool seen(sl_agent_doing doing) {
    progress = sl_agent_progress_read(agent);
    return progress.waits && progress.root.doing == doing;
}

/* Says so, again and again, until the agent has seen that, and has said so itself. */
static void compute(peer *p) {
    peer_begin(p);
    agent_says = (sl_heartbeat){0};
    while (!p->down && !(seen(SL_AGENT_COMPUTES) && agent_says.root.rank == 1))
        say(p, 1, (sl_agent_view){1, SL_AGENT_COMPUTES, 1, 41});
    sl_agent_stop(agent);
}

START_TEST(who_is_waited_for_and_waits_for_nobody_is_the_root) {
    meet(compute);
    ck_assert(progress.waits);
    ck_assert_uint_eq(progress.root.rank, 1);
    ck_assert_int_eq(progress.root.doing, SL_AGENT_COMPUTES);
    ck_assert_uint_eq(progress.root.round, 1);
    ck_assert_double_ge(progress.root.still_s, 41);
    ck_assert_int_eq(progress.own.doing, SL_AGENT_EXCHANGES);
    ck_assert_ptr_nonnull(
        strstr(progress.waits_for,
               "edge 1->0, round 1: part 0 of 1 has not come; agent 1 computes round 1 since 4"));
    ck_assert_uint_eq(agent_says.waits_for, 1);
    ck_assert_int_eq(agent_says.root.doing, SL_AGENT_COMPUTES);
    ck_assert_int_eq(agent_says.own.doing, SL_AGENT_EXCHANGES);
    ck_assert_uint_eq(agent_says.own.round, 1);
}

/* ---- what it is told ---- */

/* The rest is seconds. */
static void be_told(peer *p, const char *text) {
    for (int i = 0; i < 6000 && !p->down && !is_noticed(text); i++) {
        sl_fabric_poll(p->fabric);
        usleep(10000);
    }
    ck_assert_msg(is_noticed(text), "%s", notices);
    sl_agent_stop(agent);
}

static void send_nothing(peer *p) {
    peer_begin(p);
    be_told(p, "agent 1 has been silent for ");
}

/* All that it has to say comes. */
static void begin_and_take_nothing(peer *p) {
    credit = 0;
    peer_begin(p);
    peer_send_value(p, 1, 3);
}

static void take_nothing(peer *p) {
    begin_and_take_nothing(p);
    be_told(p, "waiting: edge 0->1, round 1: part 0 of 1 has not been taken");
    credit = 8;
}

static void take_nothing_for_too_long(peer *p) {
    begin_and_take_nothing(p);
    ck_assert(poll_until(p, NULL, 2)); /* HELLO, ABORT */
    credit = 8;
}

START_TEST(who_takes_nothing_ends_the_run_by_name) {
    round_timeout_s = 1;
    meet(take_nothing_for_too_long);
    round_timeout_s = 600;
    ck_assert_str_eq(agent_text, "edge 0->1, round 1: part 0 of 1 has not been taken in time");
    ck_assert_uint_eq(agent_error.rank, 0);
    ck_assert_uint_eq(agent_error.peer, 1);
}

static void go_away(peer *p) {
    peer_begin(p);
    sl_connection_close(&p->link);
    be_told(p, "waiting for agent 1 to come back: edge 1->0, round 1: agent 1 is gone");
}

static const struct {
    meeting behave;
    double reconnect_s;
    const char *words[3]; /* in its notices, beside those that the meeting waits for */
} waits[] = {
    {send_nothing,
     0,
     {" s left until its connection counts as broken (transport.timeout_s)\n",
      "waiting: edge 1->0, round 1: part 0 of 1 has not come; agent 1 is silent since ",
      " s left (transport.round_timeout_s); does "}},
    {take_nothing, 0, {" s left (transport.round_timeout_s); does "}},
    {go_away, 60, {" s left (transport.reconnect_s)\n"}},
};

START_LOOP_TEST(a_wait_is_told_with_its_deadlines, sizeof waits / sizeof *waits) {
    reconnect_s = waits[_i].reconnect_s;
    meet(waits[_i].behave);
    reconnect_s = 0;
    for (int k = 0; k < 3 && waits[_i].words[k] != NULL; k++)
        ck_assert_msg(strstr(notices, waits[_i].words[k]) != NULL, "%s", notices);
}

/* ---- what makes no sense ---- */

static const char *decoded(uint32_t waits_for, sl_agent_view root, size_t bytes) {
    uint8_t payload[SL_HEARTBEAT_BYTES];
    const sl_heartbeat h = {{1, SL_AGENT_COMPUTES, 1, 41}, waits_for, root};
    sl_heartbeat_encode(&h, payload);
    return sl_heartbeat_decode(&(sl_heartbeat){0}, payload, bytes, 1, 2);
}

START_TEST(words_that_make_no_sense_are_refused) {
    static const char no_sense[] = "HEARTBEAT with what no agent is, or does";
    const sl_agent_view root = {1, SL_AGENT_COMPUTES, 1, 41}, stranger = {.rank = 2},
                        idle = {1, SL_AGENT_AWAY + 1, 1, 41};
    ck_assert_ptr_null(decoded(1, root, SL_HEARTBEAT_BYTES));
    ck_assert_str_eq(decoded(1, root, SL_HEARTBEAT_BYTES / 2), "HEARTBEAT of the wrong length");
    ck_assert_str_eq(decoded(2, root, SL_HEARTBEAT_BYTES), no_sense);
    ck_assert_str_eq(decoded(1, stranger, SL_HEARTBEAT_BYTES), no_sense);
    ck_assert_str_eq(decoded(1, idle, SL_HEARTBEAT_BYTES), no_sense);
}

int main(void) {
    timeout_s = 60;
    return run_tests("heartbeat");
}
