/* stranger.c - connects to an agent and misbehaves; for tests/chaos/strangers.py.
 *
 * usage: stranger PORT MODE FROM TO
 * Greets as agent FROM that looks for agent TO, then by MODE: silent; garbage; half: of a HELLO;
 * abort: an ABORT; hello: a HELLO of the right run id (0) with other hashes; run: one of another
 * run. Prints "connected", and "down" when the agent has ended the connection; then it ends.
 * frames: connects again and again, each time with a frame of another type and any content, and
 * prints how many it was rid of, until nobody listens.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/checksum.h"
#include "wire/frame.h"
#include "world/fabric.h"

typedef struct stranger {
    bool connected, down;
} stranger;

static sl_connection *on_requested(void *context, const uint8_t *greeting, const char *from,
                                   char why[SL_GREETING_WHY_MAX]) {
    (void)why;
    (void)context, (void)greeting, (void)from;
    return NULL;
}

static void on_connected(void *context, void *owner) {
    (void)owner;
    ((stranger *)context)->connected = true;
}

static void on_received(void *context, void *owner, sl_buffer *buffer, size_t bytes) {
    (void)context, (void)owner, (void)bytes;
    sl_buffer_release(buffer);
}

static void on_sent(void *context, void *owner, uint32_t cookie) {
    (void)context, (void)owner, (void)cookie;
}

static void on_down(void *context, void *owner, bool established, const char *reason) {
    (void)owner, (void)established, (void)reason;
    ((stranger *)context)->down = true;
}

/* Right checksums, or some of it only. */
static void send_frame(sl_connection *connection, sl_frame_type type, uint32_t from,
                       const void *payload, uint32_t bytes, size_t sent) {
    uint8_t whole[SL_FIRST_MESSAGE_MAX];
    sl_frame frame = {.type = type,
                      .sender = from,
                      .payload_bytes = bytes,
                      .payload_sum = sl_checksum(payload, bytes)};
    sl_frame_encode(&frame, whole);
    memcpy(whole + SL_FRAME_HEADER_BYTES, payload, bytes);
    sl_connection_send(connection, whole, sent != 0 ? sent : SL_FRAME_HEADER_BYTES + bytes, NULL, 0,
                       false, 0);
}

/* No type is left out; some are none. A message may be longer than any first one. */
static void send_any_frame(sl_connection *connection, uint32_t from, unsigned number) {
    static uint8_t content[2 * SL_FIRST_MESSAGE_MAX];
    uint8_t header[SL_FRAME_HEADER_BYTES];
    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (uint8_t)(number * 31 + i * (number % 7));
    static const uint32_t sizes[] = {0, 1, 8, SL_HELLO_BYTES, 4096, sizeof content};
    sl_frame frame = {.type = (sl_frame_type)(number % (SL_FRAME_TYPE_END + 2)),
                      .sender = from,
                      .exchange = number % 5,
                      .part = number % 3,
                      .credit = number,
                      .received = number % 2,
                      .payload_bytes = sizes[number / 16 % 6]};
    frame.payload_sum = sl_checksum(content, frame.payload_bytes);
    sl_frame_encode(&frame, header);
    sl_connection_send(connection, header, sizeof header, content, frame.payload_bytes, false, 0);
}

static void misbehave(sl_connection *connection, const char *mode, uint32_t from) {
    static const char text[] = "a stranger wants this to end";
    uint8_t hello[SL_HELLO_BYTES], garbage[300];
    sl_hello lie = {.run_id = strcmp(mode, "run") == 0 ? 77 : 0,
                    .seed = 99,
                    .section_count = 5,
                    .standing = {.incarnation = 1}};
    sl_hello_encode(&lie, hello);
    memset(garbage, 0xA5, sizeof garbage);
    if (strcmp(mode, "garbage") == 0)
        sl_connection_send(connection, garbage, sizeof garbage, NULL, 0, false, 0);
    else if (strcmp(mode, "half") == 0)
        send_frame(connection, SL_FRAME_HELLO, from, hello, sizeof hello, 100);
    else if (strcmp(mode, "abort") == 0)
        send_frame(connection, SL_FRAME_ABORT, from, text, sizeof text, 0);
    else if (strcmp(mode, "silent") != 0)
        send_frame(connection, SL_FRAME_HELLO, from, hello, sizeof hello, 0);
}

static const sl_connection_handlers handlers = {on_connected, on_received, on_sent, on_down};

/* False: nobody is there. number: of the visit. */
static bool visit(stranger *s, sl_fabric *fabric, char **arguments, unsigned number) {
    const char *mode = arguments[2];
    const uint32_t from = (uint32_t)atoi(arguments[3]), to = (uint32_t)atoi(arguments[4]);
    uint8_t greeting[SL_GREETING_BYTES] = "starling";
    memcpy(greeting + 8, &from, sizeof from);
    memcpy(greeting + 12, &to, sizeof to);
    struct sockaddr_in local = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons((uint16_t)atoi(arguments[1]))};
    struct sockaddr_storage address = {0};
    memcpy(&address, &local, sizeof local);
    sl_connection *connection;
    sl_error error;
    *s = (stranger){0};
    if (sl_connection_open(&connection, fabric, &handlers, NULL, 4, &error) != 0 ||
        sl_connection_dial(connection, &address, greeting, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    for (bool told = false; !s->down; usleep(100)) {
        sl_fabric_poll(fabric);
        if (!s->connected || told)
            continue;
        told = true;
        if (number == 0)
            puts("connected");
        fflush(stdout);
        if (strcmp(mode, "frames") == 0)
            send_any_frame(connection, from, number);
        else
            misbehave(connection, mode, from);
    }
    sl_connection_close(&connection);
    sl_fabric_poll(fabric);
    return s->connected;
}

int main(int count, char **arguments) {
    if (count != 5)
        return 2;
    stranger s;
    sl_fabric_settings settings = {.provider = "tcp", .context = &s, .requested = on_requested};
    const struct sockaddr_in local = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    memcpy(&settings.address, &local, sizeof local);
    sl_fabric *fabric;
    sl_error error;
    if (sl_fabric_open(&fabric, &settings, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    unsigned visits = 0;
    while (visit(&s, fabric, arguments, visits) && strcmp(arguments[2], "frames") == 0)
        visits++;
    if (visits > 0)
        printf("%u frames\n", visits);
    puts("down");
    sl_fabric_close(&fabric);
    return 0;
}
