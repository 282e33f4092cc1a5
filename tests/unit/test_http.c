/* test_http.c - what a server shows, whom it keeps, and whom it lets go. */
#include <dirent.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include <event2/buffer.h>

#include "harness.h"
#include "http/server.h"

enum { PIECE = 1 << 20, SLOW = 1000, SLOW_AT_ONCE = 250 };
static const char page[] = "\x1f\x8b not quite";
static atomic_uint streamed;

static void show_page(void *context, const char *query, sl_http_answer *out) {
    out->type = "text/html; charset=utf-8";
    out->headers = "Content-Encoding: gzip\r\nCache-Control: no-cache\r\n"
                   "Content-Security-Policy: default-src 'self'\r\n";
    out->body = page;
    out->bytes = sizeof page;
}

static void show_query(void *context, const char *query, sl_http_answer *out) {
    out->body = out->owned = strdup(query);
    out->bytes = strlen(query);
}

/* Two events, and its end. */
static bool count(void *context, uint64_t *cursor, struct evbuffer *out) {
    evbuffer_add_printf(out, "data: %u\n\n", (unsigned)++*cursor);
    return *cursor < 2;
}

static bool flood(void *context, uint64_t *cursor, struct evbuffer *out) {
    static const char piece[PIECE];
    evbuffer_add(out, piece, sizeof piece);
    atomic_fetch_add(&streamed, 1);
    return true;
}

static const sl_http_route routes[] = {
    {.path = "/", .answer = show_page},
    {.path = "/query", .answer = show_query},
    {.path = "/count", .stream = count},
    {.path = "/flood", .stream = flood},
};
static sl_http *http;

static void open_http(void) {
    const sl_http_place place = {.host = "127.0.0.1", .key = "test"};
    sl_error error;
    ck_assert_msg(sl_http_open(&http, &place, routes, 4, &error) == 0, "%s", error.text);
}

static int call(const char *request) {
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(sl_http_port(http)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), few = 1 << 12;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &few, sizeof few);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    return fd;
}

/* Until the other end closes. */
static const char *hear(int fd) {
    static char all[1 << 12];
    size_t bytes = 0;
    for (ssize_t got; (got = recv(fd, all + bytes, sizeof all - 1 - bytes, 0)) > 0;)
        bytes += (size_t)got;
    all[bytes] = '\0';
    close(fd);
    return all;
}

#define SAY(method, path) method " " path " HTTP/1.1\r\nHost: localhost\r\n\r\n"

static void check_said(const char *request, const char *first, const char *last) {
    const char *said = hear(call(request));
    const size_t bytes = strlen(said), end = strlen(last);
    ck_assert_msg(strncmp(said, first, strlen(first)) == 0, "%s: %s", request, said);
    ck_assert_msg(bytes >= end && strcmp(said + bytes - end, last) == 0, "%s: %s", request, said);
}

START_TEST(routes_are_shown) {
    open_http();
    check_said(SAY("GET", "/query?a=b"), "HTTP/1.1 200 OK\r\n", "\r\n\r\na=b");
    check_said(SAY("HEAD", "/query?a=b"), "HTTP/1.1 200 OK\r\n", "Connection: close\r\n\r\n");
    check_said(SAY("GET", "/x"), "HTTP/1.1 404 ", "there is /, /query, /count, /flood\n");
    check_said(SAY("PUT", "/"), "HTTP/1.1 405 ", "GET and HEAD only\n");
    check_said(SAY("GET", "/count"), "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n",
               "\r\n\r\ndata: 1\n\ndata: 2\n\n");
    check_said(SAY("HEAD", "/count"), "HTTP/1.1 200 OK\r\n", "Connection: close\r\n\r\n");
    const char *said = hear(call(SAY("GET", "/")));
    ck_assert(strstr(said, "\r\nContent-Security-Policy: default-src 'self'\r\n") != NULL);
    ck_assert(strstr(said, "no-store") == NULL && strstr(said, "\r\n\r\n\x1f\x8b not") != NULL);
    sl_http_close(&http);
}

static void wait_for(unsigned pieces) {
    while (atomic_load(&streamed) < pieces)
        usleep(10000);
}

static int count_descriptors(void) {
    DIR *all = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(all) != NULL)
        count++;
    closedir(all);
    return count;
}

/* More than the kernel keeps comes whole to one that takes it; one that does not is told it once.
 */
START_TEST(a_viewer_is_told_one_thing_and_dropped_if_it_does_not_take_it) {
    static char bytes[PIECE];
    open_http();
    const int before = count_descriptors(), slow = call(SAY("GET", "/flood"));
    wait_for(1);
    const int quick = call(SAY("GET", "/flood"));
    for (size_t taken = 0; taken < 3 * PIECE;) {
        const ssize_t got = recv(quick, bytes, sizeof bytes, 0);
        ck_assert_int_gt(got, 0);
        taken += (size_t)got;
    }
    close(quick);
    while (count_descriptors() > before + 1)
        usleep(10000);
    ck_assert_uint_le(atomic_load(&streamed), 1 + 4);
    close(slow);
    sl_http_close(&http);
}

START_TEST(there_are_32_viewers) {
    int all[SL_HTTP_VIEWERS];
    open_http();
    for (int i = 0; i < SL_HTTP_VIEWERS; i++)
        all[i] = call(SAY("GET", "/flood"));
    wait_for(SL_HTTP_VIEWERS);
    check_said(SAY("GET", "/flood"), "HTTP/1.1 503 ", "try again later\n");
    check_said(SAY("GET", "/query?x"), "HTTP/1.1 200 OK\r\n", "x");
    for (int i = 0; i < SL_HTTP_VIEWERS; i++)
        close(all[i]);
    check_said(SAY("GET", "/count"), "HTTP/1.1 200 OK\r\n", "data: 2\n\n");
    sl_http_close(&http);
}

/* They say half of a request, a whole one whose answer they do not take, or want a stream. */
START_TEST(slow_clients_leave_nothing_behind) {
    static const char *const says[] = {"GET /query HTTP/1.1\r\nHo", SAY("GET", "/"),
                                       SAY("GET", "/flood")};
    int all[SLOW_AT_ONCE];
    open_http();
    check_said(SAY("GET", "/query?x"), "HTTP/1.1 200 OK\r\n", "x");
    const int before = count_descriptors();
    const size_t used = mallinfo2().uordblks;
    for (int count = 0; count < SLOW; count += SLOW_AT_ONCE) {
        for (int i = 0; i < SLOW_AT_ONCE; i++)
            all[i] = call(says[i % 3]);
        check_said(SAY("GET", "/query?x"), "HTTP/1.1 200 OK\r\n", "x");
        ck_assert_int_le(count_descriptors(),
                         before + SLOW_AT_ONCE + SL_SERVER_PLACES + SL_HTTP_VIEWERS);
        for (int i = 0; i < SLOW_AT_ONCE; i++)
            close(all[i]);
    }
    while (count_descriptors() > before)
        usleep(10000);
    check_said(SAY("GET", "/query?x"), "HTTP/1.1 200 OK\r\n", "x");
    ck_assert_int_lt(mallinfo2().uordblks, used + (1 << 16));
    sl_http_close(&http);
}
