/* test_early.c - transcripts on a schedule: who is ahead sends the first two parts of a message,
 * and the rest when its receiver is through with the exchange before. The numbers of an agent that
 * is late would else come beside what it waits for, over the same link. */
#define FRAME_PEER_DIMENSION 4096
#include "frame_peer.h"

enum { PARTS = 4, EARLY = 2 };

static void send_open(peer *p, uint64_t exchange) {
    uint8_t frame[SL_FRAME_HEADER_BYTES];
    peer_send(p, frame, make_frame(frame, SL_FRAME_READY, exchange, 0, NULL, 0));
}

static void send_part(peer *p, uint64_t exchange, uint32_t part) {
    static const float values[D / PARTS];
    const sl_frame frame = {.type = SL_FRAME_DATA,
                            .view = 1,
                            .exchange = exchange,
                            .part = part,
                            .credit = data_come + 8,
                            .received = frames_come,
                            .payload_bytes = sizeof values,
                            .payload_sum = sl_checksum(values, sizeof values)};
    uint8_t header[SL_FRAME_HEADER_BYTES];
    sl_frame_encode(&frame, header);
    peer_send_both(p, header, sizeof header, values, sizeof values);
}

static void send_message(peer *p, uint64_t exchange) {
    for (uint32_t part = 0; part < PARTS; part++)
        send_part(p, exchange, part);
}

static void wait_for_open(peer *p, uint64_t exchange) {
    while (opened < exchange && poll_until(p, NULL, p->frames + 1))
        ;
    ck_assert_uint_eq(opened, exchange);
}

/* Connects, and says HELLO as who has got so many of the agent's frames. */
static void come(peer *p, uint32_t received) {
    static uint64_t attempt;
    *p = (peer){0};
    greet_properly(p);
    sl_hello hello = own_hello(false);
    hello.standing = (sl_standing){.incarnation = 1,
                                   .knows = agent_stands.incarnation,
                                   .trains = agent_stands.incarnation != 0,
                                   .attempt = ++attempt,
                                   .credit = received + 8,
                                   .received = frames_come,
                                   .received_data = received};
    opened = 0;
    peer_say(p, &hello);
    peer_say_view(p);
}

static void begin(peer *p) {
    agent_stands = (sl_standing){0};
    come(p, 0);
}

/* The agent sends the rest of this exchange's message, and then the first parts of the next. */
static void finish(peer *p, uint64_t exchange) {
    uint8_t frame[SL_FRAME_HEADER_BYTES];
    for (; exchange <= ROUNDS; exchange++) {
        send_message(p, exchange);
        peer_take_data(p, (uint32_t)exchange * PARTS + (exchange < ROUNDS ? EARLY : 0));
    }
    peer_send(p, frame, make_frame(frame, SL_FRAME_BYE, ROUNDS, 0, NULL, 0));
}

static void check_end(void) {
    ck_assert_msg(agent_result == 0, "%s", agent_text);
    ck_assert_float_eq_tol(last_model[0], 1 / 8.0f, 1e-6f);
    ck_assert_float_eq_tol(last_model[D - 1], 1 / 8.0f, 1e-6f);
}

static void open_late(peer *p) {
    begin(p);
    peer_take_data(p, EARLY);
    send_part(p, 0, 0); /* of no exchange: dropped, and says nothing */
    ck_assert_uint_eq(data_come, EARLY);
    send_open(p, 1);
    peer_take_data(p, PARTS);
    finish(p, 1);
}

START_TEST(who_has_not_opened_an_exchange_gets_the_first_parts) {
    meet(open_late);
    check_end();
}

static void open_by_data(peer *p) {
    begin(p);
    peer_take_data(p, EARLY);
    send_part(p, 1, 0);
    peer_take_data(p, PARTS);
    for (uint32_t part = 1; part < PARTS; part++)
        send_part(p, 1, part);
    peer_take_data(p, PARTS + EARLY);
    finish(p, 2);
}

START_TEST(data_of_an_exchange_opens_it) {
    meet(open_by_data);
    check_end();
}

/* Whoever waits for this agent need not wait for its gradient. */
static void hear_of_the_end(peer *p) {
    begin(p);
    wait_for_open(p, 1);
    send_open(p, 1);
    peer_take_data(p, PARTS);
    atomic_store(&gradient_waits, true);
    send_message(p, 1);
    wait_for_open(p, 2);
    ck_assert_uint_eq(data_come, PARTS);
    atomic_store(&gradient_waits, false);
    finish(p, 2);
}

START_TEST(an_exchange_is_open_when_the_one_before_is_over) {
    meet(hear_of_the_end);
    check_end();
}

static void come_back(peer *p) {
    begin(p);
    send_open(p, 1);
    peer_take_data(p, PARTS);
    atomic_store(&gradient_waits, true);
    send_message(p, 1);
    wait_for_open(p, 2);
    peer_close(p);
    frames_come--; /* READY has not come */
    come(p, PARTS);
    wait_for_open(p, 2);
    atomic_store(&gradient_waits, false);
    finish(p, 2);
}

START_TEST(who_comes_back_hears_what_did_not_come) {
    meet(come_back);
    check_end();
}

int main(void) {
    reconnect_s = 60;
    window_chunks = 8;
    topology = "{\"nodes\": 2, \"schedule\": [{\"edges\": [[0, 1]]}, {\"edges\": [[0, 1]]}]}";
    return run_tests("early");
}
