/* channel.c - see channel.h. */
#include "agent/peers/channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "secure/handshake.h"
#include "secure/seal.h"
#include "wire/checksum.h"

/* A frame that is sealed has to be sent, in its turn: its number is used. */
typedef struct waiting {
    uint8_t header[SL_HEADER_BYTES_MAX];
    size_t header_bytes; /* 0: nothing waits */
    const uint8_t *payload;
    size_t payload_bytes;
    uint32_t cookie;
} waiting;

struct sl_channel {
    sl_guard *guard;
    sl_connection *connection;
    sl_passage passage;
    bool dials;
    uint8_t pin[SL_FINGERPRINT_BYTES];
    X509 *shown;             /* the other side's certificate; NULL: none, or not yet */
    sl_handshake *handshake; /* NULL: it has ended */
    sl_seal *out, *in;       /* NULL: not ready, or not used any more */
    bool ready;
    uint64_t key; /* name of the run's key that was shown; 0: none, or not yet */
    waiting waiting;
    char why[SL_HANDSHAKE_WHY_MAX];
};

/* A cookie says which envelope, plus 1, and whether it is data. 0: data that was not sealed. */
enum { COOKIE_DATA = 1 << 30 };

static uint32_t peer_of(const sl_channel *c) {
    return c->dials ? c->passage.to : c->passage.from;
}

int sl_channel_open(sl_channel **out, sl_guard *guard, sl_connection *connection,
                    const sl_passage *passage, bool dials, sl_error *error) {
    *out = NULL;
    if (guard->credentials == NULL)
        return 0;
    sl_channel *c = calloc(1, sizeof *c);
    if (c == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a handshake");
    *c =
        (sl_channel){.guard = guard, .connection = connection, .passage = *passage, .dials = dials};
    sl_demand demand = {0};
    int result = 0;
    if (sl_guard_uses_certificates(guard) && !sl_guard_demand(guard, peer_of(c), c->pin, &demand))
        result =
            sl_fail(error, SL_EPEER, "the roster names no certificate of agent %u", peer_of(c));
    if (result == 0)
        result =
            sl_handshake_open(&c->handshake, guard->credentials, passage, dials, &demand, error);
    if (result != 0)
        sl_channel_close(&c);
    else
        *out = c;
    return result;
}

void sl_channel_close(sl_channel **channel) {
    sl_channel *c = *channel;
    if (c == NULL)
        return;
    *channel = NULL;
    sl_sealed_buffers_give_all(&c->guard->envelopes, c);
    sl_handshake_close(&c->handshake);
    X509_free(c->shown);
    sl_seal_close(&c->out);
    sl_seal_close(&c->in);
    free(c);
}

bool sl_channel_is_ready(const sl_channel *c) {
    return c == NULL || c->ready;
}

void sl_channel_show(sl_channel *c, uint64_t key) {
    if (c != NULL && c->handshake != NULL)
        sl_handshake_show(c->handshake, key);
}

uint64_t sl_channel_key(const sl_channel *c) {
    return c != NULL ? c->key : 0;
}

bool sl_channel_is_trusted(const sl_channel *c, char why[SL_CERTIFICATE_WHY_MAX]) {
    uint8_t pin[SL_FINGERPRINT_BYTES];
    sl_demand demand;
    if (c == NULL || !sl_guard_uses_certificates(c->guard))
        return true;
    snprintf(why, SL_CERTIFICATE_WHY_MAX,
             "it was about to prove itself by what was trusted before");
    return c->shown != NULL && sl_guard_demand(c->guard, peer_of(c), pin, &demand) &&
           sl_certificate_meets(c->shown, &demand, why);
}

const sl_passage *sl_channel_passage(const sl_channel *c) {
    return c != NULL ? &c->passage : NULL;
}

/* ---- the handshake ---- */

static bool send_handshake_piece(sl_channel *c, const uint8_t *bytes, size_t count) {
    uint8_t whole[SL_FRAME_HEADER_BYTES + SL_FRAME_TEXT_MAX];
    const sl_frame frame = {.type = SL_FRAME_HANDSHAKE,
                            .sender = c->dials ? c->passage.from : c->passage.to,
                            .payload_bytes = (uint32_t)count,
                            .payload_sum = sl_checksum(bytes, count)};
    sl_frame_encode(&frame, whole);
    memcpy(whole + SL_FRAME_HEADER_BYTES, bytes, count);
    return sl_connection_send(c->connection, whole, SL_FRAME_HEADER_BYTES + count, NULL, 0, false,
                              0) == 0;
}

/* True: nothing of it is left to send. */
static bool send_handshake(sl_channel *c) {
    const uint8_t *bytes;
    for (size_t count = 1; c->handshake != NULL;) {
        count = sl_handshake_pending(c->handshake, &bytes);
        if (count == 0)
            break;
        const size_t piece = count < SL_FRAME_TEXT_MAX ? count : SL_FRAME_TEXT_MAX;
        if (!send_handshake_piece(c, bytes, piece))
            return false;
        sl_handshake_sent(c->handshake, piece);
    }
    if (c->ready)
        sl_handshake_close(&c->handshake);
    return true;
}

void sl_channel_begin(sl_channel *c) {
    if (c == NULL || !c->dials)
        return;
    sl_handshake_take(c->handshake, NULL, 0, c->why);
    send_handshake(c);
}

static bool open_seals(sl_channel *c, double now_s) {
    uint8_t sends[SL_SEAL_KEY_BYTES], takes[SL_SEAL_KEY_BYTES];
    if (sl_handshake_keys(c->handshake, c->guard->seals, sends, takes)) {
        c->out = sl_seal_open(sends, true, now_s);
        c->in = sl_seal_open(takes, false, now_s);
    }
    OPENSSL_cleanse(sends, sizeof sends);
    OPENSSL_cleanse(takes, sizeof takes);
    return c->out != NULL && c->in != NULL;
}

static sl_passed take_handshake(sl_channel *c, const uint8_t *payload, size_t bytes, double now_s,
                                const char **why) {
    const sl_handshake_state state = sl_handshake_take(c->handshake, payload, bytes, c->why);
    *why = c->why;
    if (state == SL_HANDSHAKE_DONE) {
        c->key = sl_handshake_key(c->handshake);
        c->shown = sl_handshake_certificate(c->handshake);
        c->ready = open_seals(c, now_s);
        *why = "out of memory for its keys";
    }
    send_handshake(c);
    return state == SL_HANDSHAKE_GOES_ON || c->ready ? SL_PASSED_HANDSHAKE : SL_PASSED_BROKEN;
}

/* ---- sending ---- */

static int send_waiting(sl_channel *c) {
    waiting *w = &c->waiting;
    if (w->header_bytes == 0)
        return 0;
    int result = sl_connection_send(c->connection, w->header, w->header_bytes, w->payload,
                                    w->payload_bytes, w->cookie != 0, w->cookie);
    if (result == 0)
        w->header_bytes = 0;
    return result;
}

bool sl_channel_waits(const sl_channel *c) {
    return c != NULL && c->waiting.header_bytes > 0;
}

void sl_channel_flush(sl_channel *c) {
    if (c != NULL && send_handshake(c))
        send_waiting(c);
}

/* The payload goes into the envelope, what the header carries of it stays there. */
static bool seal(sl_channel *c, double now_s, const void *payload, uint8_t *envelope) {
    waiting *w = &c->waiting;
    uint8_t *carried = w->header + SL_FRAME_HEADER_BYTES, tag[SL_SEAL_TAG_BYTES];
    if (sl_seal_is_worn(c->out, now_s) && !sl_seal_renew(c->out, now_s))
        return false;
    sl_frame_seal(w->header, sl_seal_phase(c->out));
    if (!sl_seal_begin(c->out, w->header, SL_FRAME_HEADER_BYTES) ||
        !sl_seal_add(c->out, carried, carried, w->header_bytes - SL_FRAME_HEADER_BYTES) ||
        !sl_seal_add(c->out, payload, envelope, w->payload_bytes) || !sl_seal_end(c->out, tag))
        return false;
    sl_frame_put_tag(w->header, tag);
    return true;
}

static int send_sealed(sl_channel *c, double now_s, const uint8_t *header, size_t header_bytes,
                       const void *payload, size_t payload_bytes, bool data) {
    sl_sealed_buffers *envelopes = &c->guard->envelopes;
    uint32_t number = SL_SEALED_BUFFER_NONE;
    uint8_t *envelope = NULL;
    if (payload_bytes > 0) {
        number = sl_sealed_buffers_take(envelopes, c);
        if (number == SL_SEALED_BUFFER_NONE)
            return 1;
        envelope = sl_sealed_buffer_memory(envelopes, number);
    }
    waiting *w = &c->waiting;
    memcpy(w->header, header, header_bytes);
    w->header_bytes = header_bytes;
    w->payload = envelope;
    w->payload_bytes = payload_bytes;
    w->cookie = (number + 1) | (data ? COOKIE_DATA : 0);
    if (!seal(c, now_s, payload, envelope)) {
        w->header_bytes = 0;
        return SL_ENET;
    }
    if (!c->guard->seals)
        sl_seal_close(&c->out); /* that was HELLO, or why there is none */
    const int result = send_waiting(c);
    return result < 0 ? result : 0;
}

int sl_channel_send(sl_channel *c, sl_connection *connection, double now_s, const uint8_t *header,
                    size_t header_bytes, const void *payload, size_t payload_bytes, bool data) {
    if (c == NULL)
        return sl_connection_send(connection, header, header_bytes, payload, payload_bytes, data,
                                  0);
    if (!c->ready || !send_handshake(c))
        return 1;
    const int result = send_waiting(c);
    if (result != 0)
        return result;
    if (c->out == NULL)
        return sl_connection_send(connection, header, header_bytes, payload, payload_bytes, data,
                                  0);
    return send_sealed(c, now_s, header, header_bytes, payload, payload_bytes, data);
}

bool sl_channel_sent(sl_channel *c, uint32_t cookie) {
    const uint32_t number = cookie & (COOKIE_DATA - 1);
    if (number > 0)
        sl_sealed_buffers_give(&c->guard->envelopes, number - 1);
    return cookie == 0 || (cookie & COOKIE_DATA) != 0;
}

/* ---- receiving ---- */

static bool unseal(sl_channel *c, uint8_t *data, size_t bytes, double now_s) {
    uint8_t tag[SL_SEAL_TAG_BYTES];
    bool phase;
    if (!sl_frame_take_tag(data, bytes, &phase, tag))
        return false;
    if (phase != sl_seal_phase(c->in) && !sl_seal_renew(c->in, now_s))
        return false;
    uint8_t *payload = data + SL_FRAME_HEADER_BYTES;
    return sl_seal_begin(c->in, data, SL_FRAME_HEADER_BYTES) &&
           sl_seal_add(c->in, payload, payload, bytes - SL_FRAME_HEADER_BYTES) &&
           sl_seal_end(c->in, tag);
}

static const char unaccepted[] = "it does not accept this agent's key or certificate";

static sl_passed take_plain(sl_channel *c, const uint8_t *data, size_t bytes, size_t payload_max,
                            bool direct, double now_s, sl_frame *frame, const char **why) {
    *why = sl_frame_decode(frame, data, bytes, payload_max, direct);
    if (*why != NULL)
        return SL_PASSED_MALFORMED;
    const bool is_handshake = frame->type == SL_FRAME_HANDSHAKE;
    if (is_handshake && c != NULL && !c->ready)
        return take_handshake(c, data + SL_FRAME_HEADER_BYTES, frame->payload_bytes, now_s, why);
    if (is_handshake)
        *why = c == NULL ? "it wants to prove itself, and this agent has no key" : unaccepted;
    else if (!sl_channel_is_ready(c))
        *why = "it did not prove itself";
    return *why != NULL ? SL_PASSED_BROKEN : SL_PASSED;
}

sl_passed sl_channel_take(sl_channel *c, uint8_t *data, size_t bytes, size_t payload_max,
                          bool direct, double now_s, sl_frame *frame, const char **why) {
    if (c == NULL || c->in == NULL)
        return take_plain(c, data, bytes, payload_max, direct, now_s, frame, why);
    if (!unseal(c, data, bytes, now_s)) {
        sl_frame plain;
        *why = sl_frame_decode(&plain, data, bytes, payload_max, direct) == NULL &&
                       plain.type == SL_FRAME_HANDSHAKE
                   ? unaccepted
                   : "a frame's seal is broken: altered or repeated on the way, or security.seal "
                     "differs there";
        return SL_PASSED_BROKEN;
    }
    if (!c->guard->seals)
        sl_seal_close(&c->in);
    *why = sl_frame_decode_sealed(frame, data, bytes, payload_max, direct);
    return *why == NULL ? SL_PASSED : SL_PASSED_MALFORMED;
}
