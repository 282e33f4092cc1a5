/* neighbour.c - the protocol on one connection: who connects, HELLO, data under credit, heartbeats,
 * ABORT, BYE.
 *
 * Of two neighbours the higher rank connects, so that both never do at once. After HELLO has been
 * compared on both sides, data flows under credit: each side says how many data frames the other
 * may have sent since the start, in every frame's header, and in a CREDIT frame when half a window
 * would go untold. Silence beyond the time-out is death; heartbeats keep the living from being
 * silent.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/state.h"

static const double retry_connect_s = 0.1;
/* A silent peer is given up a little before the time-out, so that everybody has ended within it. */
static const double silence_share = 0.9;
static const uint8_t greeting_magic[8] = "starling";
enum { CONTROL_SENDS = 16, SMALLEST_BUFFER = 1024, CREDIT_AHEAD_MAX = 4096 };

static uint64_t round_of(const neighbour *n) {
    return sl_node_round(n->agent->node);
}

static void fail_edge(neighbour *n, int code, const char *text) {
    char whole[SL_FRAME_TEXT_MAX];
    snprintf(whole, sizeof whole, "edge %u->%u, round %" PRIu64 ": %s", n->rank,
             n->agent->settings.rank, round_of(n), text);
    sl_agent_fail(n->agent, code, whole, whole);
}

neighbour *sl_neighbour_find(sl_agent *agent, uint32_t rank) {
    for (uint32_t i = 0; i < agent->neighbour_count; i++)
        if (agent->neighbours[i].rank == rank)
            return &agent->neighbours[i];
    return NULL;
}

/* ---- sending ---- */

static uint64_t credit_now(const neighbour *n) {
    return n->data_consumed + n->agent->window;
}

static void complete_header(neighbour *n, sl_frame *frame, uint8_t header[SL_FRAME_HEADER_BYTES]) {
    frame->sender = n->agent->settings.rank;
    frame->credit = credit_now(n);
    sl_frame_encode(frame, header);
}

static bool note_sent(neighbour *n, const sl_frame *frame, int result) {
    if (result > 0)
        n->agent->retry_soon = true;
    if (result != 0)
        return false;
    n->credit_told = frame->credit;
    n->sent_s = n->agent->now_s;
    return true;
}

bool sl_neighbour_send_control(neighbour *n, sl_frame_type type, const void *payload,
                               size_t bytes) {
    if (n->link == NULL || !n->connected)
        return false;
    /* A control payload is small: it is copied behind its header, so that the caller's may go. */
    uint8_t whole[SL_FRAME_HEADER_BYTES + SL_FRAME_TEXT_MAX];
    sl_frame frame = {.type = type, .payload_bytes = (uint32_t)bytes};
    if (bytes > 0) {
        memcpy(whole + SL_FRAME_HEADER_BYTES, payload, bytes);
        frame.payload_sum = sl_checksum(payload, bytes);
    }
    complete_header(n, &frame, whole);
    int result = sl_link_send(n->link, whole, SL_FRAME_HEADER_BYTES + bytes, NULL, 0, false, 0);
    n->agent->counters.control_frames_sent += result == 0;
    return note_sent(n, &frame, result);
}

bool sl_neighbour_send_part(neighbour *n) {
    sl_agent *a = n->agent;
    if (n->link == NULL || n->next_part == a->message.parts || n->data_sent == n->credit)
        return false;
    if (n->next_part == a->encoded && !sl_agent_encode_next(a))
        return false;
    uint32_t part = n->next_part;
    sl_frame frame = {
        .type = a->direct ? SL_FRAME_DIRECT : SL_FRAME_DATA,
        .exchange = a->message.exchange,
        .step = a->message.step,
        .part = part,
        .scalar = a->message.scalar,
        .payload_bytes = (uint32_t)a->payloads[part].bytes,
        .payload_sum = a->payload_sums[part],
    };
    uint8_t header[SL_FRAME_DIRECT_AT] = {0};
    complete_header(n, &frame, header);
    int result = sl_link_send(n->link, header, a->header_bytes, a->payloads[part].data,
                              frame.payload_bytes, true, part);
    if (!note_sent(n, &frame, result))
        return false;
    n->next_part++;
    n->data_sent++;
    return true;
}

static void tell_credit_if_due(neighbour *n) {
    if (credit_now(n) - n->credit_told >= (n->agent->window + 1) / 2)
        sl_neighbour_send_control(n, SL_FRAME_CREDIT, NULL, 0);
}

void sl_neighbour_consumed(neighbour *n, uint8_t *buffer) {
    n->data_consumed++;
    if (n->link != NULL)
        sl_link_repost(n->link, buffer);
    tell_credit_if_due(n);
}

/* ---- HELLO ---- */

/* What differs between two agents that should run the same experiment; NULL: nothing. */
static const char *difference(const sl_hello *ours, const sl_hello *theirs) {
    if (ours->run_id != theirs->run_id)
        return "run id";
    if (ours->nodes != theirs->nodes || ours->topology_hash != theirs->topology_hash)
        return "topology";
    for (uint32_t i = 0; i < ours->section_count; i++)
        if (ours->section_count != theirs->section_count ||
            ours->sections[i] != theirs->sections[i])
            return sl_section_name((sl_section)i);
    if (ours->dimension != theirs->dimension || ours->layout_hash != theirs->layout_hash)
        return "model layout";
    if (ours->rounds != theirs->rounds)
        return "rounds";
    if (ours->chunk_bytes != theirs->chunk_bytes)
        return "transport.chunk_bytes";
    if (ours->direct != theirs->direct)
        return "way of payloads (transport.gpu_direct; \"off\" for all suits any pair)";
    return ours->data_hash != theirs->data_hash ? "data set content" : NULL;
}

static void handle_hello(neighbour *n, const uint8_t *payload, size_t bytes) {
    sl_hello theirs;
    const char *wrong = sl_hello_decode(&theirs, payload, bytes);
    if (wrong != NULL) {
        fail_edge(n, SL_EPROTO, wrong);
        return;
    }
    const char *differs = difference(&n->agent->hello, &theirs);
    if (differs == NULL) {
        n->agreed = true;
        return;
    }
    char text[256];
    snprintf(text, sizeof text,
             "refused: the %s of agents %u and %u differs; run `starling check` on both hosts' "
             "experiment files and compare",
             differs, n->rank, n->agent->settings.rank);
    fail_edge(n, SL_EPEER, text);
}

static void say_hello(neighbour *n) {
    uint8_t hello[SL_HELLO_BYTES];
    sl_hello_encode(&n->agent->hello, hello);
    sl_neighbour_send_control(n, SL_FRAME_HELLO, hello, sizeof hello);
}

/* ---- receiving ---- */

static void handle_data(neighbour *n, const sl_frame *frame, uint8_t *buffer) {
    if (!n->agreed) {
        fail_edge(n, SL_EPROTO, "data came before agreement");
        return;
    }
    const uint8_t *payload =
        n->agent->direct ? sl_link_rest(n->link, buffer) : buffer + SL_FRAME_HEADER_BYTES;
    sl_event event = {
        .type = SL_EVENT_RECEIVED,
        .peer = n->rank,
        .exchange = frame->exchange,
        .step = frame->step,
        .part = frame->part,
        .scalar = frame->scalar,
        .payload = {payload, frame->payload_bytes},
        .token = buffer,
    };
    /* The header has been read: its place remembers whose buffer this is until the token comes
     * back. */
    memcpy(buffer, &n, sizeof n);
    sl_agent_deliver(n->agent, &event);
}

static void handle_abort(neighbour *n, const uint8_t *payload, size_t bytes) {
    char cause[SL_FRAME_TEXT_MAX];
    size_t length = bytes < sizeof cause - 1 ? bytes : sizeof cause - 1;
    for (size_t i = 0; i < length; i++)
        cause[i] = payload[i] >= ' ' && payload[i] < 127 ? (char)payload[i] : '?';
    cause[length] = '\0';
    char whole[SL_ERROR_TEXT_MAX];
    snprintf(whole, sizeof whole, "edge %u->%u, round %" PRIu64 ": agent %u ended: %s", n->rank,
             n->agent->settings.rank, round_of(n), n->rank, cause);
    sl_agent_fail(n->agent, SL_EPEER, whole, cause);
}

static void handle_control(neighbour *n, const sl_frame *frame, uint8_t *buffer) {
    n->agent->counters.control_frames_received++;
    switch (frame->type) {
    case SL_FRAME_HELLO:
        handle_hello(n, buffer + SL_FRAME_HEADER_BYTES, frame->payload_bytes);
        break;
    case SL_FRAME_ABORT:
        handle_abort(n, buffer + SL_FRAME_HEADER_BYTES, frame->payload_bytes);
        break;
    case SL_FRAME_BYE:
        n->bye_received = true;
        break;
    case SL_FRAME_CREDIT:
    case SL_FRAME_HEARTBEAT:
    case SL_FRAME_DATA:
    case SL_FRAME_DIRECT:
    case SL_FRAME_TYPE_END:
        break;
    }
    if (n->link != NULL)
        sl_link_repost(n->link, buffer);
}

static void on_received(void *context, void *owner, uint8_t *buffer, size_t bytes) {
    sl_agent *a = context;
    neighbour *n = owner;
    sl_frame frame;
    const char *wrong =
        sl_frame_decode(&frame, buffer, bytes, sl_node_part_bytes_max(a->node), a->direct);
    if (wrong == NULL && frame.sender != n->rank)
        wrong = "the frame names another sender";
    if (wrong == NULL && frame.credit > n->data_sent + CREDIT_AHEAD_MAX)
        wrong = "credit out of range";
    if (wrong != NULL) {
        a->counters.frames_corrupted++;
        char text[128];
        snprintf(text, sizeof text, "corrupted frame dropped with its connection: %s", wrong);
        fail_edge(n, SL_EPROTO, text);
        return;
    }
    n->heard_s = a->now_s;
    if (frame.credit > n->credit)
        n->credit = frame.credit;
    if (frame.type == SL_FRAME_DATA || frame.type == SL_FRAME_DIRECT)
        handle_data(n, &frame, buffer);
    else
        handle_control(n, &frame, buffer);
}

static void on_sent(void *context, void *owner, uint32_t cookie) {
    (void)owner;
    sl_agent_part_left(context, cookie);
}

/* ---- connecting ---- */

static sl_link *open_link(neighbour *n) {
    sl_agent *a = n->agent;
    size_t frame_bytes = SL_FRAME_HEADER_BYTES + sl_node_part_bytes_max(a->node);
    sl_link_settings settings = {
        .owner = n, .buffer_count = a->receive_buffers, .send_count = a->window + CONTROL_SENDS};
    settings.buffer_bytes = frame_bytes < SMALLEST_BUFFER ? SMALLEST_BUFFER : frame_bytes;
    if (a->direct) {
        settings.buffer_bytes = SL_FRAME_DIRECT_AT;
        settings.rest = a->payload_memory +
                        (size_t)(n - a->neighbours) * a->receive_buffers * a->payload_stride;
        settings.rest_bytes = a->payload_stride;
    }
    sl_error error;
    sl_link *link;
    int result = sl_link_open(&link, a->fabric, &settings, &error);
    if (result != 0) {
        sl_agent_fail(a, result, error.text, error.text);
        return NULL;
    }
    return link;
}

static void greet(const neighbour *n, uint8_t greeting[SL_FABRIC_GREETING_BYTES]) {
    memset(greeting, 0, SL_FABRIC_GREETING_BYTES);
    memcpy(greeting, greeting_magic, sizeof greeting_magic);
    memcpy(greeting + sizeof greeting_magic, &n->agent->settings.rank, sizeof(uint32_t));
}

/* Is there no connection yet, and still one to be made? */
static bool is_awaited(const neighbour *n) {
    const sl_agent *a = n->agent;
    return a->phase == PHASE_CONNECTING || (a->parting && !n->agreed && !n->told);
}

static void try_to_connect(neighbour *n) {
    uint8_t greeting[SL_FABRIC_GREETING_BYTES];
    greet(n, greeting);
    n->next_attempt_s = n->agent->now_s + retry_connect_s;
    n->link = open_link(n);
    sl_error error;
    if (n->link != NULL &&
        sl_link_connect(n->link, sl_roster_host(n->agent->roster, n->rank),
                        sl_roster_port(n->agent->roster, n->rank), greeting, &error) != 0)
        sl_link_close(&n->link);
}

static void connect_if_due(neighbour *n) {
    sl_agent *a = n->agent;
    if (n->link == NULL && is_awaited(n) && n->rank < a->settings.rank &&
        a->now_s >= n->next_attempt_s)
        try_to_connect(n);
}

static sl_link *on_requested(void *context, const uint8_t greeting[SL_FABRIC_GREETING_BYTES]) {
    sl_agent *a = context;
    uint32_t rank;
    memcpy(&rank, greeting + sizeof greeting_magic, sizeof rank);
    neighbour *n = sl_neighbour_find(a, rank);
    if (memcmp(greeting, greeting_magic, sizeof greeting_magic) != 0 || n == NULL ||
        rank < a->settings.rank || n->link != NULL || !is_awaited(n))
        return NULL;
    n->link = open_link(n);
    return n->link;
}

static void on_connected(void *context, void *owner) {
    sl_agent *a = context;
    neighbour *n = owner;
    n->connected = true;
    n->heard_s = a->now_s;
    say_hello(n);
}

static void on_down(void *context, void *owner, bool established, const char *reason) {
    sl_agent *a = context;
    neighbour *n = owner;
    sl_link_close(&n->link);
    n->connected = false;
    n->next_attempt_s = a->now_s + retry_connect_s;
    if (!established || n->bye_received || a->phase == PHASE_OVER)
        return;
    char text[256];
    snprintf(text, sizeof text, "agent %u is gone: %s", n->rank, reason);
    fail_edge(n, SL_EPEER, text);
}

const sl_fabric_handlers *sl_neighbour_handlers(void) {
    static const sl_fabric_handlers handlers = {
        .requested = on_requested,
        .connected = on_connected,
        .received = on_received,
        .sent = on_sent,
        .down = on_down,
    };
    return &handlers;
}

/* ---- time ---- */

void sl_neighbour_tick(neighbour *n) {
    sl_agent *a = n->agent;
    double now_s = a->now_s;
    double timeout_s = a->settings.experiment->transport.timeout_s;
    connect_if_due(n);
    if (!n->connected)
        return;
    if (!n->bye_received && now_s - n->heard_s > silence_share * timeout_s) {
        char text[160];
        snprintf(text, sizeof text,
                 "agent %u has been silent for %.1f s (transport.timeout_s is %g)", n->rank,
                 now_s - n->heard_s, timeout_s);
        fail_edge(n, SL_EPEER, text);
    } else if (!n->bye_sent && now_s - n->sent_s > timeout_s / 5) {
        sl_neighbour_send_control(n, SL_FRAME_HEARTBEAT, NULL, 0);
    }
}

bool sl_neighbour_part(neighbour *n, const char *cause) {
    connect_if_due(n);
    if (!n->told)
        n->told =
            sl_neighbour_send_control(n, SL_FRAME_ABORT, cause, strnlen(cause, SL_FRAME_TEXT_MAX));
    return n->link != NULL || is_awaited(n);
}
