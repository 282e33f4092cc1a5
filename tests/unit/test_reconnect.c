/* test_reconnect.c - transcripts: the connection between a real agent and its peer breaks, and the
 * peer comes back (docs/reliability.md). The agent's numbers are 1, 2, 2.5 and 2.75 whatever
 * happens. tests/world/fault_world.c has breaks at any moment. */
#include "frame_peer.h"

static bool is_direct;

static void send_data(peer *p, uint64_t exchange) {
    static const float values[D] = {3, 3, 3, 3, 3, 3, 3, 3};
    if (is_direct)
        send_direct(p, exchange, values);
    else
        peer_send_value(p, exchange, 3);
}

static void start(peer *p) {
    agent_stands = (sl_standing){0};
    attempt = 0;
    peer_come(p, 1, 0, 0);
    peer_say_view(p);
    ck_assert(poll_until(p, NULL, 2)); /* HELLO, and the first round's part */
}

static void check_values(uint32_t from) {
    static const float values[ROUNDS] = {1, 2, 2.5f};
    for (uint32_t i = from; i < data_come; i++)
        ck_assert_float_eq(values_come[i], values[i]);
}

/* The rest of the run, from an exchange on. */
static void finish(peer *p, uint64_t exchange) {
    for (; exchange <= ROUNDS; exchange++)
        send_data(p, exchange);
    peer_take_data(p, ROUNDS);
    check_values(0);
    peer_say_bye(p);
}

/* Nothing is copied there: a part is overwritten when it is known to have come. */
static void lose_what_was_sent_from_a_gpu(peer *p) {
    start(p);
    frames_come = data_come = 0;
    send_data(p, 1);
    ck_assert_uint_eq(p->frames, 2); /* no second part: the first has not come */
    peer_close(p);
    peer_come(p, 1, 0, 0);
    ck_assert(poll_until(p, NULL, 2));
    ck_assert_uint_eq(data_come, 1);
    finish(p, 2);
}

START_TEST(a_gpu_sends_again_what_did_not_come) {
    is_direct = true;
    meet_direct(lose_what_was_sent_from_a_gpu);
    is_direct = false; /* the next test may run in this process */
    expect_well_ended(2.75f);
}

static void send_of_no_view(peer *p) {
    uint8_t frame[SL_FRAME_HEADER_BYTES];
    start(p);
    sl_frame data = {.type = SL_FRAME_DATA, .view = 9, .exchange = 1, .silent = true, .credit = 8};
    sl_frame_encode(&data, frame);
    peer_send_both(p, frame, sizeof frame, NULL, 0);
    ck_assert(poll_until(p, &p->down, 0));
    peer_close(p);
    peer_come(p, 1, 1, 1);
    ck_assert(poll_until(p, NULL, 1));
    ck_assert_uint_eq(agent_stands.received, 0); /* that frame does not count */
    finish(p, 1);
}

/* The agent does not know yet that the first connection is of no use. */
static void replace_a_connection(peer *p) {
    peer half_open, late;
    start(&half_open);
    peer_come(p, 1, 1, 1);
    ck_assert(poll_until(&half_open, &half_open.down, 0));
    attempt = 1;
    peer_come(&late, 1, 1, 1); /* attempt 2 again, which was overtaken */
    ck_assert(poll_until(&late, &late.down, 0));
    ck_assert(!p->down);
    peer_close(&late);
    peer_close(&half_open);
    finish(p, 1);
}

static void check_refused(peer *p, const char *why) {
    ck_assert(poll_until(p, NULL, 1));
    peer_expect_abort(p, why);
    peer_close(p);
}

static void be_another_process(peer *p) {
    start(p);
    peer_close(p);
    peer_come(p, 2, 0, 0);
    check_refused(p,
                  "agent 1 was started anew; agents that trained with the process before cannot");
    agent_stands.incarnation++;
    peer_come(p, 1, 1, 1);
    check_refused(p, "agent 0 was started anew; agent 1 trained with the process before");
    agent_stands.incarnation--;
    peer_come(p, 1, 2, 2);
    check_refused(p, "agent 1 says that 2 frames came to it; 0 to 1 can have come");
    peer_come(p, 1, 1, 1);
    finish(p, 1);
}

/* ---- each of these ends well ---- */

static const meeting breaks[] = {replace_a_connection, be_another_process, send_of_no_view};

START_LOOP_TEST(a_run_goes_on_behind_a_break, sizeof breaks / sizeof *breaks) {
    meet(breaks[_i]);
    expect_well_ended(2.75f);
}

int main(void) {
    reconnect_s = 60;
    return run_tests("reconnect");
}
