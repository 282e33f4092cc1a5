/* neighbour.c - the protocol on one connection: HELLO, data under credit, heartbeats, ABORT, BYE;
 * see neighbour.h.
 *
 * Of two neighbours the higher rank connects, so that both never do at once. It says HELLO first;
 * the other side answers only if that HELLO equals its own. Then data flows under credit: each side
 * says how many data frames the other may have sent, in every frame's header, and in a CREDIT frame
 * when half a window would go untold. Silence beyond the time-out breaks a connection; heartbeats
 * keep the living from being silent.
 *
 * A connection may break at any time. HELLO tells where each side stands: after it, the stream
 * (stream/stream.h) goes on with the first frame that did not come.
 */
#include "agent/peers/neighbour.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/roster.h"
#include "membership/membership.h"
#include "starling/text.h"

static const double retry_connect_s = 0.1;
static const double retry_refused_s = 1; /* after the other side has refused, or said nothing */
static const double retry_share = 0.1;   /* at most, of the time to come back */
static const double retry_most_s = 5;    /* where the other side does not trust this one */
enum { CONTROL_SENDS = 16, SMALLEST_BUFFER = 1024 };

int sl_neighbour_open(sl_neighbour *n, sl_error *error) {
    const sl_side *side = n->side;
    size_t frame_bytes = SL_FRAME_HEADER_BYTES + side->limits.part_bytes_max;
    sl_buffers buffers = {.vec = side->vec,
                          .count = side->limits.receive_buffers,
                          .bytes = frame_bytes < SMALLEST_BUFFER ? SMALLEST_BUFFER : frame_bytes};
    if (side->direct) {
        buffers.bytes = SL_FRAME_DIRECT_AT;
        buffers.rest = side->payload_memory + (size_t)n->index * side->limits.receive_buffers *
                                                  side->limits.payload_stride;
        buffers.rest_bytes = side->limits.payload_stride;
    }
    if (!sl_stream_open(&n->stream, &n->side->copies, side->limits.window))
        return sl_fail(error, SL_ENOMEM, "agent %u: out of memory", side->rank);
    return sl_pool_open(&n->pool, side->fabric, &buffers, n, error);
}

double sl_side_return_s(const sl_side *side) {
    return side->goes_on ? side->limits.timeout_s : side->limits.reconnect_s;
}

static void close_connection(sl_neighbour *n) {
    sl_connection_close(&n->link.connection);
    sl_channel_close(&n->link.channel);
    sl_mailbox_close(&n->link.mailbox);
}

void sl_neighbour_close(sl_neighbour *n) {
    close_connection(n);
    sl_pool_close(&n->pool);
    sl_stream_close(&n->stream);
    sl_arena_map_close(&n->map);
    sl_arena_map_close(&n->former);
    free(n->letter.bytes);
    n->letter = (sl_letter_part){0};
}

bool sl_neighbour_is_dialed(const sl_neighbour *n) {
    return n->rank < n->side->rank;
}

bool sl_neighbour_has_address(const sl_neighbour *n) {
    return n->rank < sl_roster_count(n->side->roster);
}

uint64_t sl_standing_process(const sl_standing *theirs) {
    return theirs->joins ? theirs->incarnation : SL_FOUNDER;
}

bool sl_neighbour_has_other(const sl_neighbour *n, uint64_t process) {
    return n->successor != 0 && n->successor != SL_ANY_SUCCESSOR && n->successor != process;
}

bool sl_neighbour_is_dead(const sl_neighbour *n) {
    return n->absence.gone && (n->absence.refusals > 0 || !sl_neighbour_has_address(n));
}

/* ---- connecting ---- */

/* Nothing is read for a connection before any more. */
static void begin_link(sl_neighbour *n) {
    const double now_s = n->side->now_s;
    n->link = (sl_neighbour_link){.heard_s = now_s, .sent_s = now_s};
    n->stream.left = n->stream.numbered.data;
}

/* Several times within the time that a neighbour has to come back. */
static double retry_s(const sl_neighbour *n) {
    const double share_s = retry_share * sl_side_return_s(n->side);
    if (n->dialing.turned_away > 0)
        return fmin(ldexp(retry_connect_s, (int)n->dialing.turned_away - 1),
                    n->side->now.trains ? fmin(share_s, retry_most_s) : retry_most_s);
    if (!n->link.connected || n->link.agreed || (n->side->now.trains && share_s < retry_connect_s))
        return retry_connect_s;
    return n->side->now.trains && share_s < retry_refused_s ? share_s : retry_refused_s;
}

void sl_neighbour_drop(sl_neighbour *n, const char *why) {
    if (!n->link.agreed && !n->dialing.doubted && why != NULL)
        snprintf(n->dialing.refusal, sizeof n->dialing.refusal, "%.*s", SL_REFUSAL_MAX - 1, why);
    n->dialing.next_s = n->side->now_s + retry_s(n);
    close_connection(n);
    begin_link(n);
}

static int dial(sl_neighbour *n, sl_error *error) {
    sl_side *side = n->side;
    uint8_t greeting[SL_GREETING_BYTES];
    const sl_passage passage = sl_side_passage(side, n->rank);
    const struct sockaddr_storage address = sl_roster_address(side->roster, n->rank);
    if (!sl_greeting_write(&passage, side->guard.credentials, greeting))
        return sl_fail(error, SL_EPEER, "OpenSSL has no random bytes to greet agent %u with",
                       n->rank);
    int result = sl_connection_open(&n->link.connection, side->fabric, side->handlers, n,
                                    side->limits.window + CONTROL_SENDS, error);
    if (result == 0)
        result = sl_channel_open(&n->link.channel, &side->guard, n->link.connection, &passage, true,
                                 error);
    return result != 0 ? result : sl_connection_dial(n->link.connection, &address, greeting, error);
}

void sl_neighbour_dial_if_due(sl_neighbour *n) {
    sl_side *side = n->side;
    if (n->link.connection != NULL || (!sl_neighbour_is_dialed(n) && !n->dialing.doubted) ||
        side->now_s < n->dialing.next_s)
        return;
    sl_error error;
    begin_link(n);
    const int result = dial(n, &error);
    n->link.attempt = ++n->dialing.count;
    n->link.dialed_s = side->now_s;
    if (result != 0)
        sl_neighbour_drop(n, error.text);
}

/* Another process of the same rank: nothing is known to it, or of it. */
static void forget(sl_neighbour *n) {
    n->renewed = n->process.incarnation != 0;
    n->process = (sl_process){0};
    n->letter.come = 0;
    sl_stream_renew(&n->stream);
}

/* May this process take the place of the one before it? Of two that want to, the first one stays.
 * First the one before is lost: what was under way to it is. */
static bool inherits(const sl_neighbour *n, const sl_standing *theirs) {
    const bool is_done = n->absence.gone || n->process.incarnation == 0,
               is_free = n->successor == SL_ANY_SUCCESSOR && !n->link.agreed && is_done;
    return theirs->joins && (is_free || n->successor == theirs->incarnation);
}

/* Why another process than before cannot be taken. NULL: it can. */
static const char *why_not_anew(const sl_neighbour *n, const sl_standing *theirs) {
    if (!n->side->now.trains)
        return theirs->joins ? "wants to join a run that does not train yet" : NULL;
    if (n->process.incarnation == theirs->incarnation || inherits(n, theirs))
        return NULL;
    if (theirs->joins)
        return "is a member: its process is alive, or not all have gone on without it yet";
    if (n->process.incarnation == 0)
        return NULL;
    return n->process.id == SL_FOUNDER
               ? "was started anew; agents that trained with the process before cannot "
                 "go on with this one"
               : "has another process, which has joined in the place of the one "
                 "before";
}

static sl_stream_standing standing_of(const sl_standing *theirs) {
    return (sl_stream_standing){{theirs->received, theirs->received_data}, theirs->credit};
}

/* To a process that is new here nothing has been sent. What was sent to one that counted as lost is
 * given up: it says where it stands. */
static bool can_resume(const sl_neighbour *n, const sl_standing *theirs) {
    const sl_stream_standing stands = standing_of(theirs);
    if (n->process.incarnation != theirs->incarnation)
        return sl_stream_can_resume(&(sl_stream){0}, &stands);
    return n->absence.gone ? sl_stream_can_return(&n->stream, &stands)
                           : sl_stream_can_resume(&n->stream, &stands);
}

bool sl_neighbour_may_go_on(sl_neighbour *n, sl_standing *theirs, char text[SL_REFUSAL_MAX]) {
    const sl_side *side = n->side;
    const bool knows_another = theirs->knows != side->incarnation;
    const char *why = why_not_anew(n, theirs);
    text[0] = '\0';
    if (knows_another) {
        theirs->credit -=
            theirs->credit < theirs->received_data ? theirs->credit : theirs->received_data;
        theirs->received = theirs->received_data = 0;
    }
    if (n->process.convicted && n->process.incarnation == theirs->incarnation)
        snprintf(text, SL_REFUSAL_MAX, "agent %u has sent what makes no sense: %.*s", n->rank,
                 SL_REFUSAL_MAX / 2, n->absence.lost.text);
    else if (side->now.trains && n->process.incarnation == 0 && !theirs->trains)
        snprintf(text, SL_REFUSAL_MAX, "agent %u does not train yet", n->rank);
    else if (why != NULL)
        snprintf(text, SL_REFUSAL_MAX, "agent %u %s", n->rank, why);
    else if (theirs->trains && knows_another && (theirs->knows != 0 || !side->now.trains) &&
             !side->joins)
        snprintf(
            text, SL_REFUSAL_MAX,
            "agent %u was started anew; agent %u trained with the process before and cannot go "
            "on with this one",
            side->rank, n->rank);
    else if (!can_resume(n, theirs))
        snprintf(text, SL_REFUSAL_MAX,
                 "agent %u says that %" PRIu64 " frames came to it; %" PRIu64 " to %" PRIu64
                 " can have come",
                 n->rank, theirs->received, n->stream.acknowledged.frames,
                 n->stream.numbered.frames);
    n->absence.superseded = why != NULL && theirs->joins && !n->link.agreed;
    return text[0] == '\0';
}

/* Its HELLO equals ours: from now on it is the neighbour. */
static void agree(sl_neighbour *n, const sl_standing *theirs) {
    const sl_stream_standing stands = standing_of(theirs);
    if (n->process.incarnation != theirs->incarnation)
        forget(n);
    n->process.incarnation = theirs->incarnation;
    n->process.id = sl_standing_process(theirs);
    n->process.attempt = theirs->attempt;
    n->link.agreed = n->back = true;
    n->traffic.connections++;
    n->link.heard_s = n->side->now_s;
    n->dialing.doubted = false;
    n->dialing.turned_away = 0;
    n->dialing.refusal[0] = '\0';
    n->absence.superseded = false;
    n->absence.followed = 0;
    n->absence.refusals = 0;
    if (n->absence.gone)
        sl_stream_return(&n->stream, &stands);
    else
        sl_stream_resume(&n->stream, &stands);
    sl_neighbour_hand_over(n, &theirs->mailbox);
    sl_connection_grant(n->link.connection, n->pool);
}

void sl_neighbour_adopt(sl_neighbour *n, sl_connection *connection, sl_channel *channel,
                        bool connected, const sl_standing *theirs) {
    close_connection(n);
    begin_link(n);
    n->link.connection = connection;
    n->link.channel = channel;
    sl_connection_adopt(connection, n->side->handlers, n);
    agree(n, theirs);
    if (connected && n->link.connection != NULL)
        sl_neighbour_connected(n);
}

void sl_neighbour_connected(sl_neighbour *n) {
    n->link.connected = true;
    n->link.heard_s = n->side->now_s;
    sl_channel_begin(n->link.channel);
    sl_neighbour_say_hello(n);
}

/* ---- receiving, before it has agreed ---- */

static int fail(const sl_neighbour *n, sl_error *error, int code, const char *text) {
    return sl_fail_edge(error, code, n->rank, n->side->rank, n->side->now.round, "%s", text);
}

/* The HELLO of a neighbour that this agent has dialed. The roster names its address, so that a
 * difference of configuration is its own, and ends the run. */
static int judge_hello(sl_neighbour *n, const sl_frame *frame, const uint8_t *payload,
                       sl_error *error) {
    sl_hello theirs;
    char text[SL_REFUSAL_MAX];
    const char *wrong = sl_hello_decode(&theirs, payload, frame->payload_bytes);
    if (wrong != NULL) {
        sl_neighbour_drop(n, wrong);
        return 0;
    }
    bool differs = sl_hello_differs(n->side, &theirs, n->rank, text);
    if (differs && theirs.run_id == n->side->hello.run_id)
        return sl_fail_edge(error, SL_EPEER, n->rank, n->side->rank, n->side->now.round,
                            "refused: %s", text);
    if (differs) {
        sl_neighbour_drop(n, text);
        return 0;
    }
    if (!sl_neighbour_is_dialed(
            n)) { /* it is as it should be: the greeting in its name was not its */
        n->dialing.doubted = false;
        n->dialing.refusal[0] = '\0';
        sl_neighbour_drop(n, NULL);
        return 0;
    }
    if (sl_neighbour_may_go_on(n, &theirs.standing, text))
        agree(n, &theirs.standing);
    else
        sl_neighbour_drop(n, text);
    return 0;
}

static int take_first(sl_neighbour *n, const sl_frame *frame, const uint8_t *payload,
                      sl_error *error) {
    char said[SL_FRAME_TEXT_MAX], text[SL_REFUSAL_MAX];
    if (frame->type != SL_FRAME_HELLO && frame->type != SL_FRAME_ABORT) {
        snprintf(text, sizeof text, "agent %u did not begin with HELLO", n->rank);
    } else if (frame->sender != n->rank) {
        snprintf(text, sizeof text,
                 "agent %u answers at %.100s:%u, which the roster names as agent %u's address: the "
                 "rosters differ, or their order",
                 frame->sender, sl_roster_host(n->side->roster, n->rank),
                 sl_roster_port(n->side->roster, n->rank), n->rank);
    } else if (frame->type == SL_FRAME_HELLO) {
        return judge_hello(n, frame, payload, error);
    } else {
        n->absence.followed = frame->step == SL_ABORT_FOLLOWED ? frame->exchange : 0;
        n->dialing.ahead = frame->step == SL_ABORT_TRAINS;
        sl_text_show(said, sizeof said, (const char *)payload, frame->payload_bytes);
        snprintf(text, sizeof text, "refused: %.300s", said);
    }
    sl_neighbour_drop(n, text);
    return 0;
}

/* ---- receiving ---- */

static int refuse_frame(sl_neighbour *n, const char *wrong, sl_error *error) {
    char text[256];
    const bool altered = strcmp(wrong, SL_FRAME_ALTERED) == 0;
    n->side->counters.frames_corrupted++;
    snprintf(text, sizeof text, "agent %u sent a malformed frame: %s%s", n->rank, wrong,
             altered ? "; its numbers were written while they were sent, or a link or a memory is "
                       "faulty"
                     : "");
    if (n->link.agreed)
        return fail(n, error, SL_EPROTO, text);
    sl_neighbour_drop(n, wrong);
    return 0;
}

static int take_data(sl_neighbour *n, const sl_frame *frame, sl_buffer *buffer, sl_event *event,
                     sl_error *error) {
    size_t bytes;
    bool on_device;
    const void *data = sl_neighbour_find_data(n, frame, buffer, &bytes, &on_device);
    n->link.asked = n->link.asked || frame->asks;
    buffer->number = sl_stream_last(&n->stream);
    if (data == NULL)
        return refuse_frame(n, "a reference to what is not in its memory", error);
    if (frame->is_void) {
        sl_stream_release(&n->stream, buffer->number);
        return SL_ARRIVED_NOTHING;
    }
    n->traffic.received_bytes += n->side->limits.header_bytes + bytes;
    *event = (sl_event){
        .type = SL_EVENT_RECEIVED,
        .peer = n->rank,
        .exchange = frame->exchange,
        .step = frame->step,
        .part = frame->part,
        .scalar = frame->scalar,
        .silent = frame->silent,
        .payload = {data, bytes},
        .on_device = on_device,
        .token = buffer,
    };
    return SL_ARRIVED_DATA;
}

static int take_control(sl_neighbour *n, const sl_frame *frame, const uint8_t *payload,
                        sl_error *error) {
    n->side->counters.control_frames_received++;
    if (frame->is_void)
        return SL_ARRIVED_NOTHING;
    switch (frame->type) {
    case SL_FRAME_ABORT:
        sl_text_show(n->process.cause, sizeof n->process.cause, (const char *)payload,
                     frame->payload_bytes);
        n->process.ends =
            frame->step <= SL_ABORT_DROPS ? (sl_frame_abort)frame->step : SL_ABORT_ENDS;
        if (n->process.ends == SL_ABORT_DROPS)
            break;
        return sl_fail_edge(error, SL_EPEER, n->rank, n->side->rank, n->side->now.round,
                            "agent %u ended: %s", n->rank, n->process.cause);
    case SL_FRAME_HELLO:
        return fail(n, error, SL_EPROTO, "HELLO came twice");
    case SL_FRAME_BYE:
        n->process.bye_received = true;
        n->link.asked = true; /* it waits for that */
        break;
    case SL_FRAME_BARRIER:
    case SL_FRAME_SUM_CREDIT:
    case SL_FRAME_SUM:
        return SL_ARRIVED_CALL;
    case SL_FRAME_CHECKPOINT:
        return SL_ARRIVED_CHECKPOINT;
    case SL_FRAME_MEMBERSHIP:
        return SL_ARRIVED_MEMBERSHIP;
    case SL_FRAME_FETCH:
    case SL_FRAME_MODEL:
        return SL_ARRIVED_MODEL;
    case SL_FRAME_ACCOUNT:
        return SL_ARRIVED_ACCOUNT;
    case SL_FRAME_HEARTBEAT:
        n->link.beats.said_s = n->side->now_s;
        break;
    case SL_FRAME_OFFER:
        sl_neighbour_hear_offer(n, payload);
        break;
    case SL_FRAME_MEMORY:
        sl_neighbour_hear_answer(n, frame->step, frame->part);
        break;
    case SL_FRAME_CREDIT:
    case SL_FRAME_READY:
    case SL_FRAME_DATA:
    case SL_FRAME_DIRECT:
    case SL_FRAME_HANDSHAKE:
    case SL_FRAME_TYPE_END:
        break;
    }
    return SL_ARRIVED_NOTHING;
}

static bool tells_exchange(const sl_frame *frame) {
    return sl_frame_is_data(frame) || frame->type == SL_FRAME_CREDIT ||
           frame->type == SL_FRAME_HEARTBEAT;
}

static void note_progress(sl_neighbour *n, const sl_frame *frame) {
    sl_process *p = &n->process;
    if (frame->type != SL_FRAME_ABORT && (int32_t)(frame->view - p->view) > 0)
        p->view = frame->view; /* a frame that is sent again says the one before */
    if (tells_exchange(frame) && frame->exchange > p->exchange) {
        p->exchange = frame->exchange;
        p->exchange_s = n->side->now_s;
    }
    if ((tells_exchange(frame) || frame->type == SL_FRAME_READY) && frame->exchange > p->open)
        p->open = frame->exchange;
}

/* It costs this connection only: anybody on the way may break a seal. */
static int lose_broken(sl_neighbour *n, const char *wrong, sl_error *error) {
    n->side->counters.frames_corrupted++;
    if (n->link.agreed) {
        sl_fail_edge(error, SL_EPROTO, n->rank, n->side->rank, n->side->now.round, "agent %u: %s",
                     n->rank, wrong);
        return SL_ARRIVED_BROKEN;
    }
    sl_neighbour_drop(n, wrong);
    return 0;
}

/* Data goes to those who have said that they are in its view. */
static bool is_of_no_view(const sl_neighbour *n, const sl_frame *frame) {
    return sl_frame_is_data(frame) && (int32_t)(frame->view - n->side->now.view) > 0;
}

static int take_agreed(sl_neighbour *n, sl_frame *frame, sl_buffer *buffer, sl_event *event,
                       sl_error *error) {
    if (is_of_no_view(n, frame))
        return lose_broken(n, "it sent data of a view that never was", error);
    const char *wrong = sl_stream_hear(&n->stream, frame);
    if (wrong != NULL)
        return refuse_frame(n, wrong, error);
    if (sl_stream_numbers(frame->type))
        wrong = sl_stream_receive(&n->stream, frame);
    if (wrong != NULL)
        return sl_fail_edge(error, SL_EPROTO, n->rank, n->side->rank, n->side->now.round,
                            "agent %u sent %" PRIu64 " data frames, more than the %" PRIu64
                            " that it was allowed",
                            n->rank, n->stream.received.data, n->stream.credit_told);
    n->link.heard_s = n->side->now_s;
    n->link.bytes_heard = 0;
    note_progress(n, frame);
    uint8_t *payload = buffer->data + SL_FRAME_HEADER_BYTES;
    if (sl_frame_is_data(frame))
        return take_data(n, frame, buffer, event, error);
    if (frame->refers && !sl_neighbour_fetch(n, frame, payload))
        return lose_broken(n, "what it refers to is not in its memory, or not any more", error);
    return take_control(n, frame, payload, error);
}

/* Some of the handshake: when it is done, HELLO may go. */
static int go_on(sl_neighbour *n) {
    sl_connection_receive_again(n->link.connection);
    sl_neighbour_say_hello(n);
    return 0;
}

int sl_neighbour_take(sl_neighbour *n, sl_buffer *buffer, size_t bytes, sl_event *event,
                      sl_frame *frame, sl_error *error) {
    const sl_side *side = n->side;
    const char *wrong;
    const sl_passed passed =
        sl_channel_take(n->link.channel, buffer->data, bytes, side->limits.part_bytes_max,
                        side->direct, side->now_s, frame, &wrong);
    if (wrong == NULL && frame->type == SL_FRAME_HEARTBEAT)
        wrong = sl_heartbeat_decode(&n->link.beats.said, buffer->data + SL_FRAME_HEADER_BYTES,
                                    frame->payload_bytes, n->rank, n->side->ranks);
    int result = 0;
    if (passed == SL_PASSED_HANDSHAKE)
        result = go_on(n);
    else if (passed == SL_PASSED_BROKEN)
        result = lose_broken(n, wrong, error);
    else if (wrong != NULL)
        result = refuse_frame(n, wrong, error);
    else if (n->link.agreed)
        result = take_agreed(n, frame, buffer, event, error);
    else
        result = take_first(n, frame, buffer->data + SL_FRAME_HEADER_BYTES, error);
    if (result <= 0 || result == SL_ARRIVED_BROKEN)
        sl_buffer_release(buffer);
    return result;
}
