/* test_agent.c - one real agent against a peer that does not behave, over real connections. A
 * broken connection is not connected anew here: see test_reconnect.c.
 */
#include <time.h>

#include "agent/peers/neighbour.h"
#include "frame_peer.h"

static void behave_well(peer *p) {
    greet_properly(p);
    peer_agree(p);
    uint8_t frame[1024];
    float values[D] = {3, 3, 3, 3, 3, 3, 3, 3};
    for (uint64_t round = 1; round <= ROUNDS; round++)
        peer_send(p, frame, make_frame(frame, SL_FRAME_DATA, round, 0, values, sizeof values));
    peer_take_data(p, ROUNDS);
    peer_send(p, frame, make_frame(frame, SL_FRAME_BYE, ROUNDS, 0, NULL, 0));
}

START_TEST(a_peer_that_behaves_is_averaged_with) {
    meet(behave_well);
    ck_assert_msg(agent_result == 0, "%s", agent_text);
    ck_assert_float_eq_tol(last_model[0], 2.75f, 1e-6f); /* 1, 2, 2.5, 2.75 */
}
END_TEST

static void corrupt_a_payload(peer *p) {
    greet_properly(p);
    peer_agree(p);
    uint8_t frame[1024];
    float values[D] = {3, 3, 3, 3, 3, 3, 3, 3};
    size_t bytes = make_frame(frame, SL_FRAME_DATA, 1, 0, values, sizeof values);
    frame[SL_FRAME_HEADER_BYTES + 5] ^= 1;
    peer_send(p, frame, bytes);
}

START_TEST(a_corrupted_frame_is_counted_dropped_with_its_connection_and_never_mixed) {
    meet(corrupt_a_payload);
    ck_assert_int_eq(agent_result, SL_EPROTO);
    ck_assert_str_eq(agent_text,
                     "edge 1->0, round 1: agent 1 sent a malformed frame: payload checksum "
                     "differs; its numbers were written while they were sent, or a link or a "
                     "memory is faulty");
    ck_assert_int_eq(agent_error.rank, 0);
    ck_assert_int_eq(agent_error.peer, 1);
    ck_assert_int_eq(agent_error.round, 1);
    ck_assert_uint_eq(counters.frames_corrupted, 1);
    ck_assert_float_eq(last_model[0], 1);
}
END_TEST

/* Its sum is wrong, and says nothing. */
static void send_unsummed(peer *p, uint64_t round, const float values[D]) {
    uint8_t frame[1024];
    sl_frame_encode(&(sl_frame){.type = SL_FRAME_DATA,
                                .unsummed = true,
                                .view = 1,
                                .exchange = round,
                                .credit = data_come + credit,
                                .received = frames_come,
                                .payload_bytes = D * sizeof *values,
                                .payload_sum = 1},
                    frame);
    memcpy(frame + SL_FRAME_HEADER_BYTES, values, D * sizeof *values);
    peer_send(p, frame, SL_FRAME_HEADER_BYTES + D * sizeof *values);
}

static void trust_the_link(peer *p) {
    greet_properly(p);
    peer_agree(p);
    uint8_t frame[1024];
    float values[D] = {3, 3, 3, 3, 3, 3, 3, 3};
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        peer_take_data(p, round);
        ck_assert_int_eq(unsummed_come, !checksums);
        send_unsummed(p, round, values);
    }
    peer_send(p, frame, make_frame(frame, SL_FRAME_BYE, ROUNDS, 0, NULL, 0));
}

/* What comes is taken as its sender says; what goes out, as the agent's own experiment says. */
START_TEST(each_agent_says_whether_what_it_sends_has_checksums) {
    for (int i = 0; i < 2; i++) {
        checksums = i == 0;
        meet(trust_the_link);
        ck_assert_msg(agent_result == 0, "%s", agent_text);
        ck_assert_float_eq_tol(last_model[0], 2.75f, 1e-6f); /* as above */
        ck_assert_uint_eq(counters.frames_corrupted, 0);
    }
    checksums = true;
}
END_TEST

static void send_too_much(peer *p) {
    greet_properly(p);
    peer_agree(p);
    uint8_t frame[2048];
    float values[2 * D] = {0};
    peer_send(p, frame, make_frame(frame, SL_FRAME_DATA, 1, 0, values, sizeof values));
}

START_TEST(a_payload_longer_than_the_layout_allows_is_refused) {
    meet(send_too_much);
    ck_assert_int_eq(agent_result, SL_EPROTO);
    ck_assert_ptr_nonnull(strstr(agent_text, "payload longer than its type allows"));
}
END_TEST

/* The agent keeps what comes before it can be mixed, and drops the rest: only what it keeps uses
 * the credit up. Its gradient takes until the last frame has come. */
static void send_beyond_credit(peer *p) {
    uint8_t frame[1024];
    float values[D] = {0};
    atomic_store(&gradient_waits, true);
    greet_properly(p);
    peer_agree(p);
    const size_t before = p->frames;
    for (uint64_t exchange = 1; exchange <= WINDOW + 1; exchange++)
        peer_send(p, frame, make_frame(frame, SL_FRAME_DATA, exchange, 0, values, sizeof values));
    ck_assert(poll_until(p, NULL, before + 1)); /* ABORT */
    atomic_store(&gradient_waits, false);
}

START_TEST(more_data_than_allowed_is_refused) {
    meet(send_beyond_credit);
    ck_assert_msg(strstr(agent_text, "data frames, more than the") != NULL, "%s", agent_text);
    ck_assert_int_eq(agent_result, SL_EPROTO);
}
END_TEST

static void behave_well_from_a_gpu(peer *p) {
    greet_properly(p);
    peer_agree(p);
    uint8_t bye[1024];
    static const float values[D] = {3, 3, 3, 3, 3, 3, 3, 3}, agents[ROUNDS] = {1, 2, 2.5f};
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        sl_frame frame;
        ck_assert(poll_until(p, NULL, 1 + round));
        ck_assert_ptr_null(sl_frame_decode(&frame, p->last, p->last_bytes, sizeof values, true));
        ck_assert_int_eq(frame.type, SL_FRAME_DIRECT);
        for (int i = 0; i < D; i++)
            ck_assert_mem_eq(p->last + SL_FRAME_DIRECT_AT + i * sizeof(float), &agents[round - 1],
                             sizeof(float));
        send_direct(p, round, values);
    }
    peer_send(p, bye, make_frame(bye, SL_FRAME_BYE, ROUNDS, 0, NULL, 0));
}

START_TEST(a_peer_that_sends_from_gpu_to_gpu_is_averaged_with) {
    meet_direct(behave_well_from_a_gpu);
    ck_assert_msg(agent_result == 0, "%s", agent_text);
    ck_assert_float_eq_tol(last_model[0], 2.75f, 1e-6f);
}
END_TEST

static void send_direct_to_the_host(peer *p) {
    greet_properly(p);
    peer_agree(p);
    send_direct(p, 1, (const float[D]){0});
}

static void send_through_the_host(peer *p) {
    uint8_t frame[1024];
    greet_properly(p);
    peer_agree(p);
    peer_send(p, frame, make_frame(frame, SL_FRAME_DATA, 1, 0, (const float[D]){0}, D * 4));
}

static void give_up_before_a_gpu(peer *p) {
    greet_properly(p);
    peer_agree(p);
    uint8_t frame[SL_FRAME_DIRECT_AT];
    static char longest[SL_FRAME_TEXT_MAX]; /* fills the host's piece of a buffer to its end */
    memset(longest, 'x', sizeof longest);
    peer_send(p, frame, make_frame(frame, SL_FRAME_ABORT, 1, 0, longest, sizeof longest));
}

START_TEST(payloads_come_the_agreed_way_only) {
    meet(send_direct_to_the_host);
    ck_assert_int_eq(agent_result, SL_EPROTO);
    ck_assert_ptr_nonnull(strstr(agent_text,
                                 "agent 1 sent a malformed frame: data between GPUs, where "
                                 "it goes through the host's memory"));
    meet_direct(send_through_the_host);
    ck_assert_int_eq(agent_result, SL_EPROTO);
    ck_assert_ptr_nonnull(strstr(agent_text,
                                 "agent 1 sent a malformed frame: data through the host's "
                                 "memory, where GPUs exchange theirs"));
    meet_direct(send_too_much);
    ck_assert_int_eq(agent_result, SL_EPROTO);
    meet_direct(give_up_before_a_gpu);
    ck_assert_int_eq(agent_result, SL_EPEER);
    ck_assert_ptr_nonnull(strstr(agent_text, "edge 1->0, round 1: agent 1 ended: xxxx"));
}
END_TEST

static void differ_in_way(peer *p) {
    greet_properly(p);
    sl_hello hello = own_hello(strcmp(experiment->device, "cpu") == 0);
    peer_say(p, &hello);
}

START_TEST(a_gpu_is_not_paired_with_a_host) {
    static const char refusal[] = "refused: the way of payloads (transport.gpu_direct; \"off\" for "
                                  "all suits any pair) of agents 1 and 0 differs";
    meet(differ_in_way);
    ck_assert_int_eq(agent_result, SL_EPEER);
    ck_assert_ptr_nonnull(strstr(agent_text, refusal));
    meet_direct(differ_in_way);
    ck_assert_int_eq(agent_result, SL_EPEER);
    ck_assert_ptr_nonnull(strstr(agent_text, refusal));
}
END_TEST

static void differ_in_topology(peer *p) {
    greet_properly(p);
    sl_hello hello = own_hello(false);
    hello.topology_hash++;
    peer_say(p, &hello);
}

static void differ_in_optimizer(peer *p) {
    greet_properly(p);
    sl_hello hello = own_hello(false);
    hello.sections[SL_SECTION_optimizer]++;
    peer_say(p, &hello);
}

START_TEST(a_difference_is_refused_with_its_name) {
    meet(differ_in_topology);
    ck_assert_int_eq(agent_result, SL_EPEER);
    ck_assert_ptr_nonnull(
        strstr(agent_text, "edge 1->0, round 0: refused: the topology of agents 1 and 0 differs"));
    meet(differ_in_optimizer);
    ck_assert_ptr_nonnull(strstr(agent_text, "the optimizer of agents 1 and 0 differs"));
}
END_TEST

/* Replicas, which are part of the algorithm, follow from it. */
START_TEST(what_a_loss_does_is_compared_and_named) {
    static const sl_side side = {.rank = 0, .hello = {.section_count = SL_SECTION_COUNT}};
    sl_hello theirs = side.hello;
    char text[SL_REFUSAL_MAX];
    ck_assert(!sl_hello_differs(&side, &theirs, 1, text));
    theirs.goes_on = true;
    ck_assert(sl_hello_differs(&side, &theirs, 1, text));
    ck_assert_ptr_nonnull(
        strstr(text, "membership.on_loss: \"stop\" here, \"continue\" at agent 1; \"auto\""));
    theirs.sections[SL_SECTION_algorithm]++;
    ck_assert(sl_hello_differs(&side, &theirs, 1, text));
    ck_assert_ptr_nonnull(strstr(text, "membership.on_loss: "));
    theirs.goes_on = false;
    ck_assert(sl_hello_differs(&side, &theirs, 1, text));
    ck_assert_ptr_nonnull(strstr(text, "the algorithm of agents 1 and 0 differs"));
}
END_TEST

/* By key, as far as both have said it; what may be default is not said. */
START_TEST(a_setting_that_differs_is_named_with_both_values) {
    static const char mine[] = "topology {\"nodes\":8}\noptimizer.learning_rate 0.125\n";
    static const char other[] = "optimizer.learning_rate 0.375\noptimizer.momentum 0.9\ntopology 1";
    sl_side side = {.rank = 0,
                    .hello = {.section_count = SL_SECTION_COUNT,
                              .settings = mine,
                              .settings_bytes = sizeof mine - 1}};
    sl_hello theirs = side.hello;
    char text[SL_REFUSAL_MAX];
    theirs.settings = other;
    theirs.settings_bytes = sizeof other - 1;
    theirs.sections[SL_SECTION_optimizer]++;
    ck_assert(sl_hello_differs(&side, &theirs, 3, text));
    ck_assert_str_eq(text, "optimizer.learning_rate: 0.125 here, 0.375 at agent 3");
    theirs.settings = "optimizer.learning_rate 0.125\noptimizer.momentum 0.9";
    theirs.settings_bytes = strlen(theirs.settings);
    ck_assert(sl_hello_differs(&side, &theirs, 3, text));
    ck_assert_str_eq(text, "optimizer.momentum: 0 here, 0.9 at agent 3");
    theirs.topology_hash++;
    theirs.settings = "topology \x01{\"nodes\":9}";
    theirs.settings_bytes = strlen(theirs.settings);
    ck_assert(sl_hello_differs(&side, &theirs, 3, text));
    ck_assert_str_eq(text, "topology: {\"nodes\":8} here, \\x01{\"nodes\":9} at agent 3");
    theirs.settings_bytes = 0;
    ck_assert(sl_hello_differs(&side, &theirs, 3, text));
    ck_assert_ptr_nonnull(strstr(text, "the topology of agents 3 and 0 differs"));
}
END_TEST

static void speak_before_agreeing(peer *p) {
    greet_properly(p);
    uint8_t frame[1024];
    float values[D] = {0};
    peer_send(p, frame, make_frame(frame, SL_FRAME_DATA, 1, 0, values, sizeof values));
}

static void abort_before_agreeing(peer *p) {
    greet_properly(p);
    uint8_t frame[1024];
    peer_send(p, frame, make_frame(frame, SL_FRAME_ABORT, 0, 0, "lies", 4));
}

START_TEST(who_has_not_agreed_loses_its_connection_and_ends_nothing) {
    const meeting strangers[] = {speak_before_agreeing, abort_before_agreeing};
    for (int i = 0; i < 2; i++) {
        meet(strangers[i]);
        ck_assert_int_eq(agent_result, SL_EPEER);
        ck_assert_msg(strstr(agent_text, "agent 1 (127.0.0.1:9) did not come up") != NULL, "%s",
                      agent_text);
    }
}
END_TEST

static void be_a_stranger(peer *p) {
    peer_connect(p, sl_agent_port(agent), "starlinx", 1);
    ck_assert(poll_until(p, &p->down, 0));
    ck_assert(!p->established);
}

static void claim_another_rank(peer *p) {
    peer_connect(p, sl_agent_port(agent), "starling", 7);
    ck_assert(poll_until(p, &p->down, 0));
    ck_assert(!p->established);
}

START_TEST(a_stranger_is_rejected_and_the_missing_neighbour_named) {
    meet(be_a_stranger);
    ck_assert_int_eq(agent_result, SL_EPEER);
    ck_assert_ptr_nonnull(
        strstr(agent_text, "edge 1->0, round 0: agent 1 (127.0.0.1:9) did not come up within 3 s"));
    meet(claim_another_rank);
    ck_assert_int_eq(agent_result, SL_EPEER);
}
END_TEST

static void fall_silent(peer *p) {
    greet_properly(p);
    peer_agree(p);
}

START_TEST(a_silent_peer_is_dead_within_the_timeout) {
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    meet(fall_silent);
    clock_gettime(CLOCK_MONOTONIC, &after);
    ck_assert_int_eq(agent_result, SL_EPEER);
    ck_assert_ptr_nonnull(strstr(agent_text, "edge 1->0, round 1: agent 1 has been silent for"));
    ck_assert_int_lt(after.tv_sec - before.tv_sec, 8); /* 2 s, on a busy machine */
}
END_TEST

static void give_up(peer *p) {
    greet_properly(p);
    peer_agree(p);
    uint8_t frame[1024];
    static const char cause[] = "edge 5->6, round 9: agent 5 is gone";
    peer_send(p, frame, make_frame(frame, SL_FRAME_ABORT, 1, 0, cause, sizeof cause - 1));
}

START_TEST(an_abort_passes_on_the_edge_where_it_began) {
    meet(give_up);
    ck_assert_int_eq(agent_result, SL_EPEER);
    ck_assert_str_eq(agent_text,
                     "edge 1->0, round 1: agent 1 ended: edge 5->6, round 9: agent 5 is gone");
}
END_TEST

static void hang_up(peer *p) {
    greet_properly(p);
    peer_agree(p);
    peer_close(p);
}

START_TEST(a_closed_connection_names_edge_and_round) {
    meet(hang_up);
    ck_assert_int_eq(agent_result, SL_EPEER);
    ck_assert_ptr_nonnull(strstr(agent_text, "edge 1->0, round 1: agent 1 is gone"));
}
END_TEST

static void stop_it(peer *p) {
    (void)p;
    usleep(50000);
    sl_agent_stop(agent);
}

START_TEST(an_agent_stops_on_request) {
    meet(stop_it);
    ck_assert_int_eq(agent_result, SL_ESTOPPED);
    ck_assert_int_eq(agent_error.rank, 0);
    ck_assert_int_eq(agent_error.peer, SL_ERROR_NOWHERE);
}
END_TEST

START_TEST(a_port_in_use_is_named) {
    sl_fabric *first, *second;
    sl_fabric_settings settings = local_fabric(NULL, 0);
    ck_assert_int_eq(sl_fabric_open(&first, &settings, &error), 0);
    settings = local_fabric(NULL, sl_fabric_port(first));
    ck_assert_int_ne(sl_fabric_open(&second, &settings, &error), 0);
    ck_assert_msg(strstr(error.text, "cannot listen on 127.0.0.1 port") != NULL, "%s", error.text);
    settings = local_fabric(NULL, 0);
    settings.provider = "carrier-pigeon";
    ck_assert_int_ne(sl_fabric_open(&second, &settings, &error), 0);
    ck_assert_msg(strstr(error.text, "transport.provider 'carrier-pigeon'") != NULL, "%s",
                  error.text);
    sl_fabric_close(&first);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("agent");
    ADD_TESTS(
        suite, "peers", a_peer_that_behaves_is_averaged_with,
        a_corrupted_frame_is_counted_dropped_with_its_connection_and_never_mixed,
        each_agent_says_whether_what_it_sends_has_checksums,
        a_payload_longer_than_the_layout_allows_is_refused, a_difference_is_refused_with_its_name,
        what_a_loss_does_is_compared_and_named, a_setting_that_differs_is_named_with_both_values,
        who_has_not_agreed_loses_its_connection_and_ends_nothing, more_data_than_allowed_is_refused,
        a_stranger_is_rejected_and_the_missing_neighbour_named,
        a_peer_that_sends_from_gpu_to_gpu_is_averaged_with, payloads_come_the_agreed_way_only,
        a_gpu_is_not_paired_with_a_host, a_silent_peer_is_dead_within_the_timeout,
        an_abort_passes_on_the_edge_where_it_began, a_closed_connection_names_edge_and_round,
        an_agent_stops_on_request);
    ADD_TESTS(suite, "places", a_port_in_use_is_named);
    return run_suite(suite);
}
