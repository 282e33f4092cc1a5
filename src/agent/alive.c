/* alive.c - signs of life on one connection: heartbeats, and silence; see neighbour.h. */
#include "agent/neighbour.h"

/* A silent peer is given up a little before the time-out, so that everybody has ended within it. */
static const double silence_share = 0.9;
/* Of the time for connecting anew, what one attempt may take. */
static const double attempt_share = 0.25;
/* While one of two neighbours waits, they say so often what they do. */
static const double beat_every_s = 0.25, said_for_s = 1;

/* Bytes of a frame that is not whole yet are a sign of life: on a slow link it may take long. */
static void hear_bytes(sl_neighbour *n) {
    const uint64_t bytes = sl_connection_bytes_received(n->connection);
    if (n->bytes_heard > 0 && bytes > n->bytes_heard)
        n->heard_s = n->side->now_s;
    n->bytes_heard = bytes;
}

double sl_neighbour_patience_s(const sl_neighbour *n) {
    return silence_share * n->side->timeout_s;
}

const char *sl_neighbour_silence_key(const sl_neighbour *n) {
    return n->side->goes_on ? "membership.grace_s" : "transport.timeout_s";
}

const char *sl_neighbour_return_key(const sl_neighbour *n) {
    return n->side->goes_on ? "membership.grace_s" : "transport.reconnect_s";
}

bool sl_neighbour_has_said(const sl_neighbour *n) {
    return n->said_s > 0 && n->side->now_s - n->said_s < said_for_s;
}

static bool must_beat(const sl_neighbour *n) {
    const sl_side *side = n->side;
    const bool waits = n->wait_told || sl_heartbeat_waits_long(&side->says) ||
                       (sl_neighbour_has_said(n) && sl_heartbeat_waits_long(&n->said));
    return side->now_s - n->sent_s > side->timeout_s / 5 ||
           (side->meets && n->exchange_told < side->exchange) ||
           (waits && (n->news_told != side->news || side->now_s - n->news_told_s > beat_every_s));
}

static void beat(sl_neighbour *n) {
    uint8_t payload[SL_HEARTBEAT_BYTES];
    sl_heartbeat_encode(&n->side->says, payload);
    if (!sl_neighbour_send_control(n, SL_FRAME_HEARTBEAT, payload, sizeof payload))
        return;
    n->news_told = n->side->news;
    n->wait_told = sl_heartbeat_waits_long(&n->side->says);
    n->news_told_s = n->side->now_s;
}

int sl_neighbour_tick(sl_neighbour *n, sl_error *error) {
    const sl_side *side = n->side;
    double limit_s = sl_neighbour_patience_s(n);
    sl_channel_flush(n->channel);
    if (n->connected && !n->hello_sent) /* there was no room for it */
        sl_neighbour_say_hello(n);
    if (n->connection != NULL && !n->agreed) {
        const double attempt_s = attempt_share * side->reconnect_s;
        if (side->now_s - n->dialed_s <=
            (side->trains && attempt_s < limit_s ? attempt_s : limit_s))
            return 0;
        sl_neighbour_drop(n, n->connected ? "it accepted the connection and said nothing"
                                          : "it did not accept the connection");
        n->next_attempt_s = side->now_s; /* it was waited for long enough */
        return 0;
    }
    if (!n->connected)
        return 0;
    if (!n->bye_received && side->now_s - n->heard_s > (n->awaited ? beat_every_s : limit_s / 2))
        hear_bytes(n);
    if (!n->bye_received && side->now_s - n->heard_s > limit_s)
        return sl_fail_edge(error, SL_EPEER, n->rank, side->rank, side->round,
                            "agent %u has been silent for %.1f s; silence may last %g s, %g %% of "
                            "%s (%g)",
                            n->rank, side->now_s - n->heard_s, limit_s, 100 * silence_share,
                            sl_neighbour_silence_key(n), side->timeout_s);
    if (!n->bye_sent && must_beat(n))
        beat(n);
    return 0;
}
