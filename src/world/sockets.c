/* sockets.c - see sockets.h. */
#include "world/sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double patience_s = 3;   /* for a greeting */
static const double look_every_s = 1; /* where nothing is wrong */

/* ---- finding ---- */

static uint16_t port_of(const struct sockaddr_storage *a) {
    if (a->ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)a)->sin_port);
    return a->ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)a)->sin6_port) : 0;
}

bool sl_address_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
    if (a->ss_family != b->ss_family || port_of(a) != port_of(b))
        return false;
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)a)->sin6_addr,
                              &((const struct sockaddr_in6 *)b)->sin6_addr);
}

typedef struct tcp_socket {
    int fd;
    bool listens;
    struct sockaddr_storage own, other;
} tcp_socket;

static bool examine(int fd, tcp_socket *s) {
    socklen_t bytes = sizeof s->own, other_bytes = sizeof s->other, flag_bytes = sizeof(int);
    int listens = 0;
    *s = (tcp_socket){.fd = fd};
    if (getsockname(fd, (struct sockaddr *)&s->own, &bytes) != 0 || port_of(&s->own) == 0)
        return false;
    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &flag_bytes);
    s->listens = listens != 0;
    return s->listens || getpeername(fd, (struct sockaddr *)&s->other, &other_bytes) == 0;
}

/* Calls visit for each TCP socket until it returns true. Without a descriptor to read the list
 * with, all numbers are tried. */
static void for_each_socket(bool (*visit)(void *context, const tcp_socket *s), void *context) {
    tcp_socket s;
    DIR *list = opendir("/proc/self/fd");
    if (list == NULL) {
        long limit = sysconf(_SC_OPEN_MAX);
        for (int fd = 0; fd < limit && fd < 65536; fd++)
            if (examine(fd, &s) && visit(context, &s))
                return;
        return;
    }
    for (const struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list))
        if (entry->d_name[0] != '.' && examine(atoi(entry->d_name), &s) && visit(context, &s))
            break;
    closedir(list);
}

/* ---- bytes received ---- */

typedef struct question {
    const struct sockaddr_storage *own, *other;
    uint64_t bytes;
} question;

static bool answer(void *context, const tcp_socket *s) {
    question *q = context;
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    if (s->listens || !sl_address_equal(&s->own, q->own) || !sl_address_equal(&s->other, q->other))
        return false;
    if (getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0)
        q->bytes = info.tcpi_bytes_received;
    return true;
}

uint64_t sl_socket_received(const struct sockaddr_storage *own,
                            const struct sockaddr_storage *other) {
    question q = {own, other, 0};
    for_each_socket(answer, &q);
    return q.bytes;
}

/* ---- the doorway ---- */

static bool find_listener(void *context, const tcp_socket *s) {
    sl_doorway *d = context;
    if (s->listens && port_of(&s->own) == d->port)
        d->listener = s->fd;
    return d->listener >= 0;
}

void sl_doorway_open(sl_doorway *d, uint16_t port) {
    *d = (sl_doorway){.port = port, .listener = -1};
    for_each_socket(find_listener, d);
    d->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void sl_doorway_close(sl_doorway *d) {
    if (d->spare >= 0)
        close(d->spare);
    d->spare = -1;
}

/* While paused, the kernel drops requests for new connections; their senders repeat them. */
static void pause_listening(sl_doorway *d, bool pause) {
    struct sock_filter drop[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    const struct sock_fprog program = {1, drop};
    int ignored = 0;
    if (pause == d->paused || d->listener < 0)
        return;
    if (pause)
        setsockopt(d->listener, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
    else
        setsockopt(d->listener, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof ignored);
    d->paused = pause;
}

/* No descriptor is left: whoever waits to be accepted is turned away with the spare one, so that
 * the provider does not try to accept them again and again. */
static void turn_away(sl_doorway *d) {
    pause_listening(d, true);
    int flags = d->listener >= 0 ? fcntl(d->listener, F_GETFL) : -1;
    if (flags < 0 || (flags & O_NONBLOCK) == 0)
        return;
    if (d->spare >= 0)
        close(d->spare);
    for (int fd; (fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;)
        close(fd);
    d->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static bool is_short_of_descriptors(const sl_doorway *d) {
    int probe = d->spare >= 0 ? fcntl(d->spare, F_DUPFD_CLOEXEC, 0)
                              : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (probe >= 0)
        close(probe);
    return probe < 0 && (errno == EMFILE || errno == ENFILE);
}

typedef struct look {
    sl_doorway *doorway, before;
    double now_s;
    bool (*greeted)(void *context, const struct sockaddr_storage *other);
    void *context;
    size_t ended;
} look;

static double first_seen(const sl_doorway *d, const struct sockaddr_storage *other, double now_s) {
    for (size_t i = 0; i < d->silent_count; i++)
        if (sl_address_equal(&d->silent[i].other, other))
            return d->silent[i].seen_s;
    return now_s;
}

static bool look_at(void *context, const tcp_socket *s) {
    look *l = context;
    sl_doorway *d = l->doorway;
    if (s->listens || port_of(&s->own) != d->port || l->greeted(l->context, &s->other))
        return false;
    double seen_s = first_seen(&l->before, &s->other, l->now_s);
    if (l->now_s - seen_s > patience_s || d->silent_count == SL_SILENT_MAX) {
        shutdown(s->fd, SHUT_RDWR); /* the provider sees its end, and closes it */
        l->ended++;
    } else {
        d->silent[d->silent_count].other = s->other;
        d->silent[d->silent_count++].seen_s = seen_s;
    }
    return false;
}

size_t sl_doorway_tick(sl_doorway *d, double now_s,
                       bool (*greeted)(void *context, const struct sockaddr_storage *other),
                       void *context) {
    bool is_short = is_short_of_descriptors(d);
    if (is_short)
        turn_away(d);
    if (!is_short && now_s - d->looked_s < look_every_s)
        return 0;
    d->looked_s = now_s;
    look l = {.doorway = d, .before = *d, .now_s = now_s, .greeted = greeted, .context = context};
    d->silent_count = 0;
    for_each_socket(look_at, &l);
    if (!is_short)
        pause_listening(d, false);
    return l.ended;
}
