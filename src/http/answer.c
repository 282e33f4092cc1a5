/* answer.c - see answer.h. */
#include "http/answer.h"

#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "http/request.h"

typedef struct status {
    int code;
    const char *reason, *text;
} status;

static const status statuses[] = {
    {SL_REQUEST_OK, "OK", ""},
    {SL_REQUEST_BAD, "Bad Request", "this is no request of HTTP/1.1 that can be read\n"},
    {SL_REQUEST_FOREIGN, "Forbidden",
     "the request is for another host: say an address, localhost, the host of monitor.listen, or "
     "the name of this machine, where that is 0.0.0.0 or ::\n"},
    {SL_ANSWER_UNKNOWN, "Not Found", "there is nothing here\n"},
    {SL_REQUEST_WRITES, "Method Not Allowed", "nothing can be changed here: GET and HEAD only\n"},
    {SL_REQUEST_HAS_BODY, "Content Too Large", "a request has no body here\n"},
    {SL_REQUEST_LONG, "Request Header Fields Too Large", "a request has at most 4096 bytes\n"},
    {SL_REQUEST_VERSION, "HTTP Version Not Supported", "HTTP/1.1 is spoken here\n"},
    {SL_ANSWER_FULL, "Service Unavailable", "too many look already: try again later\n"},
    {SL_ANSWER_MEMORY, "Internal Server Error", "out of memory\n"},
};
enum { STATUSES = sizeof statuses / sizeof *statuses };
#define TEXT_TYPE "text/plain; charset=utf-8"

static const status *find_status(int code) {
    size_t i = 0;
    while (i + 1 < STATUSES && statuses[i].code != code)
        i++;
    return &statuses[i];
}

sl_http_answer sl_http_refusal(int code) {
    const char *text = find_status(code)->text;
    return (sl_http_answer){code, TEXT_TYPE, NULL, text, strlen(text), NULL};
}

static void free_body(const void *body, size_t bytes, void *owned) {
    (void)body;
    (void)bytes;
    free(owned);
}

static bool append_body(struct evbuffer *out, const sl_http_answer *a) {
    if (evbuffer_add_reference(out, a->body, a->bytes, free_body, a->owned) == 0)
        return true;
    free(a->owned);
    return false;
}

bool sl_http_answer_append(struct evbuffer *out, const sl_http_answer *a, bool head_only) {
    const status *s = find_status(a->status);
    const bool well =
        evbuffer_add_printf(
            out,
            "HTTP/1.1 %d %s\r\n%sContent-Type: %s\r\n"
            "Content-Length: %zu\r\n%s"
            "X-Content-Type-Options: nosniff\r\n"
            "Connection: close\r\n\r\n",
            a->status, s->reason, a->status == SL_REQUEST_WRITES ? "Allow: GET, HEAD\r\n" : "",
            a->type, a->bytes, a->headers != NULL ? a->headers : "Cache-Control: no-store\r\n") > 0;
    if (well && !head_only && a->bytes > 0)
        return append_body(out, a);
    free(a->owned);
    return well;
}

bool sl_http_stream_append(struct evbuffer *out) {
    return evbuffer_add_printf(out, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                    "Cache-Control: no-store\r\n"
                                    "X-Content-Type-Options: nosniff\r\n"
                                    "Connection: close\r\n\r\n") > 0;
}
