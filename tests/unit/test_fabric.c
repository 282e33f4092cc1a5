/* test_fabric.c - nothing stays of who asks to connect and is not let in, over real sockets. */
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "loopback.h"
#include "world/doorway.h"
#include "world/fabric.h"

enum {
    ASKERS = 5,
    REQUEST_MAX = 1024,
    LOOKS = 300000 /* half a minute: the machine may be loaded */
};

static sl_fabric *fabric;
static sl_error error;
static uint8_t request[REQUEST_MAX]; /* as the provider sends it */
static size_t request_bytes;
static int askers[ASKERS];
static unsigned requests, downs;
static sl_connection *connection; /* that who asks is accepted with */

static void on_connected(void *context, void *owner) {
    (void)context;
    (void)owner;
    ck_abort_msg("who has gone is connected");
}

static void on_received(void *context, void *owner, sl_buffer *buffer, size_t bytes) {
    (void)context;
    (void)owner;
    (void)buffer;
    (void)bytes;
    ck_abort_msg("who has gone said something");
}

static void on_sent(void *context, void *owner, uint32_t cookie) {
    (void)context;
    (void)owner;
    (void)cookie;
}

static void on_down(void *context, void *owner, bool established, const char *reason) {
    (void)context;
    (void)owner;
    (void)established;
    ck_assert_ptr_nonnull(reason);
    downs++;
}

static const sl_connection_handlers handlers = {on_connected, on_received, on_sent, on_down};

/* Who asks ends the connection before he is answered. */
static sl_connection *on_requested(void *context, const uint8_t *greeting, const char *from,
                                   char why[SL_GREETING_WHY_MAX]) {
    const struct linger reset = {.l_onoff = 1};
    (void)context;
    (void)greeting;
    (void)from;
    (void)why;
    ck_assert_int_eq(setsockopt(askers[requests], SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    close(askers[requests]);
    askers[requests++] = -1;
    ck_assert_int_eq(sl_connection_open(&connection, fabric, &handlers, NULL, 1, &error), 0);
    return connection;
}

static void open_fabric(void) {
    const sl_fabric_settings settings = {
        .provider = "tcp", .address = loopback_address(0), .requested = on_requested};
    ck_assert_msg(sl_fabric_open(&fabric, &settings, &error) == 0, "%s", error.text);
}

/* What a fabric that dials sends: a socket of ours listens for it. */
static void record_request(void) {
    const uint8_t greeting[SL_GREETING_BYTES] = {0};
    struct sockaddr_storage address = loopback_address(0);
    socklen_t bytes = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(struct sockaddr_in)), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    ck_assert_int_eq(sl_connection_open(&connection, fabric, &handlers, NULL, 1, &error), 0);
    ck_assert_int_eq(sl_connection_dial(connection, &address, greeting, &error), 0);
    const int accepted = accept(listener, NULL, NULL);
    while (request_bytes < SL_DOORWAY_GREETING_BYTES + 32) {
        sl_fabric_poll(fabric);
        const ssize_t got =
            recv(accepted, request + request_bytes, REQUEST_MAX - request_bytes, MSG_DONTWAIT);
        request_bytes += got > 0 ? (size_t)got : 0;
    }
    close(accepted);
    close(listener);
    sl_connection_close(&connection);
}

static unsigned count_descriptors(void) {
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static void ask(int *asker, size_t bytes) {
    const struct sockaddr_storage address = loopback_address(sl_fabric_port(fabric));
    *asker = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(*asker, (const void *)&address, sizeof(struct sockaddr_in)), 0);
    ck_assert_int_eq(send(*asker, request, bytes, 0), (ssize_t)bytes);
}

static void look(void) {
    sl_fabric_poll(fabric);
    usleep(100);
}

static void setup(void) {
    request_bytes = requests = downs = 0;
    open_fabric();
    record_request();
    sl_fabric_close(&fabric);
}

START_TEST(who_asks_as_the_fabric_closes_is_sent_away) {
    const unsigned before = count_descriptors();
    open_fabric();
    const unsigned opened = count_descriptors();
    for (int i = 0; i < ASKERS; i++)
        ask(&askers[i], request_bytes / 2);
    for (int i = 0; i < LOOKS && count_descriptors() < opened + 2 * ASKERS; i++)
        look();
    ck_assert_uint_eq(count_descriptors(), opened + 2 * ASKERS);
    for (int i = 1; i < ASKERS; i += 2) /* and some have asked whole, unseen */
        send(askers[i], request + request_bytes / 2, request_bytes - request_bytes / 2, 0);
    sl_fabric_close(&fabric);
    ck_assert_uint_eq(requests, 0);
    ck_assert_uint_eq(count_descriptors(), before + ASKERS);
    for (int i = 0; i < ASKERS; i++) {
        uint8_t answer[REQUEST_MAX];
        while (recv(askers[i], answer, sizeof answer, 0) > 0)
            continue;
        close(askers[i]);
    }
}
END_TEST

START_TEST(who_goes_before_the_answer_is_forgotten) {
    const unsigned before = count_descriptors();
    open_fabric();
    for (unsigned i = 0; i < ASKERS; i++) {
        ask(&askers[i], request_bytes);
        for (int k = 0; k < LOOKS && downs <= i; k++)
            look();
        ck_assert_uint_eq(downs, i + 1);
        sl_connection_close(&connection);
    }
    sl_fabric_poll(fabric);
    sl_fabric_close(&fabric);
    ck_assert_uint_eq(count_descriptors(), before);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("fabric");
    ADD_TESTS_WITH(suite, "fabric", setup, NULL, who_asks_as_the_fabric_closes_is_sent_away,
                   who_goes_before_the_answer_is_forgotten);
    return run_suite(suite);
}
