/* test_verdicts.c - one real agent that goes on without a lost peer, against a peer that is
 * accepted, and sends what makes no sense: that costs the peer its place, and nobody the run. */
#include "frame_peer.h"

/* The agent ends the connection, and its last frame says why. */
static void expect_why(peer *p, const char *why) {
    sl_frame frame;
    char text[SL_FRAME_TEXT_MAX + 1] = "";
    ck_assert(poll_until(p, &p->down, 0));
    ck_assert_ptr_null(sl_frame_decode(&frame, p->last, p->last_bytes, PART_BYTES, false));
    ck_assert_int_eq(frame.type, SL_FRAME_ABORT);
    memcpy(text, p->last + SL_FRAME_HEADER_BYTES, frame.payload_bytes);
    ck_assert_msg(strstr(text, why) != NULL, "%s", text);
}

static void send_too_little(peer *p) {
    peer_begin(p);
    const float values[D - 1] = {3};
    peer_send_frame(p, SL_FRAME_DATA, 1, values, sizeof values);
    expect_why(p, "no identity payload");
}

static void come_again(peer *p) {
    atomic_store(&gradient_waits, true);
    send_too_little(p);
    peer_close(p);
    *p = (peer){0};
    greet_properly(p);
    sl_hello hello = own_hello(false);
    hello.standing.attempt = 2;
    peer_say(p, &hello);
    expect_why(p, "makes no sense");
    atomic_store(&gradient_waits, false);
}

START_TEST(its_process_is_not_taken_back) {
    on_loss = "membership.on_loss=continue";
    meet(come_again);
    ck_assert_msg(agent_result == 0, "%s", agent_text);
}

static void send_a_huge_part(peer *p) {
    peer_begin(p);
    const float values[D] = {1e6f};
    peer_send_frame(p, SL_FRAME_DATA, 1, values, sizeof values);
    expect_why(p, "has a norm of 1e+06, over 100 times the own part's (transport.norm_limit)");
}

START_TEST(an_absurd_norm_costs_its_sender_its_place) {
    on_loss = "membership.on_loss=continue";
    norm_limit = "transport.norm_limit=100";
    meet(send_a_huge_part);
    ck_assert_msg(agent_result == 0, "%s", agent_text);
    ck_assert_float_eq(last_model[0], 1);
}

/* It is needed still, and sends nothing more: it counts as lost, and its connection is whole. */
static void say_bye_early(peer *p) {
    sl_frame last = {0};
    peer_begin(p);
    peer_send_frame(p, SL_FRAME_BYE, 0, NULL, 0);
    do
        ck_assert_ptr_null(sl_frame_decode(&last, p->last, p->last_bytes, PART_BYTES, false));
    while (last.type != SL_FRAME_BYE && poll_until(p, NULL, p->frames + 1));
    ck_assert_int_eq(last.type, SL_FRAME_BYE);
}

START_TEST(a_peer_that_says_bye_early_hears_bye) {
    on_loss = "membership.on_loss=continue";
    norm_limit = "transport.norm_limit=0";
    meet(say_bye_early);
    ck_assert_msg(agent_result == 0, "%s", agent_text);
}

int main(void) {
    timeout_s = 30; /* none of them is silent */
    return run_tests("verdicts");
}
