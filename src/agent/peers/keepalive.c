/* keepalive.c - signs of life on one connection: heartbeats, and silence; see neighbour.h. */
#include "agent/peers/neighbour.h"

/* A silent peer is given up a little before the time-out, so that everybody has ended within it. */
static const double silence_share = 0.9;
/* Of the time for connecting anew, what one attempt may take. */
static const double attempt_share = 0.25;
/* While one of two neighbours waits, they say so often what they do. */
static const double beat_every_s = 0.25, said_for_s = 1;

/* Bytes of a frame that is not whole yet are a sign of life: on a slow link it may take long. */
static void hear_bytes(sl_neighbour *n) {
    const uint64_t bytes = sl_connection_bytes_received(n->link.connection);
    if (n->link.bytes_heard > 0 && bytes > n->link.bytes_heard)
        n->link.heard_s = n->side->now_s;
    n->link.bytes_heard = bytes;
}

double sl_neighbour_patience_s(const sl_neighbour *n) {
    return silence_share * n->side->limits.timeout_s;
}

const char *sl_neighbour_silence_key(const sl_neighbour *n) {
    return n->side->goes_on ? "membership.grace_s" : "transport.timeout_s";
}

const char *sl_neighbour_return_key(const sl_neighbour *n) {
    return n->side->goes_on ? "membership.grace_s" : "transport.reconnect_s";
}

bool sl_neighbour_has_said(const sl_neighbour *n) {
    return n->link.beats.said_s > 0 && n->side->now_s - n->link.beats.said_s < said_for_s;
}

static bool must_beat(const sl_neighbour *n) {
    const sl_side *side = n->side;
    const bool waits = n->link.beats.waits_told || sl_heartbeat_waits_long(&side->now.says) ||
                       (sl_neighbour_has_said(n) && sl_heartbeat_waits_long(&n->link.beats.said));
    return side->now_s - n->link.sent_s > side->limits.timeout_s / 5 ||
           (side->meets && n->link.exchange_told < side->now.exchange) ||
           (waits && (n->link.beats.news_told != side->now.news ||
                      side->now_s - n->link.beats.told_s > beat_every_s));
}

static void beat(sl_neighbour *n) {
    uint8_t payload[SL_HEARTBEAT_BYTES];
    sl_heartbeat_encode(&n->side->now.says, payload);
    const sl_frame frame = {.type = SL_FRAME_HEARTBEAT, .payload_bytes = sizeof payload};
    if (!sl_neighbour_send_control(n, frame, payload))
        return;
    n->link.beats.news_told = n->side->now.news;
    n->link.beats.waits_told = sl_heartbeat_waits_long(&n->side->now.says);
    n->link.beats.told_s = n->side->now_s;
}

int sl_neighbour_tick(sl_neighbour *n, sl_error *error) {
    const sl_side *side = n->side;
    double limit_s = sl_neighbour_patience_s(n);
    sl_channel_flush(n->link.channel);
    if (n->link.connected && !n->link.hello_sent) /* there was no room for it */
        sl_neighbour_say_hello(n);
    if (n->link.connection != NULL && !n->link.agreed) {
        const double attempt_s = attempt_share * side->limits.reconnect_s;
        if (side->now_s - n->link.dialed_s <=
            (side->now.trains && attempt_s < limit_s ? attempt_s : limit_s))
            return 0;
        sl_neighbour_drop(n, n->link.connected ? "it accepted the connection and said nothing"
                                               : "it did not accept the connection");
        n->dialing.next_s = side->now_s; /* it was waited for long enough */
        return 0;
    }
    if (!n->link.connected)
        return 0;
    if (!n->process.bye_received &&
        side->now_s - n->link.heard_s > (n->awaited ? beat_every_s : limit_s / 2))
        hear_bytes(n);
    if (!n->process.bye_received && side->now_s - n->link.heard_s > limit_s)
        return sl_fail_edge(error, SL_EPEER, n->rank, side->rank, side->now.round,
                            "agent %u has been silent for %.1f s; silence may last %g s, %g %% of "
                            "%s (%g)",
                            n->rank, side->now_s - n->link.heard_s, limit_s, 100 * silence_share,
                            sl_neighbour_silence_key(n), side->limits.timeout_s);
    if (!n->process.bye_sent && must_beat(n))
        beat(n);
    return 0;
}
