/* test_reconnect.c - transcripts: the connection between a real agent and its peer breaks, and the
 * peer comes back (docs/reliability.md). The agent's numbers are 1, 2, 2.5 and 2.75 whatever
 * happens. tests/world/fault_world.c has breaks at any moment. */
#include "frame_peer.h"

static bool is_direct;
static uint64_t attempt;

static void send_data(peer *p, uint64_t exchange) {
    static const float values[D] = {3, 3, 3, 3, 3, 3, 3, 3};
    if (is_direct)
        send_direct(p, exchange, values);
    else
        peer_send_frame(p, SL_FRAME_DATA, exchange, values, sizeof values);
}

static void say_bye(peer *p) {
    peer_send_frame(p, SL_FRAME_BYE, ROUNDS, NULL, 0);
}

/* Says HELLO as who has got so many of the agent's frames. */
static void say_hello(peer *p, uint64_t incarnation, uint32_t received) {
    sl_hello hello = own_hello(is_direct);
    hello.standing = (sl_standing){.incarnation = incarnation,
                                   .knows = agent_stands.incarnation,
                                   .trains = agent_stands.incarnation != 0,
                                   .attempt = ++attempt,
                                   .credit = received + WINDOW,
                                   .received = received,
                                   .received_data = received};
    frames_come = data_come = received;
    peer_say(p, &hello);
}

/* Connects, and says so. */
static void come(peer *p, uint64_t incarnation, uint32_t received) {
    *p = (peer){0};
    greet_properly(p);
    say_hello(p, incarnation, received);
}

static void start(peer *p) {
    agent_stands = (sl_standing){0};
    attempt = 0;
    come(p, 1, 0);
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
    say_bye(p);
}

static void check_end(void) {
    ck_assert_msg(agent_result == 0, "%s", agent_text);
    ck_assert_float_eq_tol(last_model[0], 2.75f, 1e-6f);
}

/* Nothing is copied there: a part is overwritten when it is known to have come. */
static void lose_what_was_sent_from_a_gpu(peer *p) {
    start(p);
    frames_come = data_come = 0;
    send_data(p, 1);
    ck_assert_uint_eq(p->frames, 2); /* no second part: the first has not come */
    peer_close(p);
    come(p, 1, 0);
    ck_assert(poll_until(p, NULL, 2));
    ck_assert_uint_eq(data_come, 1);
    finish(p, 2);
}

START_TEST(a_gpu_sends_again_what_did_not_come) {
    is_direct = true;
    meet_direct(lose_what_was_sent_from_a_gpu);
    is_direct = false; /* the next test may run in this process */
    check_end();
}

static void send_of_no_view(peer *p) {
    uint8_t frame[SL_FRAME_HEADER_BYTES];
    start(p);
    sl_frame data = {.type = SL_FRAME_DATA, .view = 9, .exchange = 1, .silent = true, .credit = 8};
    sl_frame_encode(&data, frame);
    peer_send(p, frame, sizeof frame);
    ck_assert(poll_until(p, &p->down, 0));
    peer_close(p);
    come(p, 1, 1);
    ck_assert(poll_until(p, NULL, 1));
    ck_assert_uint_eq(agent_stands.received, 0); /* that frame does not count */
    finish(p, 1);
}

/* The agent does not know yet that the first connection is of no use. */
static void replace_a_connection(peer *p) {
    peer half_open, late;
    start(&half_open);
    come(p, 1, 1);
    ck_assert(poll_until(&half_open, &half_open.down, 0));
    attempt = 1;
    come(&late, 1, 1); /* attempt 2 again, which was overtaken */
    ck_assert(poll_until(&late, &late.down, 0));
    ck_assert(!p->down);
    peer_close(&late);
    peer_close(&half_open);
    finish(p, 1);
}

static void check_refused(peer *p, const char *why) {
    sl_frame frame;
    ck_assert(poll_until(p, NULL, 1));
    ck_assert_ptr_null(sl_frame_decode(&frame, p->last, p->last_bytes, sizeof p->last, false));
    ck_assert_int_eq(frame.type, SL_FRAME_ABORT);
    p->last[p->last_bytes] = '\0';
    ck_assert_msg(strstr((char *)p->last + SL_FRAME_HEADER_BYTES, why) != NULL, "%s",
                  p->last + SL_FRAME_HEADER_BYTES);
    peer_close(p);
}

static void be_another_process(peer *p) {
    start(p);
    peer_close(p);
    come(p, 2, 0);
    check_refused(p,
                  "agent 1 was started anew; agents that trained with the process before cannot");
    agent_stands.incarnation++;
    come(p, 1, 1);
    check_refused(p, "agent 0 was started anew; agent 1 trained with the process before");
    agent_stands.incarnation--;
    come(p, 1, 2);
    check_refused(p, "agent 1 says that 2 frames came to it; 0 to 1 can have come");
    come(p, 1, 1);
    finish(p, 1);
}

/* ---- each of these ends well ---- */

static const meeting breaks[] = {replace_a_connection, be_another_process, send_of_no_view};

START_LOOP_TEST(a_run_goes_on_behind_a_break, sizeof breaks / sizeof *breaks) {
    meet(breaks[_i]);
    check_end();
}

int main(void) {
    reconnect_s = 60;
    return run_tests("reconnect");
}
