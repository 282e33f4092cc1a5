/* fake_sockets.h - what fuzz_provider.c puts in place of the kernel: sockets and epoll, of which an
 * input decides what comes when. The linker sends the library's calls here. Included once.
 */
#ifndef FAKE_SOCKETS_H
#define FAKE_SOCKETS_H

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { FIRST_FD = 5000, LISTENS = FIRST_FD, EPOLL, SOCKETS_AT, SOCKETS = 6, LAST_FD = 5100 };
enum { LOG_BYTES = 1 << 14 };

/* One end of a connection; the input is the other one. */
typedef struct fake {
    bool open, connecting, ended, reset, full;
    bool shared; /* with a process that was forked: what is closed here is watched still */
    int connect_error;
    void *watched; /* by epoll; NULL: not */
    uint32_t happened;
    size_t come, taken; /* of its log */
    uint8_t log[LOG_BYTES];
} fake;

static fake fakes[SOCKETS];
static void *listener_watched;
static bool listener_open;
static uint32_t listener_happened;
static int waiting_to_be_accepted, short_of_descriptors;
static int last_dialed;
static unsigned piece; /* bytes at most that a call takes or gives */
static double now_s;

double __wrap_sl_clock_seconds(void) {
    return now_s;
}

static fake *fake_of(int fd) {
    assert(fd >= SOCKETS_AT && fd < SOCKETS_AT + SOCKETS && fakes[fd - SOCKETS_AT].open);
    return &fakes[fd - SOCKETS_AT];
}

static int fails(int code) {
    errno = code;
    return -1;
}

static void happens(fake *s, uint32_t what) {
    s->happened |= what;
}

static int open_fake(bool dialed) {
    for (int i = 0; i < SOCKETS; i++)
        if (!fakes[i].open && fakes[i].watched == NULL) {
            fake *s = &fakes[i];
            s->open = true;
            s->connecting = dialed;
            s->ended = s->reset = s->full = s->shared = false;
            s->connect_error = 0;
            s->watched = NULL;
            s->happened = 0;
            s->come = s->taken = 0;
            return SOCKETS_AT + i;
        }
    return fails(EMFILE);
}

/* ---- sockets ---- */

int __wrap_socket(int domain, int type, int protocol) {
    assert(type & SOCK_NONBLOCK);
    if (!listener_open) {
        listener_open = true;
        return LISTENS;
    }
    return open_fake(true);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t bytes) {
    assert(fd == LISTENS);
    return 0;
}

int __wrap_listen(int fd, int backlog) {
    assert(fd == LISTENS);
    return 0;
}

int __wrap_accept4(int fd, struct sockaddr *other, socklen_t *bytes, int flags) {
    assert(fd == LISTENS && (flags & SOCK_NONBLOCK));
    if (short_of_descriptors > 0 && short_of_descriptors-- > 0)
        return fails(EMFILE);
    if (waiting_to_be_accepted == 0)
        return fails(EAGAIN);
    waiting_to_be_accepted--;
    const int came = open_fake(false);
    const struct sockaddr_in from = {.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)(came >= 0 ? came : 0))};
    memcpy(other, &from, sizeof from);
    *bytes = sizeof from;
    return came;
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t bytes) {
    assert(fake_of(fd)->connecting);
    last_dialed = fd;
    return fails(EINPROGRESS);
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes) {
    assert(fd == LISTENS || fake_of(fd) != NULL);
    return 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *bytes) {
    assert(level == SOL_SOCKET && name == SO_ERROR && *bytes == sizeof(int));
    memcpy(value, &fake_of(fd)->connect_error, sizeof(int));
    return 0;
}

int __wrap_shutdown(int fd, int how) {
    return fd != LISTENS && fake_of(fd)->reset ? fails(ENOTCONN) : 0;
}

int __real_close(int fd);
int __wrap_close(int fd) {
    if (fd < FIRST_FD || fd >= LAST_FD)
        return __real_close(fd);
    if (fd == LISTENS)
        listener_open = false;
    if (fd < SOCKETS_AT)
        return 0;
    fake *s = fake_of(fd);
    s->open = false;
    if (!s->shared)
        s->watched = NULL;
    return 0;
}

/* ---- what comes and goes ---- */

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

ssize_t __wrap_readv(int fd, const struct iovec *iov, int count) {
    fake *s = fake_of(fd);
    size_t done = 0;
    assert(!s->connecting);
    if (s->taken == s->come)
        return s->reset ? fails(ECONNRESET) : s->ended ? 0 : fails(EAGAIN);
    for (int i = 0; i < count && done < piece; i++) {
        const size_t here = least(least(iov[i].iov_len, piece - done), s->come - s->taken);
        memcpy(iov[i].iov_base, s->log + s->taken, here);
        s->taken += here;
        done += here;
    }
    return (ssize_t)done;
}

ssize_t __wrap_recv(int fd, void *out, size_t bytes, int flags) {
    assert(bytes > 0);
    return __wrap_readv(fd, &(struct iovec){out, bytes}, 1);
}

/* All that is sent is looked at, as the kernel does. */
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags) {
    static volatile uint8_t sum;
    fake *s = fake_of(fd);
    size_t done = 0;
    assert((flags & MSG_NOSIGNAL) && !s->connecting);
    if (s->reset)
        return fails(EPIPE);
    if (s->full)
        return fails(EAGAIN);
    for (size_t i = 0; i < m->msg_iovlen && done < piece; i++) {
        const size_t here = least(m->msg_iov[i].iov_len, piece - done);
        for (size_t k = 0; k < here; k++)
            sum = (uint8_t)(sum + ((const uint8_t *)m->msg_iov[i].iov_base)[k]);
        done += here;
    }
    return (ssize_t)done;
}

ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags) {
    struct iovec iov = {(void *)(uintptr_t)data, bytes};
    const struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    const unsigned was = piece;
    piece = 1 << 16; /* a socket that is new has room */
    const ssize_t n = __wrap_sendmsg(fd, &m, flags);
    piece = was;
    return n;
}

/* ---- epoll: tells of an edge once ---- */

int __wrap_epoll_create1(int flags) {
    return EPOLL;
}

int __wrap_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event) {
    void **at = fd == LISTENS ? &listener_watched : &fake_of(fd)->watched;
    assert(epoll == EPOLL && (what == EPOLL_CTL_DEL || (event->events & EPOLLET)));
    if (what == EPOLL_CTL_DEL) {
        *at = NULL;
        return 0;
    }
    if (what == EPOLL_CTL_ADD && *at != NULL)
        return fails(EEXIST);
    assert(what == EPOLL_CTL_ADD || what == EPOLL_CTL_MOD);
    *at = event->data.ptr;
    if (fd == LISTENS) {
        listener_happened = waiting_to_be_accepted > 0;
        return 0;
    }
    fake *s = fake_of(fd); /* what is so already is told, too */
    if (!s->connecting)
        happens(s, (s->full ? 0 : EPOLLOUT) | (s->come > s->taken ? EPOLLIN : 0) |
                       (s->ended ? EPOLLIN | EPOLLRDHUP : 0) |
                       (s->reset ? EPOLLERR | EPOLLHUP : 0));
    return 0;
}

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms) {
    assert(epoll == EPOLL && timeout_ms == 0 && max > SOCKETS);
    int count = 0;
    if (listener_watched != NULL && listener_happened != 0)
        events[count++] = (struct epoll_event){.events = EPOLLIN, .data.ptr = listener_watched};
    listener_happened = 0;
    for (int i = 0; i < SOCKETS; i++) {
        fake *s = &fakes[i];
        if (s->watched != NULL && s->happened != 0)
            events[count++] = (struct epoll_event){.events = s->happened, .data.ptr = s->watched};
        s->happened = 0;
    }
    return count;
}

/* ---- what the other ends do ---- */

static void somebody_comes(void) {
    waiting_to_be_accepted++;
    listener_happened = 1;
}

static void bytes_come(fake *s, const void *data, size_t bytes) {
    const size_t here = least(bytes, LOG_BYTES - s->come);
    if (s->connecting || s->ended || s->reset || here == 0)
        return;
    memcpy(s->log + s->come, data, here);
    s->come += here;
    happens(s, EPOLLIN);
}

static void connection_is_made(fake *s, int error) {
    if (!s->open || !s->connecting)
        return;
    s->connecting = false;
    s->connect_error = error;
    s->reset = error != 0;
    happens(s, error != 0 ? EPOLLERR | EPOLLHUP | EPOLLOUT : EPOLLOUT);
}

static void it_ends(fake *s, bool reset) {
    if (s->connecting)
        return;
    s->ended = true;
    s->reset = s->reset || reset;
    happens(s, reset ? EPOLLERR | EPOLLHUP | EPOLLIN : EPOLLRDHUP | EPOLLIN);
}

static void room_changes(fake *s) {
    if (!s->open || s->connecting)
        return;
    if (s->full)
        happens(s, EPOLLOUT);
    s->full = !s->full;
}

#endif
