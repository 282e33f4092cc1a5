/* service.c - see service.h. */
#include "run/service.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/tool.h"

static const double status_every_s = 1;
static const double wait_s = 0.5; /* shorter waits belong to every round */
enum { SEND_S = 2 };
static const double load_s = 600; /* for checkpoints, from a slow disk */

/* False: the supervisor has not taken it. flags MSG_DONTWAIT: nor is it waited for; else it is, for
 * SEND_S. */
static bool tell(const service *s, const char *lines, int flags) {
    return s->fd >= 0 && sendto(s->fd, lines, strlen(lines), MSG_NOSIGNAL | flags,
                                (const struct sockaddr *)&s->address, s->address_bytes) >= 0;
}

/* A path, or with '@' a name in the abstract namespace. */
static bool take_address(service *s, const char *name) {
    const size_t bytes = strlen(name);
    s->address.sun_family = AF_UNIX;
    if ((name[0] != '/' && name[0] != '@') || bytes < 2 || bytes >= sizeof s->address.sun_path)
        return false;
    memcpy(s->address.sun_path, name, bytes);
    if (name[0] == '@')
        s->address.sun_path[0] = '\0';
    s->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
    return true;
}

/* Of this process, in seconds; 0: there is none. */
static double find_watchdog_s(void) {
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (usec == NULL || (pid != NULL && strtoll(pid, NULL, 10) != getpid()))
        return 0;
    return strtod(usec, NULL) * 1e-6;
}

void service_open(service *out, bool wanted) {
    const char *name = getenv("NOTIFY_SOCKET");
    const struct timeval patience = {.tv_sec = SEND_S};
    *out = (service){.fd = -1};
    if (name == NULL || !wanted)
        return;
    if (take_address(out, name))
        out->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (out->fd < 0)
        complain("warning: NOTIFY_SOCKET=%s: is no socket that can be told how this agent does",
                 name);
    else
        setsockopt(out->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    out->watchdog_s = find_watchdog_s();
}

void service_ready(service *s, double patience_s) {
    char lines[128] = "READY=1\n";
    if (s->watchdog_s > 0) {
        snprintf(lines, sizeof lines, "READY=1\nWATCHDOG_USEC=%.0f\n",
                 1e6 * (s->watchdog_s + patience_s + load_s));
        s->is_lenient = true;
    }
    tell(s, lines, 0);
}

static void describe(sl_agent *agent, uint64_t rounds, char out[SERVICE_STATUS_MAX]) {
    const sl_agent_progress p = sl_agent_progress_read(agent);
    const bool waits = p.waits_for[0] != '\0' && p.own.still_s >= wait_s;
    snprintf(out, SERVICE_STATUS_MAX, "STATUS=round %" PRIu64 " of %" PRIu64 ", %s%s\n",
             p.own.round, rounds, waits ? "waits: " : "",
             waits ? p.waits_for : sl_agent_doing_name(p.own.doing));
}

static void tell_status(service *s, sl_agent *agent, uint64_t rounds) {
    char status[SERVICE_STATUS_MAX];
    describe(agent, rounds, status);
    if (strcmp(status, s->status) != 0 && tell(s, status, MSG_DONTWAIT))
        memcpy(s->status, status, sizeof status);
}

static bool tell_watchdog(const service *s) {
    char lines[64];
    snprintf(lines, sizeof lines, "WATCHDOG_USEC=%.0f\nWATCHDOG=1\n", 1e6 * s->watchdog_s);
    return tell(s, s->is_lenient ? lines : "WATCHDOG=1\n", MSG_DONTWAIT);
}

/* What is not taken is told again at the next look. */
void service_alive(service *s, sl_agent *agent, uint64_t rounds) {
    const double now_s = now_seconds();
    if (s->fd < 0)
        return;
    if (s->watchdog_s > 0 && now_s - s->watched_s >= s->watchdog_s / 3 && tell_watchdog(s)) {
        s->watched_s = now_s;
        s->is_lenient = false;
    }
    if (now_s - s->told_s >= status_every_s) {
        s->told_s = now_s;
        tell_status(s, agent, rounds);
    }
}

void service_close(service *s) {
    tell(s, "STOPPING=1\n", 0);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}
