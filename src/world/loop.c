/* loop.c - see loop.h. */
#include "world/loop.h"

#include <stdio.h>
#include <stdlib.h>

#include <event2/event.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/listener.h"

enum { EVENTS_MAX = 8, SAID_BYTES = 160, DESCRIPTORS = 8 /* that it needs, and some */ };

typedef struct registration {
    struct event *event;
    sl_loop_handler handler;
    void *context;
} registration;

struct sl_loop {
    struct event_base *base;
    struct event *limit; /* ends a blocking pass early */
    registration registrations[EVENTS_MAX];
    int count;
};

/* ---- what libevent says ---- */

/* The last of it, for the error that follows. By itself it writes a line to standard error each
 * time that a call fails. */
static _Thread_local char said[SAID_BYTES];

/* After what it calls an error it ends the process. */
static void hear(int severity, const char *text) {
    if (severity == EVENT_LOG_ERR)
        dprintf(STDERR_FILENO, "libevent: %s\n", text);
    snprintf(said, sizeof said, ": %s", text);
}

/* ---- the loop ---- */

static void dispatch(evutil_socket_t fd, short what, void *argument) {
    (void)fd;
    (void)what;
    registration *r = argument;
    if (r->handler != NULL)
        r->handler(r->context);
}

static void wake(evutil_socket_t fd, short what, void *argument) {
    (void)fd;
    (void)what;
    (void)argument;
}

int sl_loop_open(sl_loop **out, sl_error *error) {
    if (!sl_descriptors_left(DESCRIPTORS))
        return sl_fail(error, SL_ENOMEM, "event loop: no descriptor is left (ulimit -n)");
    sl_loop *loop = calloc(1, sizeof *loop);
    event_set_log_callback(hear);
    said[0] = '\0';
    if (loop != NULL)
        loop->base = event_base_new();
    if (loop != NULL && loop->base != NULL)
        loop->limit = evtimer_new(loop->base, wake, NULL);
    if (loop == NULL || loop->base == NULL || loop->limit == NULL) {
        sl_loop_close(&loop);
        return sl_fail(error, SL_ENOMEM, "event loop: libevent could not be set up%s", said);
    }
    *out = loop;
    return 0;
}

void sl_loop_close(sl_loop **loop) {
    sl_loop *l = *loop;
    if (l == NULL)
        return;
    for (int i = 0; i < l->count; i++)
        event_free(l->registrations[i].event);
    if (l->limit != NULL)
        event_free(l->limit);
    if (l->base != NULL)
        event_base_free(l->base);
    free(l);
    *loop = NULL;
}

static int add(sl_loop *loop, int fd, short what, const struct timeval *interval,
               sl_loop_handler handler, void *context, sl_error *error) {
    if (loop->count == EVENTS_MAX)
        return sl_fail(error, SL_EINVAL, "event loop: more than %d events", EVENTS_MAX);
    registration *r = &loop->registrations[loop->count];
    r->handler = handler;
    r->context = context;
    r->event = event_new(loop->base, fd, (short)(what | EV_PERSIST), dispatch, r);
    if (r->event == NULL || event_add(r->event, interval) != 0) {
        if (r->event != NULL)
            event_free(r->event);
        return sl_fail(error, SL_ENOMEM, "event loop: libevent refused descriptor %d%s", fd, said);
    }
    loop->count++;
    return 0;
}

int sl_loop_watch(sl_loop *loop, int fd, sl_loop_handler handler, void *context, sl_error *error) {
    return add(loop, fd, EV_READ, NULL, handler, context, error);
}

int sl_loop_tick(sl_loop *loop, int interval_ms, sl_loop_handler handler, void *context,
                 sl_error *error) {
    struct timeval interval = {interval_ms / 1000, interval_ms % 1000 * 1000};
    return add(loop, -1, 0, &interval, handler, context, error);
}

int sl_loop_pass(sl_loop *loop, bool block, int limit_ms, sl_error *error) {
    if (block && limit_ms > 0) {
        struct timeval limit = {limit_ms / 1000, limit_ms % 1000 * 1000};
        evtimer_add(loop->limit, &limit);
    }
    /* Without EVLOOP_ONCE it would go round for as long as any descriptor stays readable. */
    int result = event_base_loop(loop->base, block ? EVLOOP_ONCE : EVLOOP_ONCE | EVLOOP_NONBLOCK);
    if (block && limit_ms > 0)
        evtimer_del(loop->limit);
    return result < 0 ? sl_fail(error, SL_ENET, "event loop: libevent's backend failed%s", said)
                      : 0;
}

/* ---- signals ---- */

int sl_signal_open(void) {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void sl_signal_close(int fd) {
    if (fd >= 0)
        close(fd);
}

void sl_signal_give(int fd) {
    eventfd_write(fd, 1);
}

void sl_signal_take(int fd) {
    eventfd_t ignored;
    eventfd_read(fd, &ignored);
}
