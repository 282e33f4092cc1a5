/* server.h - the guests and viewers of a server, on an event loop; see http.h.
 *
 * A guest asks, is answered, and goes; who asks for a stream becomes a viewer, and stays. Guests
 * have few places, each for few seconds and few bytes (base/places.h, base/listener.h).
 */
#ifndef SL_HTTP_SERVER_H
#define SL_HTTP_SERVER_H

#include "base/listener.h"
#include "base/places.h"
#include "http/http.h"

struct bufferevent;
struct event;
struct event_base;

enum {
    SL_SERVER_PLACES = 32,
    SL_SERVER_PLACES_OF_HOST = 8, /* a browser asks for a page's files at once */
    SL_SERVER_PATIENCE_S = 5,
    SL_SERVER_VIEWER_PATIENCE_S = 10, /* in which a viewer takes nothing of what there is */
    SL_SERVER_KNOWN_MAX = 512
};

typedef struct sl_http_server sl_http_server;

typedef struct sl_http_guest {
    sl_http_server *server;
    struct bufferevent *line; /* NULL: nobody is at this place */
    size_t ignored_bytes;     /* that came after its request */
    bool answered, told;      /* told: all of the answer has left */
    bool silent;              /* it has closed its end */
} sl_http_guest;

typedef struct sl_http_viewer {
    sl_http_server *server;
    struct bufferevent *line; /* NULL: nobody */
    const sl_http_route *route;
    struct sockaddr_storage other;
    uint64_t cursor;
    size_t ignored_bytes;
    unsigned quiet_ticks; /* since it was told something */
    unsigned late_ticks;  /* since it began to take that */
    bool over;            /* its stream; it takes what is left */
} sl_http_viewer;

struct sl_http_server {
    struct event_base *base;
    struct event *door, *rest; /* somebody waits; the door is looked at again */
    struct event *limit;       /* the oldest guest's time is over */
    struct event *tick;        /* while there are viewers */
    struct event *end;
    sl_listener listener; /* its fd is borrowed */
    const char *host;     /* as in request.h; borrowed */
    sl_http_route routes[SL_HTTP_ROUTES_MAX];
    size_t route_count;
    char known[SL_SERVER_KNOWN_MAX]; /* which routes there are */
    sl_places places;
    sl_http_guest guests[SL_SERVER_PLACES]; /* one for each place */
    unsigned viewer_count;
    sl_http_viewer viewers[SL_HTTP_VIEWERS];
};

/* end: a descriptor; once it can be read, the loop is over. host: NULL: any name may do. Closes
 * itself after an error. */
int sl_http_server_open(sl_http_server *server, int listener, int end, const char *host,
                        const sl_http_route *routes, size_t count, sl_error *error);
/* Until the end. */
void sl_http_server_run(sl_http_server *server);
/* Does what there is to do, and waits for nothing. */
void sl_http_server_turn(sl_http_server *server);
void sl_http_server_close(sl_http_server *server);

#endif
