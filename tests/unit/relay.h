/* relay.h - passes bytes on between a peer and an agent until so many have come from the peer, and
 * ends both connections then: what came before the end, the agent reads. */
#ifndef RELAY_H
#define RELAY_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "harness.h"
#include "loopback.h"

typedef struct relay {
    int listener, ends[2]; /* the peer's, the agent's */
    uint16_t port;         /* where the peer finds the agent */
    uint16_t agent_port;
    _Atomic size_t passed, limit; /* bytes of the peer */
    pthread_t thread;
} relay;

/* Some bytes from one end to the other. False: there are no more. */
static bool relay_pass(relay *r, int from) {
    char bytes[4096];
    size_t room = sizeof bytes;
    if (from == 0 && r->limit - r->passed < room)
        room = r->limit - r->passed;
    const ssize_t got = recv(r->ends[from], bytes, room, 0);
    if (got <= 0)
        return false;
    if (from == 0)
        r->passed += (size_t)got;
    for (ssize_t sent = 0, now; sent < got; sent += now)
        if ((now = send(r->ends[1 - from], bytes + sent, (size_t)(got - sent), MSG_NOSIGNAL)) < 0)
            return false;
    return r->passed < r->limit;
}

static void *relay_run(void *of) {
    relay *r = of;
    const struct sockaddr_in there = loopback(r->agent_port);
    r->ends[0] = accept(r->listener, NULL, NULL);
    r->ends[1] = socket(AF_INET, SOCK_STREAM, 0);
    bool more = connect(r->ends[1], (const struct sockaddr *)&there, sizeof there) == 0;
    while (more) {
        struct pollfd both[2] = {{r->ends[0], POLLIN, 0}, {r->ends[1], POLLIN, 0}};
        poll(both, 2, -1);
        for (int from = 0; from < 2 && more; from++)
            if (both[from].revents != 0)
                more = relay_pass(r, from);
    }
    char rest[256];
    shutdown(r->ends[1], SHUT_WR);
    while (recv(r->ends[1], rest, sizeof rest, 0) > 0)
        ; /* bytes that nobody reads would reset the connection before the agent has read its own */
    close(r->ends[1]);
    close(r->ends[0]);
    return NULL;
}

static void relay_open(relay *r, uint16_t agent_port) {
    struct sockaddr_in own = loopback(0);
    socklen_t bytes = sizeof own;
    *r = (relay){.agent_port = agent_port, .limit = SIZE_MAX};
    r->listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(r->listener, (const struct sockaddr *)&own, sizeof own), 0);
    ck_assert_int_eq(listen(r->listener, 1), 0);
    ck_assert_int_eq(getsockname(r->listener, (struct sockaddr *)&own, &bytes), 0);
    r->port = ntohs(own.sin_port);
    ck_assert_int_eq(pthread_create(&r->thread, NULL, relay_run, r), 0);
}

static void relay_close(relay *r) {
    pthread_join(r->thread, NULL);
    close(r->listener);
}

#endif
