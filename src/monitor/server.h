/* server.h - answers whoever asks at a listening socket for one page, over HTTP.
 *
 * Anybody may connect there. So it holds few connections, each for few seconds and few bytes, and
 * leaves half of the process's descriptors to others (base/places.h, base/listener.h).
 */
#ifndef SL_SERVER_H
#define SL_SERVER_H

#include "base/listener.h"
#include "base/places.h"
#include "monitor/request.h"

enum { SL_SERVER_PLACES = 16, SL_SERVER_PLACES_OF_HOST = 4, SL_SERVER_PATIENCE_S = 5 };

typedef struct sl_server_guest {
    int fd; /* -1: nobody is at this place */
    char heard[SL_REQUEST_BYTES_MAX];
    size_t heard_bytes;
    char *answer; /* (answer_bytes); NULL: it has not asked yet */
    size_t answer_bytes, told_bytes;
    size_t ignored_bytes; /* that came after its request */
} sl_server_guest;

typedef struct sl_server {
    const char *path, *host;      /* as in request.h; borrowed */
    char *(*page)(void *context); /* malloc'ed JSON; NULL: out of memory */
    void *context;
    sl_listener listener; /* its fd: -1: none */
    sl_places places;
    sl_server_guest guests[SL_SERVER_PLACES]; /* one for each place */
} sl_server;

/* The fields of the first three lines are the caller's. */
void sl_server_open(sl_server *s, int listener);
/* Waits until there is something to do, and does it; false: end can be read. */
bool sl_server_look(sl_server *s, int end);
/* The listening socket stays the caller's. */
void sl_server_close(sl_server *s);

#endif
