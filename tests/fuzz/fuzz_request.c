/* fuzz_request.c - what anybody may send to an agent's page: judged as it is and in pieces, then
 * said to a server over a socket, which answers as judged, and lets go of who has asked. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "monitor/server.h"

enum { ANSWER_BYTES_MAX = 4096, PIECES = 32, SERVED = 8 /* one of so many */ };
static const char page[] = "{\"rank\": 3}";

static char *write_page(void *context) {
    return strdup(page);
}

static int judge(const uint8_t *data, size_t size, const char *host, bool *head_only) {
    const sl_request r = {(const char *)data, size, "/status", host};
    return sl_request_judge(&r, head_only);
}

/* What is judged does not depend on what follows, and any name of the host is no harder to say. */
static int judge_in_pieces(const uint8_t *data, size_t size, bool *head_only) {
    const int code = judge(data, size, "node3", head_only);
    bool ignored;
    int before = SL_REQUEST_UNFINISHED;
    for (size_t i = 0; i < size && before == SL_REQUEST_UNFINISHED; i += 1 + size / PIECES)
        before = judge(data, i, "node3", &ignored);
    assert(before == SL_REQUEST_UNFINISHED || before == code || before == SL_REQUEST_BAD);
    const int anywhere = judge(data, size, NULL, &ignored);
    assert(code == SL_REQUEST_FOREIGN || anywhere == code);
    assert(anywhere != SL_REQUEST_FOREIGN);
    return before != SL_REQUEST_UNFINISHED ? before : code;
}

/* ---- a server ---- */

static sl_server server = {.path = "/status", .host = "node3", .page = write_page};
static struct sockaddr_un place = {.sun_family = AF_UNIX};
static int nobody[2];

static void open_server(void) {
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    snprintf(place.sun_path + 1, sizeof place.sun_path - 1, "starling fuzz %d", (int)getpid());
    assert(bind(listener, (struct sockaddr *)&place, sizeof place) == 0);
    assert(listen(listener, 4) == 0 && pipe(nobody) == 0);
    sl_server_open(&server, listener);
}

/* An answer is whole, and the other end closed. */
static void check_answer(int fd, int code, bool head_only) {
    char answer[ANSWER_BYTES_MAX], first[32];
    size_t bytes = 0;
    for (ssize_t got; (got = recv(fd, answer + bytes, sizeof answer - 1 - bytes, 0)) > 0;)
        bytes += (size_t)got;
    answer[bytes] = '\0';
    const int length = snprintf(first, sizeof first, "HTTP/1.1 %d ", code);
    const char *body = strstr(answer, "\r\n\r\n");
    assert(strncmp(answer, first, (size_t)length) == 0 && body != NULL);
    assert((body[4] == '\0') == head_only);
    assert(code != SL_REQUEST_OK || head_only || strcmp(body + 4, page) == 0);
}

static void ask(const uint8_t *data, size_t size, int code, bool head_only) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const size_t step = size > 0 && data[size - 1] % 2 == 0 ? size : size / 3 + 1;
    if (server.listener.spare == 0 && server.places.count == 0)
        open_server();
    sl_listener_rest(&server.listener, 0);
    assert(connect(fd, (struct sockaddr *)&place, sizeof place) == 0);
    assert(sl_server_look(&server, nobody[0]) && server.places.taken == 1);
    for (size_t at = 0; at < size; at += step) {
        const size_t bytes = size - at < step ? size - at : step;
        assert(send(fd, data + at, bytes, MSG_NOSIGNAL) == (ssize_t)bytes);
        assert(sl_server_look(&server, nobody[0]));
    }
    if (code != SL_REQUEST_UNFINISHED)
        check_answer(fd, code, head_only);
    close(fd);
    assert(sl_server_look(&server, nobody[0]) && server.places.taken == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bool head_only;
    if (size > SL_REQUEST_BYTES_MAX)
        return 0;
    const int code = judge_in_pieces(data, size, &head_only);
    if (size % SERVED == 0)
        ask(data, size, code, head_only);
    return 0;
}
