/* test_fabric.c - the provider tcp over real sockets: who is let in, who is not, and which receive
 * buffers messages come in. What else may come, in whatever pieces, fuzz_provider.c says. */
#include <dirent.h>

#include "harness.h"
#include "loopback.h"
#include "secure/credentials.h"
#include "secure_pairs.h"
#include "starling/vec.h"
#include "wire/frame.h"
#include "world/fabric.h"

enum { ASKERS = 5, LOOKS = 300000 /* half a minute: the machine may be loaded */ };
enum { BUFFERS = 5, MESSAGE_BYTES = 4096, MESSAGES = 64 };

typedef struct side {
    sl_fabric *fabric;
    sl_connection *connection;
    sl_credentials *credentials; /* NULL: nobody proves anything */
    sl_pool *pool;               /* messages come there */
    bool connected, down, granted, releases;
    sl_buffer *buffers[MESSAGES]; /* (messages) where they came, after the first */
    unsigned requests, refusals, messages;
    char why[256];
} side;

static side a, b; /* a listens */
static uint8_t samples[MESSAGES][MESSAGE_BYTES];
static sl_error error;

/* ---- a side ---- */

static void on_connected(void *context, void *owner) {
    ((side *)context)->connected = true;
}

static void on_received(void *context, void *owner, sl_buffer *buffer, size_t bytes) {
    side *s = context;
    if (!s->granted) { /* the first message opens the door */
        s->granted = true;
        sl_connection_grant(s->connection, s->pool);
        return;
    }
    ck_assert_uint_eq(bytes, MESSAGE_BYTES);
    ck_assert_uint_lt(s->messages, MESSAGES);
    ck_assert_mem_eq(buffer->data, samples[s->messages], MESSAGE_BYTES);
    s->buffers[s->messages++] = buffer;
    if (s->releases)
        sl_buffer_release(buffer);
}

static void on_sent(void *context, void *owner, uint32_t cookie) {}

static void on_down(void *context, void *owner, bool established, const char *reason) {
    side *s = context;
    ck_assert_ptr_nonnull(reason);
    s->down = true;
    snprintf(s->why, sizeof s->why, "%s", reason);
}

static const sl_connection_handlers handlers = {on_connected, on_received, on_sent, on_down};

static sl_connection *on_requested(void *context, const uint8_t *greeting, const char *from,
                                   char why[SL_GREETING_WHY_MAX]) {
    side *s = context;
    sl_passage passage;
    sl_greeting_kind kind;
    s->requests++;
    ck_assert(sl_greeting_read(greeting, &passage, &kind));
    ck_assert_ptr_nonnull(strchr(from, ':'));
    snprintf(why, SL_GREETING_WHY_MAX, "it is rank 9");
    if (passage.from == 9)
        return NULL;
    sl_connection_close(&s->connection);
    EXPECT_WELL(sl_connection_open(&s->connection, s->fabric, &handlers, s, MESSAGES, &error));
    return s->connection;
}

static bool admits(void *context, const uint8_t *greeting, char why[SL_GREETING_WHY_MAX]) {
    const side *s = context;
    sl_passage passage;
    sl_greeting_kind kind;
    snprintf(why, SL_GREETING_WHY_MAX, "another kind");
    return sl_greeting_read(greeting, &passage, &kind) &&
           kind == sl_greeting_kind_of(s->credentials);
}

static size_t prove(void *context, const uint8_t *greeting, const uint8_t *challenge, bool dials,
                    uint8_t out[SL_PROOF_BYTES_MAX]) {
    const sl_exchange exchange = {greeting, challenge, 1};
    return sl_proof_make(&exchange, ((side *)context)->credentials, dials, out);
}

static bool accepts(void *context, const uint8_t *greeting, const uint8_t *challenge, bool dialed,
                    const uint8_t *proof, size_t bytes, char why[SL_GREETING_WHY_MAX]) {
    const side *s = context;
    const sl_exchange exchange = {greeting, challenge, 1};
    return sl_proof_check(&exchange, s->credentials, dialed, NULL, proof, bytes, why);
}

static void refused(void *context, const uint8_t *greeting, const struct sockaddr_storage *from,
                    const char *why) {
    ck_assert_uint_ne(sl_address_port(from), 0);
    ck_assert_uint_gt(strlen(why), 0);
    ((side *)context)->refusals++;
}

static void open_side(side *s, sl_credentials *credentials) {
    const sl_fabric_settings settings = {.provider = "tcp",
                                         .address = loopback_address(0),
                                         .gate = {.context = s,
                                                  .proves = credentials != NULL,
                                                  .admits = admits,
                                                  .prove = prove,
                                                  .accepts = accepts,
                                                  .refused = refused},
                                         .context = s,
                                         .requested = on_requested};
    *s = (side){.credentials = credentials};
    EXPECT_WELL(sl_fabric_open(&s->fabric, &settings, &error));
}

static void close_side(side *s) {
    if (s->fabric == NULL)
        return;
    sl_connection_close(&s->connection);
    sl_fabric_poll(s->fabric);
    sl_pool_close(&s->pool);
    sl_fabric_close(&s->fabric);
}

static void look(void) {
    sl_fabric_poll(a.fabric);
    if (b.fabric != NULL)
        sl_fabric_poll(b.fabric);
    usleep(100);
}

#define LOOK_UNTIL(condition)                                                                      \
    do {                                                                                           \
        for (int i_ = 0; i_ < LOOKS && !(condition); i_++)                                         \
            look();                                                                                \
        ck_assert(condition);                                                                      \
    } while (0)

/* b looks for a as this rank. */
static void dial(uint32_t rank) {
    const sl_passage passage = {.from = rank, .to = 1, .incarnation = 5};
    const struct sockaddr_storage address = loopback_address(sl_fabric_port(a.fabric));
    uint8_t greeting[SL_GREETING_BYTES];
    ck_assert(sl_greeting_write(&passage, b.credentials, greeting));
    EXPECT_WELL(sl_connection_open(&b.connection, b.fabric, &handlers, &b, MESSAGES, &error));
    EXPECT_WELL(sl_connection_dial(b.connection, &address, greeting, &error));
}

/* ---- a socket of ours ---- */

static int connect_to(uint16_t port) {
    const struct sockaddr_storage address = loopback_address(port);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (const void *)&address, sizeof(struct sockaddr_in)), 0);
    return fd;
}

static unsigned count_descriptors(void) {
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static void setup(void) {
    a = b = (side){0};
}

static void teardown(void) {
    sl_credentials *keys[] = {a.credentials, a.credentials == b.credentials ? NULL : b.credentials};
    close_side(&a);
    close_side(&b);
    for (int i = 0; i < 2; i++)
        if (keys[i] != NULL)
            sl_credentials_close(&keys[i]);
}

/* ---- who is let in ---- */

FIXTURES(setup, teardown);

/* Nothing is reported before both have proved what they have. */
static const struct {
    int keys[2]; /* of a and b; 0: none */
    uint32_t rank;
    const char *why; /* it is refused; NULL: both are connected */
} pairs[] = {
    {{0, 0}, 2, NULL},           {{1, 1}, 2, NULL},           {{1, 2}, 2, "another key"},
    {{1, 0}, 2, "another kind"}, {{0, 1}, 2, "another kind"}, {{1, 1}, 9, "it is rank 9"},
};

START_LOOP_TEST(who_proves_it_is_let_in_and_others_hear_why, sizeof pairs / sizeof *pairs) {
    const int *which = pairs[_i].keys;
    sl_credentials *key = which[0] + which[1] > 0 ? make_run_key() : NULL;
    open_side(&a, which[0] > 0 ? key : NULL);
    open_side(&b, which[1] > 1 ? make_run_key() : which[1] > 0 ? key : NULL);
    dial(pairs[_i].rank);
    if (pairs[_i].why == NULL) {
        LOOK_UNTIL(a.connected && b.connected);
        ck_assert_uint_eq(a.refusals, 0);
        return;
    }
    LOOK_UNTIL(b.down);
    ck_assert_msg(strstr(b.why, pairs[_i].why) != NULL, "%s", b.why);
    ck_assert_uint_eq(a.requests, pairs[_i].rank == 9);
    ck_assert(which[1] < 2 || a.refusals == 1);
}

/* ---- receive buffers ---- */

static void send_one(const uint8_t *data, size_t bytes) {
    ck_assert_int_eq(sl_connection_send(b.connection, data, 64, data + 64, bytes - 64, true, 0), 0);
}

static void send_messages(uint32_t count) {
    for (uint32_t m = 0; m < count; m++) {
        const sl_frame frame = {.type = SL_FRAME_DATA,
                                .payload_bytes = MESSAGE_BYTES - SL_FRAME_HEADER_BYTES};
        for (size_t i = 0; i < MESSAGE_BYTES; i++)
            samples[m][i] = (uint8_t)(m * 7 + i % 251);
        sl_frame_encode(&frame, samples[m]);
        send_one(samples[m], MESSAGE_BYTES);
    }
}

static void connect_with_pool(void) {
    const sl_buffers buffers = {.vec = sl_vec_cpu(), .count = BUFFERS, .bytes = MESSAGE_BYTES};
    uint8_t first[SL_FRAME_HEADER_BYTES];
    open_side(&a, NULL);
    open_side(&b, NULL);
    EXPECT_WELL(sl_pool_open(&a.pool, a.fabric, &buffers, NULL, &error));
    dial(2);
    LOOK_UNTIL(b.connected);
    sl_frame_encode(&(sl_frame){.type = SL_FRAME_BYE}, first);
    send_one(first, sizeof first);
    LOOK_UNTIL(a.granted);
}

static uint32_t count_buffers(uint32_t count) {
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t before = 0;
        while (a.buffers[before] != a.buffers[i])
            before++;
        distinct += before == i;
    }
    return distinct;
}

/* Whatever waits in the socket, the two that are posted take turns. */
START_TEST(buffers_used_last_are_used_next) {
    connect_with_pool();
    a.releases = true;
    send_messages(MESSAGES - 1);
    LOOK_UNTIL(a.messages == MESSAGES - 1);
    ck_assert_uint_le(count_buffers(MESSAGES - 1), 2);
}

/* Held ones are not overwritten, all of the pool can be held, and the rest waits for a release. */
START_TEST(messages_wait_for_a_buffer) {
    connect_with_pool();
    send_messages(BUFFERS + 2);
    LOOK_UNTIL(a.messages == BUFFERS);
    for (int i = 0; i < 200; i++)
        look();
    ck_assert_uint_eq(a.messages, BUFFERS);
    ck_assert_uint_eq(count_buffers(BUFFERS), BUFFERS);
    for (uint32_t m = 0; m < BUFFERS; m++)
        ck_assert_mem_eq(a.buffers[m]->data, samples[m], MESSAGE_BYTES);
    for (uint32_t m = 0; m < 2; m++) {
        sl_buffer_release(a.buffers[3 * m]);
        LOOK_UNTIL(a.messages == BUFFERS + m + 1);
        ck_assert_ptr_eq(a.buffers[BUFFERS + m], a.buffers[3 * m]);
    }
}

/* ---- ends ---- */

START_TEST(who_asks_as_the_fabric_closes_is_sent_away) {
    int askers[ASKERS];
    const unsigned before = count_descriptors();
    open_side(&a, NULL);
    const unsigned opened = count_descriptors();
    for (int i = 0; i < ASKERS; i++) {
        askers[i] = connect_to(sl_fabric_port(a.fabric));
        ck_assert_int_eq(send(askers[i], "\1\60", 2, 0), 2);
    }
    LOOK_UNTIL(count_descriptors() >= opened + 2 * ASKERS);
    close_side(&a);
    ck_assert_uint_eq(a.requests, 0);
    ck_assert_uint_eq(count_descriptors(), before + ASKERS);
    for (int i = 0; i < ASKERS; i++) {
        char answer[64];
        while (recv(askers[i], answer, sizeof answer, 0) > 0)
            continue;
        close(askers[i]);
    }
}

START_TEST(who_says_nothing_is_ended_and_counted) {
    open_side(&a, NULL);
    int askers[ASKERS];
    for (int i = 0; i < ASKERS; i++)
        askers[i] = connect_to(sl_fabric_port(a.fabric));
    size_t ended = 0;
    LOOK_UNTIL((ended += sl_fabric_end_silent(a.fabric)) == ASKERS);
    for (int i = 0; i < ASKERS; i++)
        close(askers[i]);
}
