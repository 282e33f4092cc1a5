/* peers.h - runs a peer's function for n ranks: simulated, or each with an agent, on a thread of
 * its own. Check's macros allocate, and are not used here: tests count the library's allocations.
 */
#ifndef STARLING_TEST_PEERS_H
#define STARLING_TEST_PEERS_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loopback.h"
#include "starling/session.h"

enum { PEERS_MAX = 8 };
typedef int (*peer_function)(void *context, const sl_session_options *options, sl_error *error);

/* The next call, if all before it went well. */
#define THEN(result, call) ((result) = (result) != 0 ? (result) : (call))

/* Joins and gives the first model x (d). After an error *s may be NULL. */
static inline int peer_start(sl_session **s, const char *experiment, uint64_t d, float *x,
                             const sl_session_options *options, sl_error *error) {
    *s = NULL;
    int result = sl_session_join(s, experiment, d, options, error);
    return THEN(result, sl_session_start(*s, x, error));
}

typedef struct peer_thread {
    pthread_t thread;
    peer_function function;
    void *context;
    sl_session_options options;
    int result;
    sl_error error;
} peer_thread;

static inline void *peer_thread_run(void *argument) {
    peer_thread *p = argument;
    p->result = p->function(p->context, &p->options, &p->error);
    return NULL;
}

/* A socket at a port that is free now, below those that the kernel gives to connections that go
 * out: other tests make many of them, and may have it before a peer listens there. */
static inline int free_port(uint16_t *port) {
    enum { PORT_MIN = 10000, PORTS = 22000 };
    struct sockaddr_in own = loopback(0);
    int bound = socket(AF_INET, SOCK_STREAM, 0);
    do {
        if (getrandom(port, sizeof *port, 0) != sizeof *port)
            abort();
        *port = (uint16_t)(PORT_MIN + *port % PORTS);
        own.sin_port = htons(*port);
    } while (bind(bound, (struct sockaddr *)&own, sizeof own) != 0);
    return bound;
}

/* "127.0.0.1:P,127.0.0.1:Q": ports that are free now. */
static inline void free_roster(char *out, size_t bytes, int n) {
    int sockets[PEERS_MAX];
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        uint16_t port;
        sockets[i] = free_port(&port);
        used +=
            (size_t)snprintf(out + used, bytes - used, "%s127.0.0.1:%u", i > 0 ? "," : "", port);
    }
    for (int i = 0; i < n; i++)
        close(sockets[i]);
}

/* Of each peer its result and error go to threads (n). */
static inline void run_agents(peer_thread *threads, int n, peer_function function, void *context,
                              const sl_session_options *options) {
    static char roster[PEERS_MAX * 32];
    free_roster(roster, sizeof roster, n);
    for (int i = 0; i < n; i++) {
        threads[i] = (peer_thread){.function = function, .context = context, .options = *options};
        threads[i].options.rank = i;
        threads[i].options.roster = roster;
        if (pthread_create(&threads[i].thread, NULL, peer_thread_run, &threads[i]) != 0)
            abort();
    }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i].thread, NULL);
}

#endif
