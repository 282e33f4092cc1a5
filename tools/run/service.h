/* service.h - an agent tells the supervisor that has started it as a service how it does: that it
 * listens, what it is at, that its loop goes round, that it ends.
 *
 * As sd_notify(3) has it, in the few lines that systemd promises to keep: a datagram to the socket
 * that $NOTIFY_SOCKET names. libsystemd would load four libraries of compression and cryptography
 * into each agent for that. */
#ifndef SERVICE_H
#define SERVICE_H

#include <sys/socket.h>
#include <sys/un.h>

#include "starling/starling.h"

enum { SERVICE_STATUS_MAX = 320 };

/* On one thread: the one that runs the agent's loop. */
typedef struct service {
    int fd; /* -1: nobody wants to know */
    struct sockaddr_un address;
    socklen_t address_bytes;
    double watchdog_s; /* the supervisor's patience; 0: it has no watchdog */
    bool is_lenient;   /* it was told that the loop does not run yet */
    double watched_s, told_s;
    char status[SERVICE_STATUS_MAX]; /* that it was told last */
} service;

/* As the environment says; wanted: else nobody is told. */
void service_open(service *out, bool wanted);
/* The agent listens. Others are looked for, and files read, for at most patience_s, before its loop
 * runs: until then the watchdog waits for so much longer. */
void service_ready(service *service, double patience_s);
/* The loop goes round: called several times a second, tells as often as is needed. */
void service_alive(service *service, sl_agent *agent, uint64_t rounds);
/* It ends; the first call counts. */
void service_close(service *service);

#endif
