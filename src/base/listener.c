/* listener.c - see listener.h. */
#include "base/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TURNED_AWAY_MAX = 64 }; /* at a time: more may come for ever */
static const double rest_s = 0.25;

static void keep_spare(sl_listener *l) {
    if (l->spare < 0)
        l->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void sl_listener_open(sl_listener *l, int fd, unsigned reserve) {
    *l = (sl_listener){.fd = fd, .spare = -1, .reserve = reserve};
    keep_spare(l);
}

void sl_listener_close(sl_listener *l) {
    if (l->spare >= 0)
        close(l->spare);
    l->spare = -1;
}

bool sl_listener_listens(const sl_listener *l, double now_s) {
    return now_s >= l->rests_until_s;
}

void sl_listener_rest(sl_listener *l, double until_s) {
    l->rests_until_s = until_s;
}

/* Who has gone already is passed over. A descriptor, or a negative errno. */
static int accept_next(const sl_listener *l, struct sockaddr_storage *other) {
    int fd = -1;
    do {
        socklen_t bytes = sizeof *other;
        memset(other, 0, sizeof *other);
        fd = accept4(l->fd, (struct sockaddr *)other, &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
    } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED || errno == EPROTO));
    return fd >= 0 ? fd : -errno;
}

static void turn_away(sl_listener *l) {
    struct sockaddr_storage other;
    sl_listener_close(l);
    for (int i = 0, fd; i < TURNED_AWAY_MAX && (fd = accept_next(l, &other)) >= 0; i++)
        close(fd);
    keep_spare(l);
}

int sl_listener_accept(sl_listener *l, struct sockaddr_storage *other, double now_s) {
    keep_spare(l);
    const int fd = accept_next(l, other);
    if (fd >= 0)
        return fd;
    if (fd != -EMFILE && fd != -ENFILE && fd != -ENOBUFS && fd != -ENOMEM)
        return SL_LISTENER_NOBODY;
    turn_away(l);
    sl_listener_rest(l, now_s + rest_s);
    return SL_LISTENER_FULL;
}

/* The lowest that is free: all below are used. */
bool sl_listener_is_short(const sl_listener *l, int fd) {
    const int next = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    struct rlimit limit;
    if (next < 0)
        return true;
    close(next);
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)next + l->reserve > limit.rlim_cur;
}

bool sl_descriptors_left(unsigned count) {
    int all[SL_LISTENER_LEFT_MAX];
    unsigned found = 0;
    while (found < count && (all[found] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        found++;
    for (unsigned i = 0; i < found; i++)
        close(all[i]);
    return found == count;
}
