/* channel_pair.h - two agents' ends of one connection, each with its guard and channel. What one
 * sends waits in a queue, where a test repeats, alters or withholds it: the queues stand in for the
 * fabric. */
#ifndef STARLING_TEST_CHANNEL_PAIR_H
#define STARLING_TEST_CHANNEL_PAIR_H

#include <string.h>

#include "agent/peers/channel.h"
#include "secure_pairs.h"
#include "wire/checksum.h"

enum { MESSAGES_MAX = 32, MESSAGE_MAX = 4096, PAYLOAD_MAX = 2048 };

typedef struct message {
    size_t bytes;
    uint8_t data[MESSAGE_MAX];
} message;

struct sl_connection {
    message queue[MESSAGES_MAX]; /* what this end has sent, and nobody has taken */
    uint32_t count;
    bool full; /* it finds no room */
};

typedef struct end {
    sl_guard guard;
    sl_channel *channel;
    sl_connection connection;
} end;

/* ends[0] has dialed ends[1]. */
typedef struct pair {
    end ends[2];
    double now_s;
} pair;

int sl_connection_send(sl_connection *c, const uint8_t *header, size_t header_bytes,
                       const void *payload, size_t payload_bytes, bool data, uint32_t cookie) {
    if (c->full || c->count == MESSAGES_MAX)
        return 1;
    message *m = &c->queue[c->count++];
    assert(header_bytes + payload_bytes <= sizeof m->data);
    m->bytes = header_bytes + payload_bytes;
    memcpy(m->data, header, header_bytes);
    if (payload_bytes > 0)
        memcpy(m->data + header_bytes, payload, payload_bytes);
    return 0;
}

int sl_fabric_register(sl_fabric *fabric, void *base, size_t bytes, int cuda_index,
                       sl_error *error) {
    return 0;
}

/* The oldest that this end has sent, out of its queue. */
static inline message pop_message(end *from) {
    sl_connection *c = &from->connection;
    assert(c->count > 0);
    const message oldest = c->queue[0];
    memmove(c->queue, c->queue + 1, --c->count * sizeof *c->queue);
    return oldest;
}

static inline void open_end(end *e, const sl_credentials *credentials, const sl_roster *roster,
                            bool seals, const sl_passage *passage, bool dials) {
    memset(e, 0, sizeof *e);
    sl_guard_open(&e->guard, credentials, seals);
    int result = sl_sealed_buffers_open(&e->guard.envelopes, NULL, 2, MESSAGE_MAX, NULL);
    e->guard.roster = roster;
    if (result == 0)
        result = sl_channel_open(&e->channel, &e->guard, &e->connection, passage, dials, NULL);
    assert(result == 0);
}

static inline void close_end(end *e) {
    sl_channel_close(&e->channel);
    sl_guard_close(&e->guard);
}

static inline void close_pair(pair *p) {
    close_end(&p->ends[0]);
    close_end(&p->ends[1]);
}

/* Hands a message to an end as it comes. */
static inline sl_passed give(pair *p, int to, message *m, sl_frame *frame) {
    const char *why = "";
    const sl_passed passed = sl_channel_take(p->ends[to].channel, m->data, m->bytes, PAYLOAD_MAX,
                                             false, p->now_s, frame, &why);
    assert(passed == SL_PASSED || passed == SL_PASSED_HANDSHAKE || why[0] != '\0');
    return passed;
}

/* All that waits is taken. False: an end does not go on. */
static inline bool exchange(pair *p) {
    sl_frame frame;
    bool well = true;
    while (well && p->ends[0].connection.count + p->ends[1].connection.count > 0)
        for (int from = 0; well && from < 2; from++)
            while (well && p->ends[from].connection.count > 0) {
                message m = pop_message(&p->ends[from]);
                well = give(p, 1 - from, &m, &frame) == SL_PASSED_HANDSHAKE;
            }
    return well;
}

/* They prove themselves to each other. */
static inline bool meet(pair *p) {
    sl_channel_begin(p->ends[0].channel);
    return exchange(p) && sl_channel_is_ready(p->ends[0].channel) &&
           sl_channel_is_ready(p->ends[1].channel);
}

/* A frame with right checksums, unsealed. */
static inline message plain_frame(sl_frame_type type, uint32_t sender, const void *payload,
                                  size_t bytes) {
    message m = {.bytes = SL_FRAME_HEADER_BYTES + bytes};
    const sl_frame frame = {.type = type,
                            .sender = sender,
                            .payload_bytes = (uint32_t)bytes,
                            .payload_sum = sl_checksum(payload, bytes)};
    sl_frame_encode(&frame, m.data);
    if (bytes > 0)
        memcpy(m.data + SL_FRAME_HEADER_BYTES, payload, bytes);
    return m;
}

/* Sends it as an agent does; the result of sl_channel_send. */
static inline int send_frame(pair *p, int from, sl_frame_type type, const void *payload,
                             size_t bytes) {
    end *e = &p->ends[from];
    const message m = plain_frame(type, (uint32_t)from, payload, bytes);
    return sl_channel_send(e->channel, &e->connection, p->now_s, m.data, SL_FRAME_HEADER_BYTES,
                           payload, bytes, type == SL_FRAME_DATA);
}

/* As it goes over the wire. */
static inline message sealed_frame(pair *p, int from, sl_frame_type type, const void *payload,
                                   size_t bytes) {
    const int result = send_frame(p, from, type, payload, bytes);
    assert(result == 0);
    return pop_message(&p->ends[from]);
}

#endif
