/* sending.c - what goes to a neighbour: numbered frames, the parts of messages among them, and what
 * belongs to the connection; see neighbour.h.
 *
 * Every header says how many data frames the neighbour may have sent, and how many frames came.
 */
#include <string.h>

#include "agent/peers/neighbour.h"
#include "wire/checksum.h"

/* Of a message whose exchange is not open at its receiver: a start while it says that it is. */
enum { FRAMES_EARLY = 2 };

/* Of a device's memory there is room for two messages, whatever frames they take. */
static bool is_due(const sl_neighbour *n, uint64_t now, uint64_t told) {
    const bool few = n->process.borrows && sl_arena_map_is_on_device(n->map);
    return now - told >= (few ? 1 : n->side->limits.told_every);
}

static bool note_sent(sl_neighbour *n, int result) {
    if (result > 0)
        n->side->now.retry_soon = true;
    if (result != 0)
        return false;
    sl_stream_told(&n->stream);
    n->link.asked = false;
    n->link.view_told = n->side->now.view;
    n->link.sent_s = n->side->now_s;
    return true;
}

/* A short payload is copied behind its header. A longer one, and data, is sent from where it is. */
static bool hand_over(sl_neighbour *n, sl_frame frame, const void *payload) {
    uint8_t whole[SL_FRAME_DIRECT_AT] = {0};
    const bool data = sl_frame_is_data(&frame),
               apart = (data && !frame.refers) || frame.payload_bytes > SL_FRAME_TEXT_MAX;
    size_t bytes = data ? n->side->limits.header_bytes : SL_FRAME_HEADER_BYTES;
    frame.sender = n->side->rank;
    frame.credit = (uint32_t)sl_stream_credit(&n->stream);
    frame.received = (uint32_t)n->stream.received.frames;
    sl_frame_encode(&frame, whole);
    if (!apart && frame.payload_bytes > 0) {
        memcpy(whole + bytes, payload, frame.payload_bytes);
        bytes += frame.payload_bytes;
    }
    const int result =
        sl_channel_send(n->link.channel, n->link.connection, n->side->now_s, whole, bytes,
                        apart ? payload : NULL, apart ? frame.payload_bytes : 0, data);
    n->side->counters.control_frames_sent += result == 0 && !data;
    return note_sent(n, result);
}

/* ---- numbered frames ---- */

/* Its HELLO says what came over the connection before: no number may go earlier. */
static bool is_open(const sl_neighbour *n) {
    return n->link.connection != NULL && n->link.hello_sent && n->link.agreed;
}

/* What it can read where it is leaves as a reference. *lends: it does. */
static bool hand_over_next(sl_neighbour *n, const sl_sent_frame *next, bool *lends) {
    uint8_t reference[SL_REFERENCE_BYTES];
    sl_frame frame = next->frame;
    const void *payload = sl_stream_payload(&n->stream, next);
    const bool is_data = sl_frame_is_data(&frame),
               reads_host = n->process.lends && n->process.lent == n->side->arena;
    *lends = next->copy != SL_COPY_NONE && sl_neighbour_reads(n, payload);
    if (!*lends && sl_arena_holds(n->side->published, payload)) {
        sl_copies_fetch(&n->side->copies, next->copy, n->side->vec);
        payload = sl_stream_payload(&n->stream, next);
    }
    if (*lends || (reads_host && !is_data && sl_side_shares(n->side, payload))) {
        sl_neighbour_refer(n, &frame, payload, reference);
        payload = reference;
    } else if (frame.payload_bytes > 0 && frame.payload_sum == 0 && !frame.unsummed &&
               frame.type != SL_FRAME_DIRECT) {
        frame.payload_sum =
            sl_checksum(payload, frame.payload_bytes); /* it was to be a reference */
    }
    return hand_over(n, frame, payload);
}

bool sl_neighbour_flush(sl_neighbour *n) {
    const sl_sent_frame *next;
    bool any = false, lends;
    sl_neighbour_tell_memory(n);
    while (is_open(n) && (next = sl_stream_next(&n->stream)) != NULL &&
           hand_over_next(n, next, &lends)) {
        if (sl_frame_is_data(&next->frame)) {
            n->link.exchange_told = next->frame.exchange;
            n->traffic.sent_bytes += n->side->limits.header_bytes + next->frame.payload_bytes;
        }
        sl_stream_pass(&n->stream, lends);
        any = true;
    }
    return any;
}

bool sl_neighbour_send(sl_neighbour *n, sl_frame frame, const void *payload, bool own) {
    const bool is_away = n->absence.gone && !n->link.agreed; /* one that says BYE is there */
    if (n->process.incarnation == 0 || is_away)
        return false;
    frame.view = n->side->now.view;
    if (frame.payload_bytes > 0)
        frame.payload_sum = sl_checksum(payload, frame.payload_bytes);
    if (!sl_stream_add(&n->stream, &frame, payload, own)) {
        n->side->now.out_of_memory = true;
        return false;
    }
    sl_neighbour_flush(n);
    return true;
}

/* ---- data ---- */

/* Data of a view is sent to a neighbour that has begun it. */
static bool may_send_data(const sl_neighbour *n) {
    return is_open(n) && !n->link.awaits && n->process.view >= n->side->now.view &&
           sl_stream_has_credit(&n->stream);
}

/* An answer is looked for: after the last part, which no data follows, unless a later step's does
 * in time, and where nothing is copied when no more may be sent, too. */
static bool asks(const sl_neighbour *n, const sl_outbox *outbox, uint32_t behind) {
    const bool copies = n->side->copies.count > 0,
               waits = n->mutual && outbox->message.stays != SL_STAY_ANSWER && !n->process.lends;
    return (behind == outbox->message.parts && (waits || !copies)) ||
           (n->stream.numbered.data + 1 == n->stream.credit && !copies);
}

/* It still waits for others' data, which this would hold up on its link. */
static bool is_early(const sl_neighbour *n, const sl_outbox *outbox, uint32_t part) {
    return n->side->now.varies && part / n->row >= FRAMES_EARLY &&
           outbox->message.exchange > n->process.open;
}

bool sl_neighbour_takes_data(const sl_neighbour *n) {
    return may_send_data(n) && sl_stream_next(&n->stream) == NULL;
}

bool sl_neighbour_post(sl_neighbour *n, const sl_frame *frame, const void *payload, uint32_t copy) {
    const uint64_t number = n->stream.numbered.data;
    if (!sl_stream_add(&n->stream, frame, payload, false))
        return false;
    if (copy != SL_COPY_NONE)
        sl_stream_use_copy(&n->stream, number, copy);
    sl_neighbour_flush(n);
    return true;
}

/* Encodes the parts of the next frame, up to the one behind them: one, or what it reads in a row.
 */
static int encode_frame(sl_neighbour *n, sl_outbox *outbox, uint32_t part, uint32_t *behind,
                        sl_error *error) {
    int encoded = sl_outbox_encode(outbox, part, error);
    if (encoded <= 0)
        return encoded;
    const void *first = outbox->payloads[0].data;
    const bool stays = outbox->room != SL_COPY_NONE || sl_arena_holds(n->side->published, first);
    if (part == 0 && stays && sl_neighbour_reads(n, first))
        n->row = sl_outbox_row(outbox, n->process.row);
    const uint32_t left = outbox->message.parts - part;
    *behind = part + (left < n->row ? left : n->row);
    for (uint32_t next = part + 1; next < *behind && encoded > 0; next++)
        encoded = sl_outbox_encode(outbox, next, error);
    return encoded;
}

int sl_neighbour_send_part(sl_neighbour *n, sl_outbox *outbox, sl_error *error) {
    const uint64_t next = (n->stream.numbered.data - n->first) * n->row;
    const uint32_t part = (uint32_t)next;
    uint32_t behind;
    if (!sl_neighbour_takes_data(n) || next >= outbox->message.parts || is_early(n, outbox, part))
        return 0;
    const int encoded = encode_frame(n, outbox, part, &behind, error);
    if (encoded <= 0)
        return encoded;
    const bool published = sl_arena_holds(n->side->published, outbox->payloads[part].data),
               reads = n->process.lends && n->process.lent == n->side->arena;
    const uint32_t copy = published ? sl_outbox_publish(outbox, &n->side->copies, part, behind)
                                    : sl_outbox_keep(outbox, &n->side->copies, part, reads);
    if (!published && !reads)
        sl_outbox_sum(outbox, part);
    const int vouched = sl_outbox_vouch(outbox, part, behind, error);
    if (vouched != 0)
        return vouched;
    sl_frame frame = sl_outbox_frame(outbox, part, behind);
    frame.asks = asks(n, outbox, behind);
    if (!sl_neighbour_post(n, &frame, outbox->payloads[part].data, copy))
        return sl_fail(error, SL_ENOMEM, "agent %u: out of memory for frames", n->side->rank);
    return 1;
}

bool sl_neighbour_holds_up(const sl_neighbour *n, const sl_outbox *outbox) {
    const uint32_t part = outbox->gone;
    if (sl_neighbour_part_is_copied(n, part))
        return false;
    if (!sl_neighbour_part_left(n, part))
        return part < outbox->encoded || !may_send_data(n) || is_early(n, outbox, part);
    return n->side->copies.count == 0 && !sl_neighbour_part_came(n, part);
}

void sl_neighbour_consumed(sl_buffer *buffer) {
    sl_neighbour *n = sl_pool_owner(buffer->pool);
    sl_stream_release(&n->stream, buffer->number);
    sl_buffer_release(buffer);
}

/* ---- what belongs to the connection ---- */

bool sl_neighbour_send_control(sl_neighbour *n, sl_frame frame, const void *payload) {
    frame.view = n->side->now.view;
    frame.exchange = n->side->now.exchange;
    if (frame.payload_bytes > 0)
        frame.payload_sum = sl_checksum(payload, frame.payload_bytes);
    if (n->link.connection == NULL || !n->link.hello_sent || !hand_over(n, frame, payload))
        return false;
    n->link.exchange_told = frame.exchange;
    return true;
}

void sl_neighbour_tell_memory(sl_neighbour *n) {
    uint8_t offer[SL_OFFER_BYTES];
    if (!n->link.agreed || !(n->link.offers || n->link.answers))
        return;
    sl_offer_encode(&n->link.offer, offer);
    const sl_frame offers = {.type = SL_FRAME_OFFER, .payload_bytes = sizeof offer},
                   answers = {.type = SL_FRAME_MEMORY,
                              .step = n->process.borrows ? n->side->limits.window : 0,
                              .part = sl_neighbour_row(n)};
    if (n->link.offers && sl_neighbour_send_control(n, offers, offer))
        n->link.offers = false;
    if (n->link.answers && sl_neighbour_send_control(n, answers, NULL))
        n->link.answers = false;
}

void sl_neighbour_say_hello(sl_neighbour *n) {
    const sl_side *side = n->side;
    if (n->link.connection == NULL || !n->link.connected || !sl_channel_is_ready(n->link.channel))
        return;
    if (side->reads && n->link.mailbox == NULL)
        n->link.mailbox = sl_mailbox_open(side->device);
    const sl_standing standing = {.incarnation = side->incarnation,
                                  .knows = n->process.incarnation,
                                  .trains = side->now.trains,
                                  .attempt = n->link.attempt,
                                  .credit = sl_stream_credit(&n->stream),
                                  .received = n->stream.received.frames,
                                  .received_data = n->stream.received.data,
                                  .mailbox = n->link.mailbox != NULL
                                                 ? sl_mailbox_name_of(n->link.mailbox)
                                                 : (sl_mailbox_name){{0}}};
    int result = sl_side_send_hello(side, n->link.channel, n->link.connection, &standing,
                                    &(sl_frame){.exchange = side->now.exchange});
    n->side->counters.control_frames_sent += result == 0;
    n->link.hello_sent = note_sent(n, result);
    n->link.view_told = 0; /* HELLO does not say it */
}

void sl_neighbour_tell_counts(sl_neighbour *n) {
    const sl_stream *s = &n->stream;
    /* It looks for answers, or keeps its parts until one comes; or they stay here for long, and it
     * may have sent all. */
    const bool waits = n->mutual || n->side->copies.count == 0 ||
                       n->side->limits.told_every < (n->side->limits.window + 1) / 2;
    const bool due = n->link.asked || n->link.view_told != n->side->now.view ||
                     (waits && is_due(n, s->received.data, s->received_told.data)) ||
                     is_due(n, sl_stream_credit(s), s->credit_told);
    if (due && n->link.agreed)
        sl_neighbour_send_control(n, (sl_frame){.type = SL_FRAME_CREDIT}, NULL);
}

void sl_neighbour_tell_open(sl_neighbour *n, uint64_t exchange) {
    const bool knows = n->link.exchange_told >= exchange || n->process.open_told >= exchange;
    if (!knows &&
        sl_neighbour_send(n, (sl_frame){.type = SL_FRAME_READY, .exchange = exchange}, NULL, false))
        n->process.open_told = exchange;
}

void sl_neighbour_say_bye(sl_neighbour *n) {
    if (n->link.agreed && !n->process.bye_sent)
        n->process.bye_sent = sl_neighbour_send(n, (sl_frame){.type = SL_FRAME_BYE}, NULL, false);
}

static bool send_abort(sl_neighbour *n, sl_frame_abort what, const char *why) {
    const size_t bytes = strnlen(why, SL_FRAME_TEXT_MAX);
    const sl_frame frame = {.type = SL_FRAME_ABORT,
                            .exchange = n->side->now.exchange,
                            .step = what,
                            .payload_bytes = (uint32_t)bytes,
                            .payload_sum = bytes > 0 ? sl_checksum(why, bytes) : 0};
    return n->link.connection != NULL && n->link.hello_sent && hand_over(n, frame, why);
}

void sl_neighbour_tell(sl_neighbour *n, const char *cause) {
    if (n->link.hello_sent && !n->link.abort_sent)
        n->link.abort_sent =
            send_abort(n, n->side->now.unbegun ? SL_ABORT_BEGINS : SL_ABORT_ENDS, cause);
}

void sl_neighbour_tell_dropped(sl_neighbour *n, const char *why) {
    if (n->link.agreed)
        send_abort(n, SL_ABORT_DROPS, why);
}
