/* fuzz_request.c - what anybody may send to an agent's pages: judged as it is and in pieces, then
 * said to a server over a socket, which answers as judged, and lets go of who has asked. */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/buffer.h>

#include "http/request.h"
#include "http/server.h"

enum { ANSWER_BYTES_MAX = 8192, PIECES = 32, SERVED = 8 /* one of so many */, TURNS_MAX = 10000 };
static const char page[] = "{\"rank\": 3}";

static void show_page(void *context, const char *query, sl_http_answer *out) {
    out->body = page;
    out->bytes = sizeof page - 1;
    assert(strlen(query) < SL_REQUEST_BYTES_MAX);
}

static bool stream(void *context, uint64_t *cursor, struct evbuffer *out) {
    return evbuffer_add(out, page, sizeof page - 1) != 0;
}

static const sl_http_route routes[] = {{.path = "/status", .answer = show_page},
                                       {.path = "/events", .stream = stream}};

static int judge(const uint8_t *data, size_t size, const char *host, sl_wanted *asked) {
    const sl_request r = {(const char *)data, size, host};
    return sl_request_judge(&r, asked);
}

/* What is judged does not depend on what follows, and any name of the host is no harder to say. */
static int judge_in_pieces(const uint8_t *data, size_t size, sl_wanted *asked) {
    const int code = judge(data, size, "node3", asked);
    sl_wanted ignored;
    int before = SL_REQUEST_UNFINISHED;
    for (size_t i = 0; i < size && before == SL_REQUEST_UNFINISHED; i += 1 + size / PIECES)
        before = judge(data, i, "node3", &ignored);
    assert(before == SL_REQUEST_UNFINISHED || before == code || before == SL_REQUEST_BAD);
    const int anywhere = judge(data, size, NULL, &ignored);
    assert(code == SL_REQUEST_FOREIGN || anywhere == code);
    assert(anywhere != SL_REQUEST_FOREIGN);
    assert(asked->path + asked->path_bytes <= size && asked->query + asked->query_bytes <= size);
    return before != SL_REQUEST_UNFINISHED ? before : code;
}

/* ---- a server ---- */

static sl_http_server server;
static struct sockaddr_un place = {.sun_family = AF_UNIX};

static void open_server(void) {
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int nobody[2];
    sl_error error;
    signal(SIGPIPE, SIG_IGN); /* else the server's thread blocks it */
    snprintf(place.sun_path + 1, sizeof place.sun_path - 1, "starling fuzz %d", (int)getpid());
    assert(bind(listener, (struct sockaddr *)&place, sizeof place) == 0);
    assert(listen(listener, 4) == 0 && pipe(nobody) == 0);
    assert(sl_http_server_open(&server, listener, nobody[0], "node3", routes, 2, &error) == 0);
}

static bool is_empty(void) {
    return server.places.taken == 0 && server.viewer_count == 0;
}

/* Until somebody is there, or nobody. */
static void turn_until(bool empty) {
    for (int i = 0; i < TURNS_MAX && is_empty() != empty; i++) {
        sl_http_server_turn(&server);
        if (i > 0)
            usleep(200); /* the door rests */
    }
    assert(is_empty() == empty);
}

/* An answer is whole, and the other end closed. */
static void check_answer(int fd, int code, const uint8_t *data, const sl_wanted *asked) {
    char answer[ANSWER_BYTES_MAX], first[32];
    size_t bytes = 0;
    for (ssize_t got; (got = recv(fd, answer + bytes, sizeof answer - 1 - bytes, 0)) > 0;)
        bytes += (size_t)got;
    answer[bytes] = '\0';
    const bool known = asked->path_bytes == strlen("/status") &&
                       (memcmp(data + asked->path, "/status", asked->path_bytes) == 0 ||
                        memcmp(data + asked->path, "/events", asked->path_bytes) == 0);
    const int told = code == SL_REQUEST_OK && !known ? 404 : code;
    const int length = snprintf(first, sizeof first, "HTTP/1.1 %d ", told);
    const char *body = strstr(answer, "\r\n\r\n");
    assert(strncmp(answer, first, (size_t)length) == 0 && body != NULL);
    assert((body[4] == '\0') == asked->head_only);
    assert(told != SL_REQUEST_OK || asked->head_only || strcmp(body + 4, page) == 0);
}

static void ask(const uint8_t *data, size_t size, int code, const sl_wanted *asked) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const size_t step = size > 0 && data[size - 1] % 2 == 0 ? size : size / 3 + 1;
    if (server.base == NULL)
        open_server();
    assert(connect(fd, (struct sockaddr *)&place, sizeof place) == 0);
    turn_until(false);
    for (size_t at = 0; at < size; at += step) {
        const size_t bytes = size - at < step ? size - at : step;
        assert(send(fd, data + at, bytes, MSG_NOSIGNAL) == (ssize_t)bytes || is_empty());
        sl_http_server_turn(&server);
    }
    for (int i = 0; i < 4; i++) /* an answer is made, sent, and over */
        sl_http_server_turn(&server);
    if (code != SL_REQUEST_UNFINISHED)
        check_answer(fd, code, data, asked);
    close(fd);
    turn_until(true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sl_wanted asked;
    if (size > SL_REQUEST_BYTES_MAX)
        return 0;
    const int code = judge_in_pieces(data, size, &asked);
    if (size % SERVED == 0)
        ask(data, size, code, &asked);
    return 0;
}
