/* doorway.c - see doorway.h. */
#include "world/doorway.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "launch/resolver.h"
#include "world/sockets.h"

static const double patience_s = 3;   /* for a greeting */
static const double look_every_s = 1; /* where nothing is wrong */
enum {
    REQUEST_BYTES = 32 + SL_DOORWAY_GREETING_BYTES, /* behind the provider's own head */
    PATIENCE_OF_KERNEL_S = 3
};

/* ---- the port's socket ---- */

static bool find_bound(void *context, const sl_socket *s) {
    sl_doorway *d = context;
    if (!s->connected && sl_address_equal(&s->own, &d->own))
        d->listener = s->fd;
    return d->listener >= 0;
}

static bool wants(int fd, int bytes) {
    return setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes) == 0;
}

/* Data marked as urgent would not count as read. */
static void set_up(int listener) {
    const struct timeval shortest = {.tv_usec = 1};
    const int on = 1, seconds = PATIENCE_OF_KERNEL_S;
    wants(listener, REQUEST_BYTES);
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &shortest, sizeof shortest);
    setsockopt(listener, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
    setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
}

static int open_spare(void) {
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void sl_doorway_open(sl_doorway *d, const struct sockaddr_storage *own, unsigned reserve) {
    *d = (sl_doorway){.own = *own, .listener = -1, .reserve = reserve};
    sl_sockets_visit(find_bound, d);
    if (sl_doorway_is_used(d))
        set_up(d->listener);
    d->spare = open_spare();
}

void sl_doorway_close(sl_doorway *d) {
    if (d->spare >= 0)
        close(d->spare);
    d->spare = -1;
}

bool sl_doorway_is_used(const sl_doorway *d) {
    return d->listener >= 0;
}

/* While paused, the kernel drops requests for new connections; their senders repeat them. */
static void pause_listening(sl_doorway *d, bool pause) {
    struct sock_filter drop[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    const struct sock_fprog program = {1, drop};
    int ignored = 0;
    if (pause == d->paused || !sl_doorway_is_used(d))
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
    int flags = sl_doorway_is_used(d) ? fcntl(d->listener, F_GETFL) : -1;
    if (flags < 0 || (flags & O_NONBLOCK) == 0)
        return;
    if (d->spare >= 0)
        close(d->spare);
    for (int fd; (fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;)
        close(fd);
    d->spare = open_spare();
}

/* ---- who is there ---- */

typedef struct search {
    const sl_doorway *doorway;
    const struct sockaddr_storage *other;
    bool found;
} search;

/* Whoever listens at all of a host's addresses has come in at one of them. */
static bool is_at_port(const sl_doorway *d, const sl_socket *s) {
    return sl_address_port(&s->own) == sl_address_port(&d->own);
}

static bool has_come_in(const sl_doorway *d, const sl_socket *s) {
    return s->connected && is_at_port(d, s);
}

static bool let_in(void *context, const sl_socket *s) {
    search *at = context;
    if (has_come_in(at->doorway, s) && sl_address_equal(&s->other, at->other))
        at->found = wants(s->fd, 1);
    return at->found;
}

bool sl_doorway_let_in(sl_doorway *d, const struct sockaddr_storage *other) {
    search s = {d, other, !sl_doorway_is_used(d)};
    if (!s.found)
        sl_sockets_visit(let_in, &s);
    return s.found;
}

/* The lowest descriptor that is free; all below are in use. Negative: none is left. */
static int lowest_free(const sl_doorway *d) {
    int probe = d->spare >= 0 ? fcntl(d->spare, F_DUPFD_CLOEXEC, 0) : open_spare();
    if (probe >= 0)
        close(probe);
    else if (errno != EMFILE && errno != ENFILE)
        return 0;
    return probe;
}

/* From this one on, those that are left are for others. */
static int first_of_reserve(const sl_doorway *d) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT32_MAX)
        return INT32_MAX;
    const rlim_t kept = d->reserve + SL_DOORWAY_LOOKS;
    return limit.rlim_cur > kept ? (int)(limit.rlim_cur - kept) : 0;
}

/* ---- who has to go ---- */

static void end(sl_doorway *d, size_t index) {
    shutdown(d->silent[index].fd, SHUT_RDWR); /* the provider sees its end, and closes it */
    d->silent[index] = d->silent[--d->silent_count];
    d->ended++;
}

typedef struct look {
    sl_doorway *doorway;
    sl_silent before[SL_DOORWAY_PLACES];
    size_t before_count;
} look;

static sl_silent recognize(const look *l, const sl_socket *s) {
    for (size_t i = 0; i < l->before_count; i++)
        if (l->before[i].fd == s->fd && sl_address_equal(&l->before[i].other, &s->other))
            return l->before[i];
    return (sl_silent){s->fd, s->other, l->doorway->now_s, l->doorway->look};
}

static size_t oldest_of(const sl_doorway *d) {
    size_t oldest = 0;
    for (size_t i = 1; i < d->silent_count; i++)
        if (d->silent[i].look < d->silent[oldest].look)
            oldest = i;
    return oldest;
}

/* Ends the oldest until so many are left. Who was not there at the look before may have been
 * accepted this very moment. */
static void end_all_but(sl_doorway *d, size_t count) {
    for (size_t oldest = oldest_of(d); d->silent_count > count && d->silent[oldest].look < d->look;
         oldest = oldest_of(d))
        end(d, oldest);
}

/* Not let in yet. */
static bool is_marked(const sl_socket *s) {
    int least = 0;
    socklen_t size = sizeof least;
    return getsockopt(s->fd, SOL_SOCKET, SO_RCVLOWAT, &least, &size) == 0 && least == REQUEST_BYTES;
}

/* Whose request is there whole is let in, or refused, when the provider comes to it. */
static bool has_not_greeted(const sl_socket *s) {
    int there = 0;
    return is_marked(s) && ioctl(s->fd, FIONREAD, &there) == 0 && there < REQUEST_BYTES;
}

static bool add_silent(void *context, const sl_socket *s) {
    look *l = context;
    sl_doorway *d = l->doorway;
    if (!has_come_in(d, s) || !has_not_greeted(s))
        return false;
    if (d->silent_count == SL_DOORWAY_PLACES)
        end(d, oldest_of(d));
    d->silent[d->silent_count++] = recognize(l, s);
    return false;
}

static size_t count_others_of_address(const sl_doorway *d, const sl_silent *silent) {
    size_t count = 0;
    for (size_t i = 0; i < d->silent_count; i++)
        count += &d->silent[i] != silent && d->silent[i].look >= silent->look &&
                 sl_address_same_host(&d->silent[i].other, &silent->other);
    return count;
}

/* Has he had his time, or are there too many of his address? Here, all have one. */
static bool has_to_go(const sl_doorway *d, const sl_silent *silent) {
    return d->now_s - silent->seen_s > patience_s ||
           (silent->look < d->look && !sl_address_is_loopback(&silent->other) &&
            count_others_of_address(d, silent) >= SL_SILENT_OF_ADDRESS_MAX);
}

/* An honest agent greets at once, so the oldest go first. */
static void look_round(sl_doorway *d, int free_from) {
    const int reserve_from = first_of_reserve(d);
    const bool is_short = free_from < 0 || free_from >= reserve_from;
    look l = {.doorway = d, .before_count = d->silent_count};
    for (size_t i = 0; i < d->silent_count; i++)
        l.before[i] = d->silent[i];
    const size_t ended = d->ended;
    d->look++;
    d->looked_s = d->now_s;
    d->silent_count = 0;
    sl_sockets_visit(add_silent, &l);
    for (size_t i = d->silent_count; i-- > 0;)
        if (has_to_go(d, &d->silent[i]))
            end(d, i);
    end_all_but(d, is_short ? 0 : SL_SILENT_MAX);
    const int usual = free_from - (int)(d->ended - ended) + SL_SILENT_MAX;
    d->crowded_from = is_short || usual > reserve_from ? reserve_from : usual;
}

void sl_doorway_count(sl_doorway *d) {
    if (++d->looks % SL_DOORWAY_LOOKS != 0 || !sl_doorway_is_used(d))
        return;
    const int free_from = lowest_free(d);
    if (free_from < 0)
        turn_away(d);
    if (free_from < 0 || free_from >= d->crowded_from)
        look_round(d, free_from);
}

size_t sl_doorway_tick(sl_doorway *d, double now_s) {
    d->now_s = now_s;
    if (!sl_doorway_is_used(d))
        return 0;
    const int free_from = lowest_free(d);
    if (free_from < 0)
        turn_away(d);
    else
        pause_listening(d, false);
    if (free_from < 0 || now_s - d->looked_s >= look_every_s)
        look_round(d, free_from);
    const size_t ended = d->ended;
    d->ended = 0;
    return ended;
}

/* ---- the end ---- */

typedef struct rest {
    const sl_doorway *doorway;
    size_t count;
} rest;

/* Who has broken off is not connected, and the provider holds him still. */
static bool end_silent(void *context, const sl_socket *s) {
    rest *r = context;
    if (s->fd == r->doorway->listener || !is_at_port(r->doorway, s) || !is_marked(s))
        return false;
    if (has_not_greeted(s))
        shutdown(s->fd, SHUT_RDWR);
    r->count++;
    return false;
}

size_t sl_doorway_shut(sl_doorway *d) {
    rest r = {.doorway = d};
    if (!sl_doorway_is_used(d))
        return 0;
    shutdown(d->listener, SHUT_RD); /* who waits to be accepted is sent away by the kernel */
    sl_sockets_visit(end_silent, &r);
    return r.count;
}
