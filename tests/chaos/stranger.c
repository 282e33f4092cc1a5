/* stranger.c - somebody who has a run's key connects to an agent and misbehaves; for intruders.py.
 *
 * usage: stranger PORT FROM TO KEY RUN_ID
 * Greets truly, as agent FROM that looks for agent TO, again and again, and misbehaves each time in
 * another manner, after the handshake. Prints "connected" the first time, and how many frames it
 * was rid of, once nobody listens.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/peers/channel.h"
#include "base/clock.h"
#include "starling/keys.h"
#include "unit/loopback.h"
#include "wire/checksum.h"

/* What somebody who has proved that he has the key says first. */
typedef struct manner {
    const char *name;
    sl_frame_type type;
    uint32_t sender_off;
    uint64_t incarnation_off;
} manner;

static const manner manners[] = {
    {"other hashes", SL_FRAME_HELLO, 0, 0},        {"another sender", SL_FRAME_HELLO, 1, 0},
    {"another incarnation", SL_FRAME_HELLO, 0, 1}, {"no HELLO, but data", SL_FRAME_DATA, 0, 0},
    {"no HELLO, but ABORT", SL_FRAME_ABORT, 0, 0}, {"no HELLO, but BYE", SL_FRAME_BYE, 0, 0},
};
enum { MANNERS = sizeof manners / sizeof *manners };

typedef struct stranger {
    bool connected, down;
    const manner *manner;
    sl_passage passage;
    sl_guard guard; /* for all visits */
    sl_channel *channel;
    sl_connection *connection;
} stranger;

static sl_connection *on_requested(void *context, const uint8_t *greeting, const char *from,
                                   char why[SL_GREETING_WHY_MAX]) {
    (void)why;
    (void)context, (void)greeting, (void)from;
    return NULL;
}

static void on_connected(void *context, void *owner) {
    stranger *s = context;
    (void)owner;
    s->connected = true;
    sl_channel_begin(s->channel);
}

static void on_received(void *context, void *owner, sl_buffer *buffer, size_t bytes) {
    stranger *s = context;
    sl_frame frame;
    const char *why;
    (void)owner;
    const bool more = !sl_channel_is_ready(s->channel);
    if (more)
        sl_channel_take(s->channel, buffer->data, bytes, 0, false, sl_clock_seconds(), &frame,
                        &why);
    sl_buffer_release(buffer);
    if (more)
        sl_connection_receive_again(s->connection);
}

static void on_sent(void *context, void *owner, uint32_t cookie) {
    (void)context, (void)owner, (void)cookie;
}

static void on_down(void *context, void *owner, bool established, const char *reason) {
    (void)owner, (void)established, (void)reason;
    ((stranger *)context)->down = true;
}

/* In the manner of somebody who has the key. */
static void misbehave(stranger *s) {
    const manner *m = s->manner;
    uint8_t whole[SL_FRAME_HEADER_BYTES + SL_FRAME_TEXT_MAX],
        *payload = whole + SL_FRAME_HEADER_BYTES;
    const sl_hello hello = {
        .run_id = s->passage.run_id,
        .seed = 99,
        .standing = {.incarnation = s->passage.incarnation + m->incarnation_off, .attempt = 1}};
    sl_frame frame = {.type = m->type, .sender = s->passage.from + m->sender_off};
    sl_hello_encode(&hello, payload);
    frame.payload_bytes = m->type == SL_FRAME_BYE ? 0 : SL_HELLO_BYTES;
    frame.payload_sum = sl_checksum(payload, frame.payload_bytes);
    sl_frame_encode(&frame, whole);
    sl_channel_send(s->channel, s->connection, sl_clock_seconds(), whole,
                    SL_FRAME_HEADER_BYTES + frame.payload_bytes, NULL, 0, false);
}

static const sl_connection_handlers handlers = {on_connected, on_received, on_sent, on_down};

static void stop(const sl_error *error) {
    fprintf(stderr, "%s\n", error->text);
    exit(1);
}

static size_t prove(void *context, const uint8_t greeting[SL_GREETING_BYTES],
                    const uint8_t challenge[SL_CHALLENGE_BYTES], bool dials,
                    uint8_t out[SL_PROOF_BYTES_MAX]) {
    const stranger *s = context;
    const sl_exchange exchange = {greeting, challenge, s->passage.run_id};
    return sl_proof_make(&exchange, s->guard.credentials, dials, out);
}

static bool accepts(void *context, const uint8_t greeting[SL_GREETING_BYTES],
                    const uint8_t challenge[SL_CHALLENGE_BYTES], bool dialed, const uint8_t *proof,
                    size_t bytes, char why[SL_GREETING_WHY_MAX]) {
    (void)context, (void)greeting, (void)challenge, (void)dialed;
    (void)proof, (void)bytes, (void)why;
    return true;
}

static void open_channel(stranger *s) {
    sl_error error;
    if (sl_channel_open(&s->channel, &s->guard, s->connection, &s->passage, true, &error) != 0)
        stop(&error);
}

/* What he came for, once it is time. */
static bool tell(stranger *s, unsigned number) {
    if (!s->connected || !sl_channel_is_ready(s->channel))
        return false;
    if (number == 0)
        puts("connected");
    fflush(stdout);
    misbehave(s);
    return true;
}

/* False: nobody is there. number: of the visit. */
static bool visit(stranger *s, sl_fabric *fabric, uint16_t port, unsigned number) {
    uint8_t greeting[SL_GREETING_BYTES];
    const struct sockaddr_storage address = loopback_address(port);
    sl_error error;
    s->connected = s->down = false;
    s->manner = &manners[number % MANNERS];
    if (!sl_greeting_write(&s->passage, s->guard.credentials, greeting))
        exit(1);
    if (sl_connection_open(&s->connection, fabric, &handlers, NULL, 4, &error) != 0)
        stop(&error);
    open_channel(s);
    if (sl_connection_dial(s->connection, &address, greeting, &error) != 0)
        stop(&error);
    for (bool told = false; !s->down; usleep(100)) {
        sl_fabric_poll(fabric);
        told = told || tell(s, number);
    }
    sl_connection_close(&s->connection);
    sl_channel_close(&s->channel);
    sl_fabric_poll(fabric);
    return s->connected;
}

int main(int count, char **arguments) {
    if (count != 6)
        return 2;
    static stranger s;
    s.passage = (sl_passage){.run_id = strtoull(arguments[5], NULL, 10),
                             .from = (uint32_t)atoi(arguments[2]),
                             .to = (uint32_t)atoi(arguments[3]),
                             .incarnation = 1};
    const sl_fabric_settings settings = {
        .provider = "tcp",
        .address = loopback_address(0),
        .gate = {.context = &s, .proves = true, .prove = prove, .accepts = accepts},
        .context = &s,
        .requested = on_requested};
    sl_credentials *credentials = NULL;
    sl_fabric *fabric;
    sl_error error;
    if (sl_credentials_load_key(&credentials, arguments[4], &error) != 0)
        stop(&error);
    sl_guard_open(&s.guard, credentials, true);
    if (sl_fabric_open(&fabric, &settings, &error) != 0)
        stop(&error);
    unsigned visits = 0;
    /* some greetings are refused: only who is refused twice finds nobody */
    for (int refused = 0; refused <= 1; visits++)
        refused = visit(&s, fabric, (uint16_t)atoi(arguments[1]), visits) ? 0 : refused + 1;
    printf("%u frames\n", visits);
    sl_fabric_close(&fabric);
    sl_guard_close(&s.guard);
    sl_credentials_close(&credentials);
    return 0;
}
