/* test_pool.c - which receive buffers messages come in, over a real connection of the provider tcp.
 */
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "loopback.h"
#include "starling/vec.h"
#include "wire/frame.h"
#include "world/fabric.h"

enum { BUFFERS = 5, MESSAGE_BYTES = 4096, MESSAGES = 40 };

typedef struct side {
    sl_fabric *fabric;
    sl_connection *connection;
    sl_pool *pool;
    bool connected, granted, releases;
    uint32_t sent, count;         /* messages that left, and that came after the first */
    sl_buffer *buffers[MESSAGES]; /* (count) where they came */
} side;

static side sender, receiver;
static uint8_t message[MESSAGES][MESSAGE_BYTES];
static sl_error error;

static void on_connected(void *context, void *owner) {
    (void)owner;
    ((side *)context)->connected = true;
}

static void on_received(void *context, void *owner, sl_buffer *buffer, size_t bytes) {
    side *s = context;
    (void)owner;
    if (!s->granted) { /* the first message opens the door */
        s->granted = true;
        sl_connection_grant(s->connection, s->pool);
        return;
    }
    ck_assert_uint_eq(bytes, MESSAGE_BYTES);
    ck_assert_uint_lt(s->count, MESSAGES);
    ck_assert_mem_eq(buffer->data, message[s->count], MESSAGE_BYTES);
    s->buffers[s->count++] = buffer;
    if (s->releases)
        sl_buffer_release(buffer);
}

static void on_sent(void *context, void *owner, uint32_t cookie) {
    (void)owner;
    (void)cookie;
    ((side *)context)->sent++;
}

static void on_down(void *context, void *owner, bool established, const char *reason) {
    (void)context;
    (void)owner;
    (void)established;
    ck_abort_msg("the connection broke: %s", reason);
}

static const sl_connection_handlers handlers = {on_connected, on_received, on_sent, on_down};

static sl_connection *on_requested(void *context, const uint8_t *greeting, const char *from,
                                   char why[SL_GREETING_WHY_MAX]) {
    side *s = context;
    (void)greeting;
    (void)from;
    (void)why;
    ck_assert_int_eq(sl_connection_open(&s->connection, s->fabric, &handlers, s, MESSAGES, &error),
                     0);
    return s->connection;
}

static bool admits(void *context, const uint8_t *greeting, char why[SL_GREETING_WHY_MAX]) {
    (void)context;
    (void)greeting;
    (void)why;
    return true;
}

static void open_side(side *s) {
    *s = (side){0};
    const sl_fabric_settings settings = {.provider = "tcp",
                                         .address = loopback_address(0),
                                         .gate = {.admits = admits},
                                         .context = s,
                                         .requested = on_requested};
    const sl_buffers buffers = {.vec = sl_vec_cpu(), .count = BUFFERS, .bytes = MESSAGE_BYTES};
    ck_assert_msg(sl_fabric_open(&s->fabric, &settings, &error) == 0, "%s", error.text);
    ck_assert_int_eq(sl_pool_open(&s->pool, s->fabric, &buffers, NULL, &error), 0);
}

static void poll_both(void) {
    sl_fabric_poll(sender.fabric);
    sl_fabric_poll(receiver.fabric);
    usleep(100);
}

/* Until so many have come, for half a minute: the machine may be loaded. */
static void await(uint32_t count) {
    for (int i = 0; i < 300000 && receiver.count < count; i++)
        poll_both();
    ck_assert_uint_eq(receiver.count, count);
}

static void send_one(const void *data, size_t bytes) {
    ck_assert_int_eq(sl_connection_send(sender.connection, data, 64, (const uint8_t *)data + 64,
                                        bytes - 64, true, 0),
                     0);
}

static void setup(void) {
    open_side(&sender);
    open_side(&receiver);
    for (uint32_t m = 0; m < MESSAGES; m++) {
        const sl_frame frame = {.type = SL_FRAME_DATA,
                                .payload_bytes = MESSAGE_BYTES - SL_FRAME_HEADER_BYTES};
        for (size_t i = 0; i < MESSAGE_BYTES; i++)
            message[m][i] = (uint8_t)(m * 7 + i % 251);
        sl_frame_encode(&frame, message[m]);
    }
    const uint8_t greeting[SL_GREETING_BYTES] = {0};
    const struct sockaddr_storage address = loopback_address(sl_fabric_port(receiver.fabric));
    ck_assert_int_eq(sl_connection_open(&sender.connection, sender.fabric, &handlers, &sender,
                                        MESSAGES + 1, &error),
                     0);
    ck_assert_int_eq(sl_connection_dial(sender.connection, &address, greeting, &error), 0);
    for (int i = 0; i < 300000 && !sender.connected; i++)
        poll_both();
    uint8_t first[SL_FRAME_HEADER_BYTES];
    sl_frame_encode(&(sl_frame){.type = SL_FRAME_BYE}, first);
    send_one(first, sizeof first);
    for (int i = 0; i < 300000 && !receiver.granted; i++)
        poll_both();
    ck_assert(receiver.granted);
}

static void teardown(void) {
    for (side *s = &sender; s != NULL; s = s == &sender ? &receiver : NULL) {
        sl_connection_close(&s->connection);
        sl_fabric_poll(s->fabric);
        sl_pool_close(&s->pool);
        sl_fabric_close(&s->fabric);
    }
}

static void send_all(uint32_t from, uint32_t end) {
    for (uint32_t m = from; m < end; m++)
        send_one(message[m], MESSAGE_BYTES);
}

static bool came_in(const sl_buffer *buffer, uint32_t first, uint32_t count) {
    while (count > 0 && receiver.buffers[first + count - 1] != buffer)
        count--;
    return count > 0;
}

static uint32_t count_buffers(uint32_t first, uint32_t count) {
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < count; i++)
        distinct += !came_in(receiver.buffers[first + i], first, i);
    return distinct;
}

/* Whatever waits in the socket, the two that are posted take turns. */
START_TEST(buffers_used_last_are_used_next) {
    receiver.releases = true;
    send_all(0, MESSAGES);
    await(MESSAGES);
    ck_assert_uint_le(count_buffers(0, MESSAGES), 2);
}
END_TEST

/* Held ones are not overwritten, all of the pool can be held, and the rest waits for a release. */
START_TEST(messages_wait_for_a_buffer) {
    send_all(0, BUFFERS + 2);
    await(BUFFERS);
    for (int i = 0; i < 200; i++)
        poll_both();
    ck_assert_uint_eq(receiver.count, BUFFERS);
    ck_assert_uint_eq(count_buffers(0, BUFFERS), BUFFERS);
    for (uint32_t m = 0; m < BUFFERS; m++)
        ck_assert_mem_eq(receiver.buffers[m]->data, message[m], MESSAGE_BYTES);
    sl_buffer_release(receiver.buffers[3]);
    await(BUFFERS + 1);
    ck_assert_ptr_eq(receiver.buffers[BUFFERS], receiver.buffers[3]);
    sl_buffer_release(receiver.buffers[0]);
    await(BUFFERS + 2);
    ck_assert_ptr_eq(receiver.buffers[BUFFERS + 1], receiver.buffers[0]);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("pool");
    ADD_TESTS_WITH(suite, "pool", setup, teardown, buffers_used_last_are_used_next,
                   messages_wait_for_a_buffer);
    return run_suite(suite);
}
