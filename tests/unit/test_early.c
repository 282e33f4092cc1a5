/* test_early.c - transcripts on a schedule: who is ahead sends the first two parts of a message,
 * and the rest when its receiver is through with the exchange before. The numbers of an agent that
 * is late would else come beside what it waits for, over the same link. */
#define FRAME_PEER_DIMENSION 4096
#include "frame_peer.h"

enum { PARTS = 4, EARLY = 2 };

static void send_open(peer *p, uint64_t exchange) {
    peer_send_frame(p, SL_FRAME_READY, exchange, NULL, 0);
}

static void send_part(peer *p, uint64_t exchange, uint32_t part) {
    static const float values[D / PARTS];
    peer_send_as(p,
                 (sl_frame){.type = SL_FRAME_DATA,
                            .exchange = exchange,
                            .part = part,
                            .payload_bytes = sizeof values},
                 values);
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

static void come(peer *p) {
    opened = 0;
    peer_come(p, 1, frames_come, data_come);
    peer_say_view(p);
}

static void begin(peer *p) {
    agent_stands = (sl_standing){0};
    come(p);
}

/* The agent sends the rest of this exchange's message, and then the first parts of the next. */
static void finish(peer *p, uint64_t exchange) {
    for (; exchange <= ROUNDS; exchange++) {
        send_message(p, exchange);
        peer_take_data(p, (uint32_t)exchange * PARTS + (exchange < ROUNDS ? EARLY : 0));
    }
    peer_say_bye(p);
}

/* Who has not opened an exchange gets the first parts. */
static void open_late(peer *p) {
    begin(p);
    peer_take_data(p, EARLY);
    send_part(p, 0, 0); /* of no exchange: dropped, and says nothing */
    ck_assert_uint_eq(data_come, EARLY);
    send_open(p, 1);
    peer_take_data(p, PARTS);
    finish(p, 1);
}

/* Data of an exchange opens it. */
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

/* An exchange is open when the one before is over: whoever waits for this agent need not wait for
 * its gradient. */
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

/* Who comes back hears what did not come. */
static void come_back(peer *p) {
    begin(p);
    send_open(p, 1);
    peer_take_data(p, PARTS);
    atomic_store(&gradient_waits, true);
    send_message(p, 1);
    wait_for_open(p, 2);
    peer_close(p);
    frames_come--; /* READY has not come */
    come(p);
    wait_for_open(p, 2);
    atomic_store(&gradient_waits, false);
    finish(p, 2);
}

static const meeting meetings[] = {open_late, open_by_data, hear_of_the_end, come_back};

START_LOOP_TEST(who_is_ahead_sends_as_much_as_is_open, sizeof meetings / sizeof *meetings) {
    reconnect_s = 60;
    window_chunks = 8;
    topology = "{'nodes': 2, 'schedule': [{'edges': [[0, 1]]}, {'edges': [[0, 1]]}]}";
    meet(meetings[_i]);
    expect_well_ended(1 / 8.0f);
    ck_assert_float_eq_tol(last_model[D - 1], 1 / 8.0f, 1e-6f);
}
