/* unverified.c - see unverified.h. */
#include "agent/peers/unverified.h"

#include <stdio.h>
#include <string.h>

#include "wire/checksum.h"

static const double patience_s = 3; /* for HELLO */
static const double parting_s = 1;  /* for a refusal to arrive */
enum { SENDS = 4 };                 /* the longest handshake is two frames; then HELLO, and ABORT */

/* Of "host:port". The port is another one each time. */
static size_t host_length(const char *from) {
    const char *colon = strrchr(from, ':');
    return colon != NULL ? (size_t)(colon - from) : strlen(from);
}

/* who: empty before it is a visitor. */
static void tell(sl_unverified_list *v, const char *who, const char *from, const char *why) {
    char text[SL_ERROR_TEXT_MAX + 256];
    snprintf(text, sizeof text, "a connection from %.*s%s was refused: %s", (int)host_length(from),
             from, who, why);
    sl_refusals_note(&v->refusals, v->side->now_s,
                     who[0] == '\0' ? SL_REFUSED_GREETING : SL_REFUSED_HELLO, 1, text);
}

/* Also one that has not proved itself. */
static void tell_of(sl_unverified_list *v, const sl_unverified *visitor, const char *why) {
    char who[64];
    snprintf(who, sizeof who, " that calls itself agent %u", visitor->rank);
    tell(v, who, visitor->from, why);
}

static void close_connection(sl_unverified *visitor) {
    sl_connection_close(&visitor->connection);
    sl_channel_close(&visitor->channel);
}

void sl_unverified_refuse(sl_unverified_list *v, sl_unverified *visitor, const char *why) {
    close_connection(visitor);
    if (why != NULL && !visitor->refused)
        tell_of(v, visitor, why);
}

/* A free place; if there is none, the oldest visitor's. */
static sl_unverified *find_place(sl_unverified_list *v) {
    sl_unverified *oldest = &v->list[0];
    for (int i = 0; i < SL_UNVERIFIED_MAX; i++) {
        if (v->list[i].connection == NULL)
            return &v->list[i];
        if (v->list[i].came_s < oldest->came_s)
            oldest = &v->list[i];
    }
    sl_unverified_refuse(v, oldest, "others came while it said nothing");
    return oldest;
}

static int open_visitor(sl_unverified_list *v, sl_unverified *visitor, const sl_passage *passage,
                        sl_error *error) {
    sl_side *side = v->side;
    int result =
        sl_connection_open(&visitor->connection, side->fabric, v->handlers, visitor, SENDS, error);
    if (result == 0)
        result = sl_channel_open(&visitor->channel, &side->guard, visitor->connection, passage,
                                 false, error);
    return result;
}

sl_connection *sl_unverified_welcome(sl_unverified_list *v, const sl_passage *passage,
                                     const char *from, char why[SL_GREETING_WHY_MAX]) {
    sl_unverified *visitor = find_place(v);
    *visitor = (sl_unverified){.rank = passage->from, .came_s = v->side->now_s};
    visitor->deadline_s = v->side->now_s + patience_s;
    snprintf(visitor->from, sizeof visitor->from, "%s", from);
    sl_error error;
    if (open_visitor(v, visitor, passage, &error) != 0) {
        snprintf(why, SL_GREETING_WHY_MAX, "it has no room for it");
        close_connection(visitor);
        tell(v, "", from, error.text);
    }
    return visitor->connection;
}

void sl_unverified_note_refused(sl_unverified_list *v, const char *from, const char *why) {
    tell(v, "", from, why);
}

static void let_arrive(const sl_unverified_list *v, sl_unverified *visitor) {
    visitor->refused = true;
    visitor->deadline_s = v->side->now_s + parting_s;
}

/* Sends ABORT, and gives it time to arrive. */
static void abort_it(sl_unverified_list *v, sl_unverified *visitor, sl_frame_abort kind,
                     uint64_t followed, const char *why) {
    uint8_t whole[SL_FRAME_HEADER_BYTES + SL_FRAME_TEXT_MAX];
    const size_t bytes = strlen(why);
    sl_frame frame = {.type = SL_FRAME_ABORT,
                      .sender = v->side->rank,
                      .step = kind,
                      .exchange = followed,
                      .payload_bytes = (uint32_t)bytes,
                      .payload_sum = sl_checksum(why, bytes)};
    sl_frame_encode(&frame, whole);
    memcpy(whole + SL_FRAME_HEADER_BYTES, why, bytes);
    sl_channel_send(visitor->channel, visitor->connection, v->side->now_s, whole,
                    SL_FRAME_HEADER_BYTES + bytes, NULL, 0, false);
    let_arrive(v, visitor);
}

void sl_unverified_confirm(sl_unverified_list *v, sl_unverified *visitor) {
    const sl_standing standing = {.incarnation = v->side->incarnation};
    sl_side_send_hello(v->side, visitor->channel, visitor->connection, &standing, &(sl_frame){0});
    let_arrive(v, visitor);
}

void sl_unverified_turn_away(sl_unverified_list *v, sl_unverified *visitor, uint64_t followed,
                             const char *why) {
    tell_of(v, visitor, why);
    abort_it(v, visitor, followed != 0 ? SL_ABORT_FOLLOWED : SL_ABORT_ENDS, followed, why);
}

void sl_unverified_say_join(sl_unverified_list *v, sl_unverified *visitor, const char *why) {
    tell_of(v, visitor, why);
    abort_it(v, visitor, SL_ABORT_TRAINS, 0, why);
}

static const char *read_hello(const sl_unverified *visitor, const sl_frame *frame,
                              const sl_buffer *buffer, sl_hello *hello) {
    const sl_passage *proved = sl_channel_passage(visitor->channel);
    if (frame->type != SL_FRAME_HELLO)
        return "it did not begin with HELLO";
    if (frame->sender != visitor->rank)
        return "HELLO names another sender";
    const char *wrong =
        sl_hello_decode(hello, buffer->data + SL_FRAME_HEADER_BYTES, frame->payload_bytes);
    if (wrong == NULL && proved != NULL && proved->incarnation != hello->standing.incarnation)
        wrong = "HELLO names another incarnation than its greeting";
    return wrong;
}

static sl_verdict judge(sl_unverified_list *v, sl_unverified *visitor, const sl_hello *hello,
                        char text[SL_REFUSAL_MAX]) {
    if (!sl_hello_differs(v->side, hello, visitor->rank, text))
        return SL_VERDICT_EQUAL;
    if (hello->run_id != v->side->hello.run_id) {
        sl_unverified_turn_away(v, visitor, 0, text);
        return SL_VERDICT_DIFFERS;
    }
    tell_of(v, visitor, text);
    sl_unverified_confirm(v, visitor);
    return SL_VERDICT_DIFFERS;
}

/* It has not proved itself. What the handshake says of it may still arrive. */
static void end_handshake(sl_unverified_list *v, sl_unverified *visitor, const char *wrong) {
    tell_of(v, visitor, wrong);
    let_arrive(v, visitor);
}

sl_verdict sl_unverified_judge(sl_unverified_list *v, sl_unverified *visitor, sl_buffer *buffer,
                               size_t bytes, sl_standing *standing, char text[SL_REFUSAL_MAX]) {
    sl_hello hello;
    sl_frame frame;
    sl_verdict verdict = SL_VERDICT_REFUSED;
    const char *wrong;
    const sl_passed passed = sl_channel_take(visitor->channel, buffer->data, bytes, 0,
                                             v->side->direct, v->side->now_s, &frame, &wrong);
    if (passed == SL_PASSED_HANDSHAKE) {
        sl_buffer_release(buffer);
        sl_connection_receive_again(visitor->connection);
        return SL_VERDICT_NONE;
    }
    if (passed == SL_PASSED)
        wrong = read_hello(visitor, &frame, buffer, &hello);
    if (wrong == NULL)
        verdict = judge(v, visitor, &hello, text);
    else
        snprintf(text, SL_REFUSAL_MAX, "%s", wrong);
    *standing = wrong == NULL ? hello.standing : (sl_standing){0};
    sl_buffer_release(buffer);
    if (passed == SL_PASSED_BROKEN && visitor->channel != NULL)
        end_handshake(v, visitor, wrong);
    else if (wrong != NULL)
        sl_unverified_refuse(v, visitor, wrong);
    return verdict;
}

sl_connection *sl_unverified_release(sl_unverified *visitor) {
    sl_connection *connection = visitor->connection;
    visitor->connection = NULL;
    visitor->channel = NULL;
    return connection;
}

void sl_unverified_tick(sl_unverified_list *v) {
    for (int i = 0; i < SL_UNVERIFIED_MAX; i++) {
        sl_channel_flush(v->list[i].channel);
        if (v->list[i].connection != NULL && v->side->now_s > v->list[i].deadline_s)
            sl_unverified_refuse(v, &v->list[i], "it said nothing");
    }
    sl_refusals_tick(&v->refusals, v->side->now_s);
}

void sl_unverified_note_silent(sl_unverified_list *v, size_t count) {
    if (count > 0)
        sl_refusals_note(&v->refusals, v->side->now_s, SL_REFUSED_SILENT, count,
                         "a connection was closed that did not say who it is");
}

void sl_unverified_close(sl_unverified_list *v) {
    for (int i = 0; i < SL_UNVERIFIED_MAX; i++)
        close_connection(&v->list[i]);
}
