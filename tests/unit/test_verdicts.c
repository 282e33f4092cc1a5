/* test_verdicts.c - one real agent that goes on without a lost peer, against a peer that is
 * accepted, and sends what makes no sense: that costs the peer its place, and nobody the run. */
#include "frame_peer.h"

static void expect_why(peer *p, const char *why) {
    ck_assert(poll_until(p, &p->down, 0));
    peer_expect_abort(p, why);
}

static void send_too_little(peer *p) {
    peer_begin(p);
    const float values[D - 1] = {3};
    peer_send_frame(p, SL_FRAME_DATA, 1, values, sizeof values);
    expect_why(p, "no identity payload");
}

/* Its process is not taken back. */
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

static void send_a_huge_part(peer *p) {
    peer_begin(p);
    const float values[D] = {1e6f};
    peer_send_frame(p, SL_FRAME_DATA, 1, values, sizeof values);
    expect_why(p, "has a norm of 1e+06, over 100 times the own part's (transport.norm_limit)");
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

static const struct {
    meeting behave;
    double norm_limit;
    const char *more; /* of the algorithm */
} peers[] = {{come_again, 0, ""},
             {send_a_huge_part, 100, ""},
             {send_a_huge_part, 100, ", 'staleness': 1"},
             {say_bye_early, 0, ""}};

START_LOOP_TEST(who_makes_no_sense_is_lost_and_the_run_goes_on, sizeof peers / sizeof *peers) {
    on_loss = "continue";
    norm_limit = peers[_i].norm_limit;
    more_of_algorithm = peers[_i].more;
    timeout_s = 30; /* none of them is silent */
    meet(peers[_i].behave);
    expect_well_ended(1);
}
