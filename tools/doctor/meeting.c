/* meeting.c - see meeting.h. */
#include "doctor/meeting.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/tool.h"

enum { CALLS_MAX = 64, GUESTS_MAX = 64, TICK_MS = 50, PLACES_MAX = 1 + CALLS_MAX + GUESTS_MAX };
static const double connect_s = 2, answer_s = 2.5, /* without anything that comes or goes */
    again_s = 0.25,                                /* after a call that has failed */
    visit_s = 10;

typedef enum phase {
    PHASE_FREE,
    PHASE_CONNECTS,
    PHASE_HEARS, /* the other's line */
    PHASE_SENDS, /* what is large */
    PHASE_TAKES,
} phase;

/* A connection: this one has called, or was called. */
typedef struct talk {
    phase phase;
    int fd;
    bool has_rank;
    uint32_t rank; /* who was called, or has */
    double began_s, moved_s;
    char line[WORDS_MAX];
    size_t bytes; /* of the line, or of what is large */
    int unsent;   /* bytes that the other side has not acknowledged */
} talk;

typedef struct hall {
    meeting *m;
    talk calls[CALLS_MAX], guests[GUESTS_MAX];
    double *due_s; /* (count) when it is called again; after its end INFINITY */
    double began_s, now_s, deaf_until_s;
} hall;

static const double never_s = 1e300;

static void hang_up(talk *t) {
    close(t->fd);
    t->phase = PHASE_FREE;
}

static bool send_line(const hall *h, const talk *t) {
    char line[WORDS_MAX];
    const size_t bytes = words_write(line, h->m->has_rank, h->m->rank);
    return send(t->fd, line, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

/* 1: the line is there, without its end; 0: not yet; -1: it will not come. No byte behind it is
 * read. */
static int hear_line(talk *t) {
    const ssize_t seen = recv(t->fd, t->line + t->bytes, WORDS_MAX - 1 - t->bytes, MSG_PEEK);
    if (seen < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (seen <= 0)
        return -1;
    const char *end = memchr(t->line + t->bytes, '\n', (size_t)seen);
    const size_t taken = end != NULL ? (size_t)(end - t->line) + 1 - t->bytes : (size_t)seen;
    if (recv(t->fd, t->line + t->bytes, taken, 0) != (ssize_t)taken)
        return -1;
    t->bytes += taken;
    t->line[end != NULL ? t->bytes - 1 : t->bytes] = '\0';
    return end != NULL ? 1 : t->bytes == WORDS_MAX - 1 ? -1 : 0;
}

/* Of what is large: 1: all has come or gone; 0: not yet; -1: the connection has ended. */
static int move_large(talk *t, bool sends) {
    static char zeros[4096];
    char taken[sizeof zeros];
    while (t->bytes < LARGE_BYTES) {
        const size_t left = LARGE_BYTES - t->bytes,
                     most = left < sizeof zeros ? left : sizeof zeros;
        const ssize_t moved = sends ? send(t->fd, zeros, most, MSG_NOSIGNAL | MSG_DONTWAIT)
                                    : recv(t->fd, taken, most, MSG_DONTWAIT);
        if (moved < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (moved <= 0)
            return -1;
        t->bytes += (size_t)moved;
    }
    return 1;
}

static void turn(hall *h, talk *t, phase next) {
    t->phase = next;
    t->bytes = 0;
    t->moved_s = h->now_s;
}

/* ---- calls ---- */

static met *met_of(const hall *h, const talk *t) {
    return &h->m->met[t->rank];
}

/* Is it worth while to call again, and is there time? */
static bool may_change(const hall *h, call_end end) {
    return end != CALL_ANSWERED && end != CALL_STALLED &&
           h->now_s + again_s - h->began_s < h->m->wait_s;
}

static void settle(hall *h, uint32_t rank, call_end end, int why) {
    met *a = &h->m->met[rank];
    a->end = end;
    a->why = why;
    h->due_s[rank] = may_change(h, end) ? h->now_s + again_s : never_s;
}

static void end_call(hall *h, talk *t, call_end end, int why) {
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    met *a = met_of(h, t);
    a->stalled_out = t->unsent > 0;
    if ((end == CALL_ANSWERED || end == CALL_STALLED) &&
        getsockopt(t->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0)
        a->mtu = info.tcpi_pmtu;
    hang_up(t);
    settle(h, t->rank, end, why);
}

static call_end end_of(int why) {
    return why == ECONNREFUSED || why == ECONNRESET ? CALL_REFUSED
           : why == ETIMEDOUT                       ? CALL_SILENT
                                                    : CALL_UNREACHABLE;
}

static void call(hall *h, talk *t, uint32_t rank) {
    const struct sockaddr_storage *to = &h->m->places[rank];
    const socklen_t bytes =
        to->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    *t = (talk){.rank = rank, .began_s = h->now_s, .moved_s = h->now_s};
    t->fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (t->fd < 0) {
        settle(h, rank, CALL_UNREACHABLE, errno);
        return;
    }
    t->phase = PHASE_CONNECTS;
    if (connect(t->fd, (const struct sockaddr *)to, bytes) != 0 && errno != EINPROGRESS)
        end_call(h, t, end_of(errno), errno);
    h->due_s[rank] = t->phase == PHASE_FREE ? h->due_s[rank] : never_s;
}

static void on_connected(hall *h, talk *t) {
    int why = 0;
    socklen_t bytes = sizeof why;
    getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &why, &bytes);
    if (why != 0) {
        end_call(h, t, end_of(why), why);
        return;
    }
    turn(h, t, PHASE_HEARS);
    t->began_s = now_seconds();
    if (!send_line(h, t))
        end_call(h, t, CALL_MUTE, 0);
}

/* Its clock was read halfway, as far as anybody knows. */
static void on_answer(hall *h, talk *t) {
    met *a = met_of(h, t);
    const int heard = hear_line(t);
    const double now_s = now_seconds();
    const uint64_t now_us = words_now_us();
    if (heard == 0)
        return;
    if (heard < 0 || !words_read(&a->said, t->line)) {
        end_call(h, t, CALL_MUTE, 0);
        return;
    }
    a->round_trip_s = now_s - t->began_s;
    a->ahead_s = 1e-6 * ((double)a->said.time_us - (double)now_us) + a->round_trip_s / 2;
    if (send(t->fd, "", 1, MSG_NOSIGNAL) != 1) { /* a small packet: so the answer has come */
        end_call(h, t, CALL_MUTE, 0);
    } else if (a->sends_large) {
        turn(h, t, PHASE_SENDS);
        t->bytes = 1;
    } else {
        end_call(h, t, CALL_ANSWERED, 0);
    }
}

static void on_call(hall *h, talk *t) {
    const size_t before = t->bytes;
    int done = 0;
    switch (t->phase) {
    case PHASE_FREE:
        return;
    case PHASE_CONNECTS:
        on_connected(h, t);
        return;
    case PHASE_HEARS:
        on_answer(h, t);
        return;
    case PHASE_SENDS:
    case PHASE_TAKES:
        done = move_large(t, t->phase == PHASE_SENDS);
        break;
    }
    t->moved_s = t->bytes > before ? h->now_s : t->moved_s;
    if (done > 0 && t->phase == PHASE_SENDS)
        turn(h, t, PHASE_TAKES);
    else if (done != 0)
        end_call(h, t, done > 0 ? CALL_ANSWERED : CALL_STALLED, 0);
}

/* A slow link is no dead one. */
static void look_at_unsent(const hall *h, talk *t) {
    int unsent = 0;
    if (t->phase < PHASE_SENDS || ioctl(t->fd, SIOCOUTQ, &unsent) != 0)
        return;
    t->moved_s = unsent < t->unsent ? h->now_s : t->moved_s;
    t->unsent = unsent;
}

static void tick_call(hall *h, talk *t) {
    look_at_unsent(h, t);
    const double still_s = h->now_s - t->moved_s;
    if (t->phase == PHASE_CONNECTS && still_s > connect_s)
        end_call(h, t, CALL_SILENT, ETIMEDOUT);
    else if (t->phase == PHASE_HEARS && still_s > answer_s)
        end_call(h, t, CALL_MUTE, 0);
    else if (t->phase >= PHASE_SENDS && still_s > answer_s)
        end_call(h, t, CALL_STALLED, 0);
}

/* Those that are due, as many as there is room for. */
static void call_next(hall *h) {
    uint32_t rank = 0;
    for (talk *t = h->calls; t < h->calls + CALLS_MAX; t++) {
        if (t->phase != PHASE_FREE)
            continue;
        while (rank < h->m->count && h->due_s[rank] > h->now_s)
            rank++;
        if (rank == h->m->count)
            return;
        call(h, t, rank++);
    }
}

/* ---- guests ---- */

static void welcome(hall *h) {
    for (talk *t = h->guests; t < h->guests + GUESTS_MAX; t++) {
        if (t->phase != PHASE_FREE)
            continue;
        const int fd = accept4(h->m->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            h->deaf_until_s = h->now_s + again_s; /* there may be no descriptor for who waits */
            return;
        }
        *t = (talk){.phase = PHASE_HEARS, .fd = fd, .began_s = h->now_s, .moved_s = h->now_s};
    }
}

static void on_guest(hall *h, talk *t) {
    words said;
    int done;
    if (t->phase == PHASE_HEARS) {
        done = hear_line(t);
        if (done > 0 && words_read(&said, t->line) && send_line(h, t)) {
            t->has_rank = said.has_rank && said.rank < h->m->count;
            t->rank = said.rank;
            turn(h, t, PHASE_TAKES);
        } else if (done != 0) {
            hang_up(t);
        }
        return;
    }
    done = move_large(t, t->phase == PHASE_SENDS);
    t->moved_s = h->now_s;
    if (t->has_rank && t->bytes > 0) /* it has had the answer */
        met_of(h, t)->heard = true;
    if (done > 0 && t->phase == PHASE_TAKES)
        turn(h, t, PHASE_SENDS);
    else if (done != 0)
        hang_up(t);
}

static void tick_guest(hall *h, talk *t) {
    if (t->phase != PHASE_FREE &&
        (h->now_s - t->moved_s > 2 * answer_s || h->now_s - t->began_s > visit_s))
        hang_up(t);
}

/* ---- the loop ---- */

static size_t busy(const talk *all, size_t count) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += all[i].phase != PHASE_FREE;
    return found;
}

/* Does anybody have to be called, or may yet call? */
static bool goes_on(const hall *h) {
    const meeting *m = h->m;
    const bool waits = h->now_s - h->began_s < m->wait_s;
    if (busy(h->calls, CALLS_MAX) > 0)
        return true;
    for (uint32_t i = 0; i < m->count; i++)
        if (h->due_s[i] < never_s || (waits && m->listener >= 0 && m->places[i].ss_family != 0 &&
                                      m->has_rank && i != m->rank && !m->met[i].heard))
            return true;
    return false;
}

static void watch(const hall *h, bool opens, struct pollfd places[PLACES_MAX]) {
    const bool listens =
        opens && h->now_s >= h->deaf_until_s && busy(h->guests, GUESTS_MAX) < GUESTS_MAX;
    size_t at = 0;
    places[at++] = (struct pollfd){.fd = listens ? h->m->listener : -1, .events = POLLIN};
    for (size_t i = 0; i < CALLS_MAX + GUESTS_MAX; i++) {
        const talk *t = i < CALLS_MAX ? &h->calls[i] : &h->guests[i - CALLS_MAX];
        const bool writes = t->phase == PHASE_CONNECTS || t->phase == PHASE_SENDS;
        places[at++] = (struct pollfd){.fd = t->phase != PHASE_FREE ? t->fd : -1,
                                       .events = writes ? POLLOUT : POLLIN};
    }
}

static void pass(hall *h, bool opens) {
    struct pollfd places[PLACES_MAX];
    watch(h, opens, places);
    poll(places, PLACES_MAX, TICK_MS);
    h->now_s = now_seconds();
    for (size_t i = 0; i < CALLS_MAX; i++) {
        if (places[1 + i].revents != 0)
            on_call(h, &h->calls[i]);
        tick_call(h, &h->calls[i]);
    }
    for (size_t i = 0; i < GUESTS_MAX; i++) {
        if (places[1 + CALLS_MAX + i].revents != 0)
            on_guest(h, &h->guests[i]);
        tick_guest(h, &h->guests[i]);
    }
    if (places[0].revents != 0)
        welcome(h);
}

bool meeting_hold(meeting *m) {
    hall *h = calloc(1, sizeof *h);
    double *due_s = calloc(m->count + 1, sizeof *due_s);
    const bool well = h != NULL && due_s != NULL;
    if (well) {
        *h = (hall){.m = m, .due_s = due_s, .began_s = now_seconds()};
        h->now_s = h->began_s;
        for (uint32_t i = 0; i < m->count; i++)
            if (m->places[i].ss_family == 0 || (m->has_rank && i == m->rank))
                due_s[i] = never_s;
        while (goes_on(h)) {
            call_next(h);
            pass(h, true);
        }
        while (busy(h->guests, GUESTS_MAX) > 0) /* each for so long at most */
            pass(h, false);
    }
    free(due_s);
    free(h);
    return well;
}
