/* neighbour.c - the protocol on one connection: HELLO, data under credit, heartbeats, ABORT, BYE;
 * see neighbour.h.
 *
 * Of two neighbours the higher rank connects, so that both never do at once. It says HELLO first;
 * the other side answers only if that HELLO equals its own. Then data flows under credit: each side
 * says how many data frames the other may have sent, in every frame's header, and in a CREDIT frame
 * when half a window would go untold. Silence beyond the time-out is death; heartbeats keep the
 * living from being silent.
 */
#include "agent/neighbour.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "launch/roster.h"
#include "task/layout_text.h"
#include "wire/checksum.h"

static const double retry_connect_s = 0.1;
static const double retry_refused_s = 1; /* after the other side has refused, or said nothing */
/* A silent peer is given up a little before the time-out, so that everybody has ended within it. */
static const double silence_share = 0.9;
static const uint8_t greeting_magic[8] = "starling";
enum { CONTROL_SENDS = 16, SMALLEST_BUFFER = 1024, CREDIT_AHEAD_MAX = 4096 };

int sl_neighbour_open(sl_neighbour *n, sl_error *error) {
    const sl_side *side = n->side;
    size_t frame_bytes = SL_FRAME_HEADER_BYTES + side->part_bytes_max;
    sl_buffers buffers = {.count = side->receive_buffers,
                          .bytes = frame_bytes < SMALLEST_BUFFER ? SMALLEST_BUFFER : frame_bytes};
    if (side->direct) {
        buffers.bytes = SL_FRAME_DIRECT_AT;
        buffers.rest =
            side->payload_memory + (size_t)n->index * side->receive_buffers * side->payload_stride;
        buffers.rest_bytes = side->payload_stride;
    }
    return sl_pool_open(&n->pool, side->fabric, &buffers, n, error);
}

void sl_neighbour_close(sl_neighbour *n) {
    sl_connection_close(&n->connection);
    sl_pool_close(&n->pool);
}

bool sl_neighbour_is_dialed(const sl_neighbour *n) {
    return n->rank < n->side->rank;
}

/* ---- sending ---- */

/* The node holds at most a window of its parts, whichever connection they came over. */
static uint64_t credit_now(const sl_neighbour *n) {
    return n->data_received + n->side->window - n->held;
}

static void complete_header(sl_neighbour *n, sl_frame *frame,
                            uint8_t header[SL_FRAME_HEADER_BYTES]) {
    frame->sender = n->side->rank;
    frame->credit = credit_now(n);
    sl_frame_encode(frame, header);
}

static bool note_sent(sl_neighbour *n, const sl_frame *frame, int result) {
    if (result > 0)
        n->side->retry_soon = true;
    if (result != 0)
        return false;
    n->credit_told = frame->credit;
    n->sent_s = n->side->now_s;
    return true;
}

/* A control payload is small: it is copied behind its header, so that the caller's may go. */
static bool send_small(sl_neighbour *n, sl_frame frame, const void *payload) {
    if (n->connection == NULL || !n->connected)
        return false;
    uint8_t whole[SL_FRAME_HEADER_BYTES + SL_FRAME_TEXT_MAX];
    if (frame.payload_bytes > 0) {
        memcpy(whole + SL_FRAME_HEADER_BYTES, payload, frame.payload_bytes);
        frame.payload_sum = sl_checksum(payload, frame.payload_bytes);
    }
    complete_header(n, &frame, whole);
    int result = sl_connection_send(n->connection, whole,
                                    SL_FRAME_HEADER_BYTES + frame.payload_bytes, NULL, 0, false, 0);
    n->side->counters.control_frames_sent += result == 0;
    return note_sent(n, &frame, result);
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

bool sl_neighbour_send_frame(sl_neighbour *n, const sl_frame *frame) {
    return send_small(n, *frame, NULL);
}

bool sl_neighbour_send_payload(sl_neighbour *n, const sl_frame *frame, const void *payload,
                               uint32_t cookie) {
    if (n->connection == NULL)
        return false;
    uint8_t header[SL_FRAME_HEADER_BYTES];
    sl_frame whole = *frame;
    whole.payload_sum = sl_checksum(payload, frame->payload_bytes);
    complete_header(n, &whole, header);
    int result = sl_connection_send(n->connection, header, sizeof header, payload,
                                    frame->payload_bytes, true, cookie);
    return note_sent(n, &whole, result);
}

int sl_neighbour_send_part(sl_neighbour *n, sl_outbox *outbox, sl_error *error) {
    if (n->connection == NULL || n->next_part == outbox->message.parts || n->data_sent == n->credit)
        return 0;
    uint32_t part = n->next_part;
    int encoded = sl_outbox_encode(outbox, part, error);
    if (encoded <= 0)
        return encoded;
    sl_frame frame = {
        .type = n->side->direct ? SL_FRAME_DIRECT : SL_FRAME_DATA,
        .exchange = outbox->message.exchange,
        .step = outbox->message.step,
        .part = part,
        .scalar = outbox->message.scalar,
        .payload_bytes = (uint32_t)outbox->payloads[part].bytes,
        .payload_sum = outbox->sums[part],
    };
    uint8_t header[SL_FRAME_DIRECT_AT] = {0};
    complete_header(n, &frame, header);
    int result = sl_connection_send(n->connection, header, n->side->header_bytes,
                                    outbox->payloads[part].data, frame.payload_bytes, true, part);
    if (!note_sent(n, &frame, result))
        return 0;
    n->exchange_told = frame.exchange;
    n->next_part++;
    n->data_sent++;
    return 1;
}

int sl_side_send_hello(const sl_side *side, sl_connection *connection, sl_frame *frame) {
    uint8_t header[SL_FRAME_HEADER_BYTES];
    frame->type = SL_FRAME_HELLO;
    frame->sender = side->rank;
    frame->payload_bytes = (uint32_t)side->hello_size;
    frame->payload_sum = sl_checksum(side->hello_bytes, side->hello_size);
    sl_frame_encode(frame, header);
    return sl_connection_send(connection, header, sizeof header, side->hello_bytes,
                              side->hello_size, false, 0);
}

static void say_hello(sl_neighbour *n) {
    if (n->connection == NULL || !n->connected)
        return;
    sl_frame frame = {.exchange = n->side->exchange, .credit = credit_now(n)};
    int result = sl_side_send_hello(n->side, n->connection, &frame);
    n->side->counters.control_frames_sent += result == 0;
    n->hello_sent = note_sent(n, &frame, result);
}

void sl_neighbour_consumed(sl_neighbour *n, sl_buffer *buffer) {
    n->held--;
    sl_buffer_release(buffer);
    if (credit_now(n) - n->credit_told >= (n->side->window + 1) / 2)
        sl_neighbour_send_control(n, SL_FRAME_CREDIT, NULL, 0);
}

void sl_neighbour_tell(sl_neighbour *n, const char *cause) {
    if (n->hello_sent && !n->told)
        n->told =
            sl_neighbour_send_control(n, SL_FRAME_ABORT, cause, strnlen(cause, SL_FRAME_TEXT_MAX));
}

/* ---- connecting ---- */

void sl_neighbour_greeting(const sl_side *side, uint32_t to, uint8_t out[SL_GREETING_BYTES]) {
    memcpy(out, greeting_magic, sizeof greeting_magic);
    memcpy(out + 8, &side->rank, sizeof side->rank);
    memcpy(out + 12, &to, sizeof to);
}

bool sl_neighbour_read_greeting(const uint8_t greeting[SL_GREETING_BYTES], uint32_t *from,
                                uint32_t *to) {
    memcpy(from, greeting + 8, sizeof *from);
    memcpy(to, greeting + 12, sizeof *to);
    return memcmp(greeting, greeting_magic, sizeof greeting_magic) == 0;
}

/* Everything that is said of one connection begins anew. */
static void reset(sl_neighbour *n) {
    n->connected = n->hello_sent = n->agreed = n->dialed = false;
    n->bye_sent = n->bye_received = n->told = false;
    n->data_sent = n->credit = n->data_received = n->credit_told = 0;
    n->exchange = n->exchange_told = 0;
    n->next_part = 0;
    n->bytes_heard = 0;
    n->heard_s = n->sent_s = n->side->now_s;
}

void sl_neighbour_drop(sl_neighbour *n, const char *why) {
    if (!n->agreed && !n->doubted && why != NULL)
        snprintf(n->refusal, sizeof n->refusal, "%.*s", SL_REFUSAL_MAX - 1, why);
    n->next_attempt_s =
        n->side->now_s + (n->connected && !n->agreed ? retry_refused_s : retry_connect_s);
    sl_connection_close(&n->connection);
    reset(n);
}

static int open_connection(sl_neighbour *n, sl_error *error) {
    return sl_connection_open(&n->connection, n->side->fabric, n->side->handlers, n,
                              n->side->window + CONTROL_SENDS, error);
}

void sl_neighbour_dial_if_due(sl_neighbour *n) {
    sl_side *side = n->side;
    if (n->connection != NULL || (!sl_neighbour_is_dialed(n) && !n->doubted) ||
        side->now_s < n->next_attempt_s)
        return;
    uint8_t greeting[SL_GREETING_BYTES];
    sl_neighbour_greeting(side, n->rank, greeting);
    struct sockaddr_storage address = sl_roster_address(side->roster, n->rank);
    sl_error error;
    reset(n);
    int result = open_connection(n, &error);
    if (result == 0)
        result = sl_connection_dial(n->connection, &address, greeting, &error);
    n->dialed = true;
    n->dialed_s = side->now_s;
    if (result != 0)
        sl_neighbour_drop(n, error.text);
}

/* Its HELLO equals ours: from now on it is the neighbour. */
static void agree(sl_neighbour *n, const sl_frame *hello) {
    n->agreed = true;
    n->doubted = false;
    n->refusal[0] = '\0';
    n->credit = hello->credit;
    n->heard_s = n->side->now_s;
    sl_connection_grant(n->connection, n->pool);
}

void sl_neighbour_adopt(sl_neighbour *n, sl_connection *connection, bool connected,
                        const sl_frame *hello) {
    sl_connection_close(&n->connection);
    reset(n);
    n->connection = connection;
    sl_connection_adopt(connection, n->side->handlers, n);
    agree(n, hello);
    if (connected && n->connection != NULL)
        sl_neighbour_connected(n);
}

void sl_neighbour_connected(sl_neighbour *n) {
    n->connected = true;
    n->heard_s = n->side->now_s;
    say_hello(n);
}

/* ---- HELLO ---- */

typedef struct value {
    const char *key;
    uint64_t ours, theirs;
} value;

/* What HELLO holds in full. */
static const value *value_that_differs(const value *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (values[i].ours != values[i].theirs)
            return &values[i];
    return NULL;
}

static const char model_layout[] = "model layout";

/* A layout that HELLO does not hold to its end may differ behind. */
static bool name_tensor(const sl_hello *ours, uint32_t rank, const sl_hello *theirs, uint32_t peer,
                        char text[SL_REFUSAL_MAX]) {
    char tensor[SL_REFUSAL_MAX - 64];
    if (!sl_layout_text_differs((sl_layout_text){theirs->layout, theirs->layout_bytes},
                                (sl_layout_text){ours->layout, ours->layout_bytes}, tensor,
                                sizeof tensor))
        return false;
    snprintf(text, SL_REFUSAL_MAX, "the tensors of agents %u (there) and %u (here) differ: %s",
             peer, rank, tensor);
    return true;
}

/* What HELLO holds a hash of. */
static const char *section_that_differs(const sl_hello *ours, const sl_hello *theirs) {
    if (ours->topology_hash != theirs->topology_hash)
        return "topology";
    for (uint32_t i = 0; i < ours->section_count; i++)
        if (ours->section_count != theirs->section_count ||
            ours->sections[i] != theirs->sections[i])
            return sl_section_name((sl_section)i);
    if (ours->layout_hash != theirs->layout_hash)
        return model_layout;
    if (ours->direct != theirs->direct)
        return "way of payloads (transport.gpu_direct; \"off\" for all suits any pair)";
    return ours->data_hash != theirs->data_hash ? "content of the data set, or of model.start,"
                                                : NULL;
}

bool sl_hello_differs(const sl_hello *ours, uint32_t rank, const sl_hello *theirs, uint32_t peer,
                      char text[SL_REFUSAL_MAX]) {
    const value inputs[] = {{"seed", ours->seed, theirs->seed},
                            {"topology's number of nodes", ours->nodes, theirs->nodes}};
    const value results[] = {{"rounds", ours->rounds, theirs->rounds},
                             {"model's number of parameters", ours->dimension, theirs->dimension},
                             {"transport.chunk_bytes", ours->chunk_bytes, theirs->chunk_bytes}};
    const char *section = ours->run_id != theirs->run_id ? "run id" : NULL;
    const value *v = section == NULL ? value_that_differs(inputs, 2) : NULL;
    if (section == NULL && v == NULL)
        section = section_that_differs(ours, theirs);
    if (section == NULL && v == NULL)
        v = value_that_differs(results, 3);
    if (v != NULL)
        snprintf(text, SL_REFUSAL_MAX,
                 "the %s of agents %u and %u differs: %" PRIu64 " and %" PRIu64, v->key, peer, rank,
                 v->theirs, v->ours);
    else if (section == model_layout && name_tensor(ours, rank, theirs, peer, text))
        return true;
    else if (section != NULL)
        snprintf(text, SL_REFUSAL_MAX, "the %s of agents %u and %u differs; %s", section, peer,
                 rank,
                 ours->run_id != theirs->run_id
                     ? "give both the same --run-id"
                     : "run `starling check` on both hosts' experiment files and compare");
    return section != NULL || v != NULL;
}

/* ---- receiving, before it has agreed ---- */

static int fail(const sl_neighbour *n, sl_error *error, int code, const char *text) {
    return sl_fail_edge(error, code, n->rank, n->side->rank, n->side->round, "%s", text);
}

/* Text from outside, made printable. */
static void take_text(char out[SL_FRAME_TEXT_MAX], const uint8_t *text, size_t bytes) {
    size_t length = bytes < SL_FRAME_TEXT_MAX - 1 ? bytes : SL_FRAME_TEXT_MAX - 1;
    for (size_t i = 0; i < length; i++)
        out[i] = text[i] >= ' ' && text[i] < 127 ? (char)text[i] : '?';
    out[length] = '\0';
}

/* The HELLO of whom this agent has dialed. The roster names its address, so that a difference of
 * configuration is its own, and ends the run. */
static int judge_hello(sl_neighbour *n, const sl_frame *frame, const uint8_t *payload,
                       sl_error *error) {
    sl_hello theirs;
    char text[SL_REFUSAL_MAX];
    const char *wrong = sl_hello_decode(&theirs, payload, frame->payload_bytes);
    if (wrong != NULL) {
        sl_neighbour_drop(n, wrong);
        return 0;
    }
    bool differs = sl_hello_differs(&n->side->hello, n->side->rank, &theirs, n->rank, text);
    if (differs && theirs.run_id == n->side->hello.run_id)
        return sl_fail_edge(error, SL_EPEER, n->rank, n->side->rank, n->side->round, "refused: %s",
                            text);
    if (differs) {
        sl_neighbour_drop(n, text);
        return 0;
    }
    if (!sl_neighbour_is_dialed(n)) { /* it is as it should be: who greeted in its name is not it */
        n->doubted = false;
        n->refusal[0] = '\0';
        sl_neighbour_drop(n, NULL);
        return 0;
    }
    agree(n, frame);
    return 0;
}

static int take_first(sl_neighbour *n, const sl_frame *frame, const uint8_t *payload,
                      sl_error *error) {
    char said[SL_FRAME_TEXT_MAX], text[SL_REFUSAL_MAX];
    if (frame->sender != n->rank) {
        snprintf(text, sizeof text,
                 "agent %u answers at %.100s:%u, which the roster names as agent %u's address: the "
                 "rosters differ, or their order",
                 frame->sender, sl_roster_host(n->side->roster, n->rank),
                 sl_roster_port(n->side->roster, n->rank), n->rank);
    } else if (frame->type == SL_FRAME_HELLO) {
        return judge_hello(n, frame, payload, error);
    } else if (frame->type == SL_FRAME_ABORT) {
        take_text(said, payload, frame->payload_bytes);
        snprintf(text, sizeof text, "refused: %.300s", said);
    } else {
        snprintf(text, sizeof text, "agent %u did not begin with HELLO", n->rank);
    }
    sl_neighbour_drop(n, text);
    return 0;
}

/* ---- receiving ---- */

static int take_data(sl_neighbour *n, const sl_frame *frame, sl_buffer *buffer, sl_event *event,
                     sl_error *error) {
    n->held++;
    if (++n->data_received > n->credit_told)
        return sl_fail_edge(error, SL_EPROTO, n->rank, n->side->rank, n->side->round,
                            "agent %u sent %" PRIu64 " data frames, more than the %" PRIu64
                            " that it was allowed",
                            n->rank, n->data_received, n->credit_told);
    *event = (sl_event){
        .type = SL_EVENT_RECEIVED,
        .peer = n->rank,
        .exchange = frame->exchange,
        .step = frame->step,
        .part = frame->part,
        .scalar = frame->scalar,
        .payload = {n->side->direct ? buffer->rest : buffer->data + SL_FRAME_HEADER_BYTES,
                    frame->payload_bytes},
        .token = buffer,
    };
    return SL_ARRIVED_DATA;
}

static int take_control(sl_neighbour *n, const sl_frame *frame, const uint8_t *payload,
                        sl_error *error) {
    n->side->counters.control_frames_received++;
    switch (frame->type) {
    case SL_FRAME_ABORT:
        take_text(n->cause, payload, frame->payload_bytes);
        return sl_fail_edge(error, SL_EPEER, n->rank, n->side->rank, n->side->round,
                            "agent %u ended: %s", n->rank, n->cause);
    case SL_FRAME_HELLO:
        return fail(n, error, SL_EPROTO, "HELLO came twice");
    case SL_FRAME_BYE:
        n->bye_received = true;
        break;
    case SL_FRAME_MEET:
    case SL_FRAME_WANT:
    case SL_FRAME_SUM:
        return SL_ARRIVED_CALL;
    case SL_FRAME_CUT:
        return SL_ARRIVED_CUT;
    case SL_FRAME_CREDIT:
    case SL_FRAME_HEARTBEAT:
    case SL_FRAME_DATA:
    case SL_FRAME_DIRECT:
    case SL_FRAME_TYPE_END:
        break;
    }
    return SL_ARRIVED_NOTHING;
}

static bool tells_exchange(const sl_frame *frame) {
    return frame->type == SL_FRAME_DATA || frame->type == SL_FRAME_DIRECT ||
           frame->type == SL_FRAME_CREDIT || frame->type == SL_FRAME_HEARTBEAT;
}

static int take_agreed(sl_neighbour *n, const sl_frame *frame, sl_buffer *buffer, sl_event *event,
                       sl_error *error) {
    n->heard_s = n->side->now_s;
    n->bytes_heard = 0;
    if (frame->credit > n->credit)
        n->credit = frame->credit;
    if (tells_exchange(frame) && frame->exchange > n->exchange)
        n->exchange = frame->exchange;
    if (frame->type == SL_FRAME_DATA || frame->type == SL_FRAME_DIRECT)
        return take_data(n, frame, buffer, event, error);
    return take_control(n, frame, buffer->data + SL_FRAME_HEADER_BYTES, error);
}

static int refuse_frame(sl_neighbour *n, const char *wrong, sl_error *error) {
    char text[160];
    n->side->counters.frames_corrupted++;
    snprintf(text, sizeof text, "agent %u sent a malformed frame, which ends the run: %s", n->rank,
             wrong);
    if (n->agreed)
        return fail(n, error, SL_EPROTO, text);
    sl_neighbour_drop(n, wrong);
    return 0;
}

int sl_neighbour_take(sl_neighbour *n, sl_buffer *buffer, size_t bytes, sl_event *event,
                      sl_frame *frame, sl_error *error) {
    const char *wrong =
        sl_frame_decode(frame, buffer->data, bytes, n->side->part_bytes_max, n->side->direct);
    if (wrong == NULL && n->agreed && frame->sender != n->rank)
        wrong = "it names another sender";
    if (wrong == NULL && frame->credit > n->data_sent + CREDIT_AHEAD_MAX)
        wrong = "its credit is out of range";
    int result = 0;
    if (wrong != NULL)
        result = refuse_frame(n, wrong, error);
    else if (n->agreed)
        result = take_agreed(n, frame, buffer, event, error);
    else
        result = take_first(n, frame, buffer->data + SL_FRAME_HEADER_BYTES, error);
    if (result <= 0)
        sl_buffer_release(buffer);
    return result;
}

/* ---- time ---- */

/* Bytes of a frame that is not whole yet are a sign of life: on a slow link it may take long. */
static void hear_bytes(sl_neighbour *n) {
    const uint64_t bytes = sl_connection_bytes_received(n->connection);
    if (n->bytes_heard > 0 && bytes > n->bytes_heard)
        n->heard_s = n->side->now_s;
    n->bytes_heard = bytes;
}

int sl_neighbour_tick(sl_neighbour *n, sl_error *error) {
    const sl_side *side = n->side;
    double limit_s = silence_share * side->timeout_s;
    if (n->connected && !n->hello_sent) /* there was no room for it */
        say_hello(n);
    if (n->connection != NULL && !n->agreed) {
        if (side->now_s - n->dialed_s > limit_s)
            sl_neighbour_drop(n, n->connected ? "it accepted the connection and said nothing"
                                              : "it did not accept the connection");
        return 0;
    }
    if (!n->connected)
        return 0;
    if (!n->bye_received && side->now_s - n->heard_s > limit_s / 2)
        hear_bytes(n);
    if (!n->bye_received && side->now_s - n->heard_s > limit_s)
        return sl_fail_edge(error, SL_EPEER, n->rank, side->rank, side->round,
                            "agent %u has been silent for %.1f s; silence may last %g s, %g %% of "
                            "transport.timeout_s (%g)",
                            n->rank, side->now_s - n->heard_s, limit_s, 100 * silence_share,
                            side->timeout_s);
    const bool due = side->now_s - n->sent_s > side->timeout_s / 5 ||
                     (side->meets && n->exchange_told < side->exchange);
    if (!n->bye_sent && due)
        sl_neighbour_send_control(n, SL_FRAME_HEARTBEAT, NULL, 0);
    return 0;
}
