/* sending.c - what goes to a neighbour: control frames, the parts of messages, and what came from
 * it; see neighbour.h.
 *
 * Every header says how many data frames the neighbour may have sent, and how many came. A part
 * stays in the outbox, or in side->kept, until the neighbour says that it came.
 */
#include <string.h>

#include "agent/neighbour.h"
#include "wire/checksum.h"

/* Of a message whose exchange is not open at its receiver: a start while it says that it is. */
enum { PARTS_EARLY = 2 };

/* The node holds at most a window of its parts, whichever connection they came over. */
uint64_t sl_neighbour_credit(const sl_neighbour *n) {
    return n->received + n->side->window - n->held;
}

static bool is_due(const sl_neighbour *n, uint64_t now, uint64_t told) {
    return now - told >= n->side->told_every;
}

static void complete_header(sl_neighbour *n, sl_frame *frame,
                            uint8_t header[SL_FRAME_HEADER_BYTES]) {
    frame->sender = n->side->rank;
    frame->credit = (uint32_t)sl_neighbour_credit(n);
    frame->received = (uint32_t)n->received;
    sl_frame_encode(frame, header);
}

static bool note_sent(sl_neighbour *n, int result) {
    if (result > 0)
        n->side->retry_soon = true;
    if (result != 0)
        return false;
    n->credit_told = sl_neighbour_credit(n);
    n->received_told = n->received;
    n->asked = false;
    n->view_told = n->side->view;
    n->sent_s = n->side->now_s;
    return true;
}

static int send_frame(sl_neighbour *n, const uint8_t *header, size_t header_bytes,
                      const void *payload, size_t payload_bytes, bool data) {
    return sl_channel_send(n->channel, n->connection, n->side->now_s, header, header_bytes, payload,
                           payload_bytes, data);
}

/* A control payload is small: it is copied behind its header, so that the caller's may go. */
static bool send_small(sl_neighbour *n, sl_frame frame, const void *payload) {
    if (n->connection == NULL || !n->hello_sent)
        return false;
    uint8_t whole[SL_FRAME_HEADER_BYTES + SL_FRAME_TEXT_MAX];
    frame.view = n->side->view;
    if (payload != NULL && frame.payload_bytes > 0) {
        memcpy(whole + SL_FRAME_HEADER_BYTES, payload, frame.payload_bytes);
        frame.payload_sum = sl_checksum(payload, frame.payload_bytes);
    }
    complete_header(n, &frame, whole);
    int result = send_frame(n, whole, SL_FRAME_HEADER_BYTES + frame.payload_bytes, NULL, 0, false);
    n->side->counters.control_frames_sent += result == 0;
    return note_sent(n, result);
}

bool sl_neighbour_send_control(sl_neighbour *n, sl_frame_type type, const void *payload,
                               size_t bytes) {
    sl_frame frame = {
        .type = type, .exchange = n->side->exchange, .payload_bytes = (uint32_t)bytes};
    if (!send_small(n, frame, payload))
        return false;
    n->exchange_told = frame.exchange;
    return true;
}

/* Its HELLO says what came over the connection before: nothing that it counts may go earlier. */
bool sl_neighbour_send_frame(sl_neighbour *n, const sl_frame *frame) {
    return n->agreed && send_small(n, *frame, NULL);
}

bool sl_neighbour_send_copy(sl_neighbour *n, const sl_frame *frame, const void *payload) {
    return n->agreed && send_small(n, *frame, payload);
}

bool sl_neighbour_send_payload(sl_neighbour *n, const sl_frame *frame, const void *payload) {
    if (n->connection == NULL || !n->hello_sent || !n->agreed)
        return false;
    uint8_t header[SL_FRAME_HEADER_BYTES];
    sl_frame whole = *frame;
    whole.view = n->side->view;
    whole.payload_sum = sl_checksum(payload, frame->payload_bytes);
    complete_header(n, &whole, header);
    return note_sent(n, send_frame(n, header, sizeof header, payload, frame->payload_bytes, false));
}

/* ---- sending data ---- */

static uint32_t *place_of(const sl_neighbour *n, uint64_t number) {
    return &n->places[number % n->side->window];
}

/* Beside the credit: so many frames may be on the way that are not known to have come. Data of a
 * view is sent to who has begun it. */
static bool may_send(const sl_neighbour *n) {
    return n->connection != NULL && n->agreed && n->hello_sent && n->sent < n->credit &&
           n->view >= n->side->view && n->sent < n->come + n->side->window;
}

/* An answer is looked for: after the last part, which no data follows, unless a later step's does
 * in time, and where nothing is copied when no more may be sent, too. */
static bool asks(const sl_neighbour *n, const sl_outbox *outbox, uint32_t part) {
    const bool copies = n->side->kept.count > 0,
               waits = n->mutual && outbox->message.stays != SL_STAY_ANSWER;
    return (part + 1 == outbox->message.parts && (waits || !copies)) ||
           (n->sent + 1 == n->credit && !copies);
}

static int hand_over(sl_neighbour *n, sl_frame frame, const void *payload) {
    uint8_t header[SL_FRAME_DIRECT_AT] = {0};
    complete_header(n, &frame, header);
    int result = send_frame(n, header, n->side->header_bytes, payload, frame.payload_bytes, true);
    if (!note_sent(n, result))
        return 0;
    n->exchange_told = frame.exchange;
    n->sent++;
    if (n->sent_ever < n->sent)
        n->sent_ever = n->sent;
    return 1;
}

static int send_outbox_part(sl_neighbour *n, sl_outbox *outbox, uint32_t part, sl_error *error) {
    int encoded = sl_outbox_encode(outbox, part, error);
    if (encoded <= 0)
        return encoded;
    const int vouched = sl_outbox_vouch(outbox, part, error);
    if (vouched != 0)
        return vouched;
    sl_frame frame = sl_outbox_frame(outbox, part);
    frame.asks = asks(n, outbox, part);
    *place_of(n, n->sent) = SL_KEPT_NOWHERE;
    return hand_over(n, frame, outbox->payloads[part].data);
}

/* It still waits for others' data, which this would hold up on its link. */
static bool is_early(const sl_neighbour *n, const sl_outbox *outbox, uint64_t part) {
    return n->side->varies && part >= PARTS_EARLY && outbox->message.exchange > n->open;
}

int sl_neighbour_send_part(sl_neighbour *n, sl_outbox *outbox, sl_error *error) {
    if (!may_send(n))
        return 0;
    const uint32_t place = n->sent < n->sent_ever ? *place_of(n, n->sent) : SL_KEPT_NOWHERE;
    if (place != SL_KEPT_NOWHERE) {
        const sl_kept_part *part = &n->side->kept.parts[place];
        return hand_over(n, part->frame, part->payload);
    }
    const uint64_t part = n->sent - n->first;
    if (part >= outbox->message.parts || is_early(n, outbox, part))
        return 0;
    return send_outbox_part(n, outbox, (uint32_t)part, error);
}

bool sl_neighbour_holds_up(const sl_neighbour *n, const sl_outbox *outbox) {
    const uint32_t part = outbox->gone;
    if (!sl_neighbour_part_left(n, part))
        return part < outbox->encoded || !may_send(n) || is_early(n, outbox, part);
    return n->side->kept.count == 0 && !sl_neighbour_part_came(n, part);
}

void sl_neighbour_keep(sl_neighbour *n, uint32_t part, uint32_t place) {
    *place_of(n, n->first + part) = place;
    n->side->kept.parts[place].users++;
}

void sl_neighbour_left(sl_neighbour *n) {
    n->left++;
}

/* The first `count` frames have come. */
void sl_neighbour_came(sl_neighbour *n, uint64_t count) {
    for (; n->come < count; n->come++) {
        const uint32_t place = *place_of(n, n->come);
        if (place != SL_KEPT_NOWHERE)
            sl_kept_drop(&n->side->kept, place);
    }
}

/* ---- telling ---- */

void sl_neighbour_say_hello(sl_neighbour *n) {
    const sl_side *side = n->side;
    if (n->connection == NULL || !n->connected || !sl_channel_is_ready(n->channel))
        return;
    const sl_standing standing = {.incarnation = side->incarnation,
                                  .knows = n->incarnation,
                                  .trains = side->trains,
                                  .attempt = n->dialed ? n->attempts : 0,
                                  .credit = sl_neighbour_credit(n),
                                  .received = n->received,
                                  .meets = n->meets};
    int result = sl_side_send_hello(side, n->channel, n->connection, &standing,
                                    &(sl_frame){.exchange = side->exchange});
    n->side->counters.control_frames_sent += result == 0;
    n->hello_sent = note_sent(n, result);
    n->view_told = 0; /* HELLO does not say it */
}

void sl_neighbour_tell_counts(sl_neighbour *n) {
    /* It looks for answers, or keeps its parts until one comes; or they stay here for long, and it
     * may have sent all. */
    const bool waits =
        n->mutual || n->side->kept.count == 0 || n->side->told_every < (n->side->window + 1) / 2;
    const bool due = n->asked || n->view_told != n->side->view ||
                     (waits && is_due(n, n->received, n->received_told)) ||
                     is_due(n, sl_neighbour_credit(n), n->credit_told);
    if (due && n->agreed)
        sl_neighbour_send_control(n, SL_FRAME_CREDIT, NULL, 0);
}

void sl_neighbour_tell_open(sl_neighbour *n, uint64_t exchange) {
    const sl_frame frame = {.type = SL_FRAME_OPEN, .exchange = exchange};
    const bool knows = n->exchange_told >= exchange || n->open_told >= exchange;
    if (!knows && sl_neighbour_send_frame(n, &frame))
        n->open_told = exchange;
}

void sl_neighbour_consumed(sl_neighbour *n, sl_buffer *buffer) {
    n->held--;
    sl_buffer_release(buffer);
}

static bool send_abort(sl_neighbour *n, sl_frame_abort what, const char *why) {
    const sl_frame frame = {.type = SL_FRAME_ABORT,
                            .exchange = n->side->exchange,
                            .step = what,
                            .payload_bytes = (uint32_t)strnlen(why, SL_FRAME_TEXT_MAX)};
    return send_small(n, frame, why);
}

void sl_neighbour_tell(sl_neighbour *n, const char *cause) {
    if (n->hello_sent && !n->told)
        n->told = send_abort(n, n->side->unbegun ? SL_ABORT_BEGINS : SL_ABORT_ENDS, cause);
}

void sl_neighbour_tell_dropped(sl_neighbour *n, const char *why) {
    if (n->agreed)
        send_abort(n, SL_ABORT_DROPS, why);
}
