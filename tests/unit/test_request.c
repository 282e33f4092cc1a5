/* test_request.c - which requests an agent's page answers, and how others are refused. */
#include "harness.h"
#include "http/request.h"

static sl_wanted asked;

static int judge(const char *text, const char *host) {
    const sl_request r = {text, strlen(text), host};
    return sl_request_judge(&r, &asked);
}

static const struct {
    int code;
    const char *text;
} rows[] = {
    {200, "GET /status HTTP/1.1\r\nHost: node3:9130\r\n\r\n"},
    {200, "GET /status HTTP/1.1\r\nhOST:\tNODE3 \r\nAccept: */*\r\n\r\n"},
    {200, "GET /status?a=b HTTP/1.1\r\nHost: localhost:1\r\n\r\n"},
    {200, "GET /status HTTP/1.1\nHost: [::1]:9130\n\n"},
    {200, "GET /status HTTP/1.1\r\nHost: 10.1.2.3:9130\r\nContent-Length: 0\r\n\r\n"},
    {200, "GET /status HTTP/1.0\r\n\r\n"},
    {200, "HEAD /status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nwhat follows \x01"},
    /* not yet */
    {0, ""},
    {0, "GET /status HTTP/1.1\r\nHost: node3\r\n"},
    {0, "GET /status HTTP/1.1\r\nHost: node3\r\n\r"},
    {0, "\r"},
    /* no request */
    {400, "\r\n"},
    {400, "GET /status\r\n\r\n"},
    {400, "GET  /status HTTP/1.1\r\nHost: node3\r\n\r\n"},
    {400, "GET /status HTTP/1.1 \r\nHost: node3\r\n\r\n"},
    {400, "GET /status HTTP/1.1\r\n\r\n"},
    {400, "GET /status HTTP/1.1\r\nHost: node3\r\nHost: node3\r\n\r\n"},
    {400, "GET /status HTTP/1.1\r\nHost: node3\r\n folded: 1\r\n\r\n"},
    {400, "GET /status HTTP/1.1\r\nHost : node3\r\n\r\n"},
    {400, "GET /status HTTP/1.1\r\nHost: node3\r\nnothing\r\n\r\n"},
    {400, "GET /status HTTP/1.1\r\nHost: node3\r\n: nothing\r\n\r\n"},
    {400, "GET \x1b[2J"},
    {400, "\x16\x03\x01"},
    /* another host, before anything else is said */
    {403, "GET /status HTTP/1.1\r\nHost: evil.example:9130\r\n\r\n"},
    {403, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"},
    {403, "POST /status HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 3\r\n\r\nabc"},
    {403, "GET /status HTTP/1.0\r\nHost: node3.evil.example\r\n\r\n"},
    {403, "GET /status HTTP/1.1\r\nHost: \r\n\r\n"},
    {403, "GET /status HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n"},
    {403, "GET /status HTTP/1.1\r\nHost: node3 evil\r\n\r\n"},
    {405, "POST /status HTTP/1.1\r\nHost: node3\r\n\r\n"},
    {405, "get /status HTTP/1.1\r\nHost: node3\r\n\r\n"},
    {413, "GET /status HTTP/1.1\r\nHost: node3\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {413, "POST /status HTTP/1.1\r\nHost: node3\r\nContent-Length: 3\r\n\r\nabc"},
    {505, "GET /status HTTP/2.0\r\nHost: node3\r\n\r\n"},
};

START_TEST(requests_are_answered_or_refused) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int code = judge(rows[i].text, "node3");
        ck_assert_msg(code == rows[i].code, "%d, not %d: '%s'", code, rows[i].code, rows[i].text);
        ck_assert(asked.head_only == (strncmp(rows[i].text, "HEAD", 4) == 0));
    }
}

static void check_piece(const char *text, size_t at, size_t bytes, const char *piece) {
    ck_assert_msg(bytes == strlen(piece) && memcmp(text + at, piece, bytes) == 0, "%s", text);
}

START_TEST(what_is_asked_is_found) {
    static const char *const three[][3] = {
        {"HEAD /readyz?verbose HTTP/1.1\r\nHost: node3\r\n\r\n", "/readyz", "verbose"},
        {"GET /a?b?c HTTP/1.0\r\n\r\n", "/a", "b?c"},
        {"GET / HTTP/1.0\r\n\r\n", "/", ""},
        {"GET ? HTTP/1.0\r\n\r\n", "", ""},
    };
    for (size_t i = 0; i < sizeof three / sizeof *three; i++) {
        ck_assert_int_eq(judge(three[i][0], "node3"), 200);
        check_piece(three[i][0], asked.path, asked.path_bytes, three[i][1]);
        check_piece(three[i][0], asked.query, asked.query_bytes, three[i][2]);
    }
}

START_TEST(any_name_may_do) {
    ck_assert_int_eq(judge("GET /status HTTP/1.1\r\nHost: evil.example\r\n\r\n", NULL), 200);
    ck_assert_int_eq(judge("GET /status HTTP/1.1\r\n\r\n", NULL), 400);
}

START_TEST(a_request_is_short) {
    char text[SL_REQUEST_BYTES_MAX + 1] = "GET /status HTTP/1.1\r\nHost: node3\r\nA: ";
    memset(text + strlen(text), 'a', sizeof text - 1 - strlen(text));
    ck_assert_int_eq(judge(text, "node3"), 431);
    text[SL_REQUEST_BYTES_MAX - 1] = '\0';
    ck_assert_int_eq(judge(text, "node3"), 0);
    memcpy(text + SL_REQUEST_BYTES_MAX - 4, "\r\n\r\n", 4);
    ck_assert_int_eq(judge(text, "node3"), 200);
}
