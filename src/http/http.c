/* http.c - see http.h. A server on a thread of its own. */
#include "http/http.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/address.h"
#include "http/door.h"
#include "http/server.h"

struct sl_http {
    sl_http_door door;
    int end; /* readable when the thread is to end */
    bool serves, runs;
    sl_http_server server;
    pthread_t thread;
};

static void *run(void *context) {
    sl_http *h = context;
    sl_http_server_run(&h->server);
    return NULL;
}

/* Signals are for others. */
static int start(sl_http *h, sl_error *error) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    h->runs = pthread_create(&h->thread, NULL, run, h) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (h->runs) /* top -H shows what looking costs */
        pthread_setname_np(h->thread, "starling-http");
    return h->runs ? 0 : sl_fail(error, SL_ENOMEM, "no thread for HTTP could be started");
}

static int serve(sl_http *h, const sl_http_route *routes, size_t count, sl_error *error) {
    const char *host = h->door.own_name[0] != '\0' ? h->door.own_name : NULL;
    h->end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->end < 0)
        return sl_fail(error, SL_ENOMEM, "no descriptor is left for the HTTP server");
    int result =
        sl_http_server_open(&h->server, h->door.listener, h->end, host, routes, count, error);
    if (result != 0)
        return result;
    h->serves = true;
    return start(h, error);
}

int sl_http_open(sl_http **out, const sl_http_place *place, const sl_http_route *routes,
                 size_t count, sl_error *error) {
    sl_http *h = calloc(1, sizeof *h);
    if (h == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory");
    h->end = -1;
    int result = sl_http_door_open(&h->door, place, error);
    if (result == 0)
        result = serve(h, routes, count, error);
    if (result != 0)
        sl_http_close(&h);
    *out = h;
    return result;
}

uint16_t sl_http_port(const sl_http *h) {
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    return getsockname(h->door.listener, (struct sockaddr *)&own, &bytes) == 0
               ? sl_address_port(&own)
               : 0;
}

void sl_http_close(sl_http **http) {
    sl_http *h = *http;
    if (h == NULL)
        return;
    *http = NULL;
    if (h->runs) {
        eventfd_write(h->end, 1);
        pthread_join(h->thread, NULL);
    }
    if (h->serves)
        sl_http_server_close(&h->server);
    if (h->end >= 0)
        close(h->end);
    sl_http_door_close(&h->door);
    free(h);
}
