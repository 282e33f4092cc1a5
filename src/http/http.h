/* http.h - a small HTTP server on a thread of its own: it lets look, and nothing can be changed.
 *
 * A table of routes says what is there. Anybody may connect, so strangers have few places and
 * little time (base/places.h), a request is a head of at most 4096 bytes that names this host, and
 * half of the process's descriptors are left to others. A route that streams keeps its viewers:
 * each is told one thing at a time, of any size, and whoever does not take it is dropped.
 *
 * It stands on libevent's bufferevents, and not on its evhttp, which (2.1) keeps the connections to
 * itself until a request is whole: its time limit begins anew with each byte, nobody can be shown
 * out for somebody else, and one host cannot be held to its share.
 */
#ifndef SL_HTTP_H
#define SL_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/error.h"

struct evbuffer; /* event2/buffer.h */

enum {
    SL_HTTP_VIEWERS = 32, /* of all streams; SL_HTTP_VIEWERS_OF_HOST of one that is not this one */
    SL_HTTP_VIEWERS_OF_HOST = 8,
    SL_HTTP_TICK_MS = 500,
    SL_HTTP_ROUTES_MAX = 16,
};

/* As route.answer gets it: 200, text, no body, no further headers. */
typedef struct sl_http_answer {
    int status;          /* 200, 404, 500, or 503 */
    const char *type;    /* "text/html; charset=utf-8" */
    const char *headers; /* further ones: "Content-Encoding: gzip\r\nCache-Control: no-cache\r\n";
                            NULL: "Cache-Control: no-store\r\n" */
    const void *body;    /* (bytes) */
    size_t bytes;
    void *owned; /* free()d once it is sent; NULL: the body outlives the server */
} sl_http_answer;

/* One of both functions. They run on the server's thread. */
typedef struct sl_http_route {
    const char *path; /* "/metrics" */
    void *context;
    /* query: what follows a '?', or "". */
    void (*answer)(void *context, const char *query, sl_http_answer *out);
    /* Server-sent events: appends some, or none, as a viewer comes, and again each SL_HTTP_TICK_MS
     * once all is taken.
     * *cursor: the viewer's own, 0 at first. False: its stream is over. */
    bool (*stream)(void *context, uint64_t *cursor, struct evbuffer *out);
} sl_http_route;

/* Where it listens. */
typedef struct sl_http_place {
    const char *folder, *name; /* a socket of this name in the folder, in place of one that is
                                  there: only who may use the folder comes in, by any name of the
                                  host. NULL: at */
    const char *host;          /* which is looked up, and */
    uint16_t port;             /* 0: a free one */
    bool is_public;            /* or else on loopback only: */
    const char *allow;         /* what lets it be public: "--public"; NULL: errors do not say */
    const char *key;           /* begins errors: "monitor.listen" */
    const char *hint;          /* ends that of a port that cannot be had; NULL: none */
} sl_http_place;

typedef struct sl_http sl_http;

/* Serves the routes (count, copied) until it is closed. SL_EFILE: no socket can be made there.
 * SL_EINVAL: the host is unknown, the port taken, or beyond loopback without is_public. */
int sl_http_open(sl_http **out, const sl_http_place *place, const sl_http_route *routes,
                 size_t count, sl_error *error);
/* 0: it listens at none. */
uint16_t sl_http_port(const sl_http *http);
/* Ends the thread, and removes the socket. */
void sl_http_close(sl_http **http);

#endif
