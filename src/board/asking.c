/* asking.c - see starling/asking.h. One request to each socket, and one loop for all answers: an
 * agent that is stopped costs no more time than the patience that all have. */
#include "starling/asking.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

enum { ANSWER_BYTES_MAX = 1 << 24, REQUEST_BYTES_MAX = 256 };
static const char request[] = "GET /status HTTP/1.0\r\n\r\n"; /* which names no host */

/* A conversation with one agent. */
typedef struct talk {
    uint32_t rank;
    pid_t pid;
    int fd; /* -1: over */
    char *heard;
    size_t bytes;
    bool whole, gone; /* gone: nobody is at the socket any longer */
    bool calls;       /* at a port, which may not have answered yet */
} talk;

/* ---- who is there ---- */

void sl_monitor_name(char out[SL_MONITOR_NAME_MAX], uint32_t rank) {
    snprintf(out, SL_MONITOR_NAME_MAX, "status-%u.sock", rank);
}

static bool read_name(const char *name, uint32_t *rank) {
    char again[SL_MONITOR_NAME_MAX];
    if (sscanf(name, "status-%u.sock", rank) != 1)
        return false;
    sl_monitor_name(again, *rank);
    return strcmp(name, again) == 0;
}

static int by_rank(const void *a, const void *b) {
    const talk *one = a, *two = b;
    return (one->rank > two->rank) - (one->rank < two->rank);
}

static bool add_talk(talk **all, size_t *count, uint32_t rank) {
    talk *more = realloc(*all, (*count + 1) * sizeof **all);
    if (more == NULL)
        return false;
    *all = more;
    more[(*count)++] = (talk){.rank = rank, .fd = -1};
    return true;
}

static int find_sockets(talk **all, size_t *count, DIR *folder, sl_error *error) {
    const struct dirent *entry;
    uint32_t rank;
    while ((entry = readdir(folder)) != NULL)
        if (read_name(entry->d_name, &rank) && !add_talk(all, count, rank))
            return sl_fail(error, SL_ENOMEM, "out of memory");
    if (*count > 0)
        qsort(*all, *count, sizeof **all, by_rank);
    return 0;
}

/* ---- asking ---- */

static void hang_up(talk *t) {
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
}

/* Who listens at the other end. */
static pid_t process_of(int fd) {
    struct ucred other;
    socklen_t bytes = sizeof other;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &bytes) == 0 ? other.pid : 0;
}

static bool say(talk *t) {
    return send(t->fd, request, sizeof request - 1, MSG_NOSIGNAL) == sizeof request - 1;
}

/* A folder's path may be longer than a socket's address. */
static void call(talk *t, int folder) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[SL_MONITOR_NAME_MAX];
    sl_monitor_name(name, t->rank);
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, name);
    t->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (t->fd >= 0 && connect(t->fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
        say(t)) {
        t->pid = process_of(t->fd);
        return;
    }
    t->gone = errno == ECONNREFUSED || errno == ENOENT;
    hang_up(t);
}

static void call_port(talk *t, const struct sockaddr_storage *address) {
    const socklen_t bytes =
        address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    t->gone = t->calls = true; /* until it answers */
    t->fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (t->fd >= 0 && connect(t->fd, (const struct sockaddr *)address, bytes) != 0 &&
        errno != EINPROGRESS)
        hang_up(t);
}

static void get_through(talk *t) {
    int failure = 0;
    socklen_t bytes = sizeof failure;
    t->calls = false;
    if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &failure, &bytes) != 0 || failure != 0 || !say(t))
        hang_up(t);
}

/* What is there to be read; hangs up at the end. */
static void hear(talk *t) {
    char piece[4096];
    const ssize_t bytes = read(t->fd, piece, sizeof piece);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    char *more = bytes > 0 && t->bytes + (size_t)bytes <= ANSWER_BYTES_MAX
                     ? realloc(t->heard, t->bytes + (size_t)bytes + 1)
                     : NULL;
    if (more == NULL) {
        t->whole = bytes == 0;
        t->gone = t->gone && !t->whole;
        hang_up(t);
        return;
    }
    t->heard = more;
    memcpy(more + t->bytes, piece, (size_t)bytes);
    t->bytes += (size_t)bytes;
    more[t->bytes] = '\0';
}

static void hear_all(talk *all, size_t count, struct pollfd *places, double patience_s) {
    const double until_s = sl_clock_seconds() + patience_s;
    while (true) {
        size_t open = 0;
        for (size_t i = 0; i < count; i++) {
            places[i] = (struct pollfd){.fd = all[i].fd, .events = all[i].calls ? POLLOUT : POLLIN};
            open += all[i].fd >= 0;
        }
        const double left_s = until_s - sl_clock_seconds();
        if (open == 0 || left_s <= 0 || poll(places, count, (int)(left_s * 1000) + 1) < 0)
            return;
        for (size_t i = 0; i < count; i++)
            if (all[i].fd >= 0 && places[i].revents != 0)
                (all[i].calls ? get_through : hear)(&all[i]);
    }
}

/* What follows the header, of an answer that is whole; NULL: there is none. */
static char *body_of(const talk *t) {
    const char *body = t->whole && t->heard != NULL && strncmp(t->heard, "HTTP/1.", 7) == 0 &&
                               strncmp(t->heard + 8, " 200", 4) == 0
                           ? strstr(t->heard, "\r\n\r\n")
                           : NULL;
    return body != NULL ? strdup(body + 4) : NULL;
}

/* The last ones are at ports. */
static int ask(talk *all, size_t count, int folder, const sl_asked_port *ports, size_t port_count,
               double patience_s, sl_error *error) {
    struct pollfd *places = calloc(count + 1, sizeof *places);
    if (places == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++)
        if (i + port_count < count)
            call(&all[i], folder);
        else
            call_port(&all[i], &ports[i + port_count - count].address);
    hear_all(all, count, places, patience_s);
    free(places);
    return 0;
}

static int keep_answers(sl_asked **out, size_t *count, const talk *all, size_t talks,
                        sl_error *error) {
    sl_asked *kept = calloc(talks + 1, sizeof *kept);
    if (kept == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory");
    *count = 0;
    for (size_t i = 0; i < talks; i++)
        if (!all[i].gone)
            kept[(*count)++] =
                (sl_asked){.rank = all[i].rank, .pid = all[i].pid, .said = body_of(&all[i])};
    *out = kept;
    return 0;
}

/* ---- at a port ---- */

/* HOST:PORT, or [IPV6]:PORT, in two. */
static int split_place(char *copy, char **host, char **port, const char *place, sl_error *error) {
    char *end = strrchr(copy, ':');
    *host = copy;
    if (end != NULL && end > copy && end[1] != '\0') {
        *end = '\0';
        *port = end + 1;
        if (copy[0] == '[' && end[-1] == ']') {
            end[-1] = '\0';
            ++*host;
        }
        return 0;
    }
    return sl_fail(error, SL_EINVAL, "%s: is neither a run folder nor HOST:PORT", place);
}

static int find_address(struct addrinfo **out, const char *place, sl_error *error) {
    char *copy = strdup(place), *host = NULL, *port = NULL;
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    if (copy == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory");
    int result = split_place(copy, &host, &port, place, error);
    const int found = result == 0 ? getaddrinfo(host, port, &wanted, out) : 0;
    if (found != 0)
        result = sl_fail(error, SL_EINVAL, "%s: %s", place, gai_strerror(found));
    free(copy);
    return result;
}

/* The time to connect is bounded too. */
static int connect_to(const struct addrinfo *address, double patience_s) {
    const struct timeval patience = {.tv_sec = (time_t)patience_s + 1};
    const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0 &&
        fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
        return fd;
    close(fd);
    return -1;
}

int sl_ask_place(sl_asked **out, size_t *count, const char *place, const char *path,
                 double patience_s, sl_error *error) {
    char wanted[REQUEST_BYTES_MAX];
    const int bytes = snprintf(wanted, sizeof wanted, "GET %s HTTP/1.0\r\n\r\n", path);
    struct addrinfo *addresses = NULL;
    struct pollfd waiting;
    int result = find_address(&addresses, place, error);
    if (result != 0)
        return result;
    talk one = {.fd = -1};
    for (const struct addrinfo *a = addresses; a != NULL && one.fd < 0; a = a->ai_next)
        one.fd = connect_to(a, patience_s);
    freeaddrinfo(addresses);
    one.gone = one.fd < 0;
    if (one.fd >= 0 && send(one.fd, wanted, (size_t)bytes, MSG_NOSIGNAL) > 0)
        hear_all(&one, 1, &waiting, patience_s);
    hang_up(&one);
    result = keep_answers(out, count, &one, 1, error);
    free(one.heard);
    return result;
}

/* ---- in a folder ---- */

int sl_ask_folder(sl_asked **out, size_t *count, const char *folder, const sl_asked_port *ports,
                  size_t port_count, double patience_s, sl_error *error) {
    talk *all = NULL;
    size_t talks = 0;
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return sl_fail(error, SL_EFILE, "%s: is no folder that can be read: %s", folder,
                       strerror(errno));
    int result = find_sockets(&all, &talks, entries, error);
    for (size_t i = 0; i < port_count && result == 0; i++)
        if (!add_talk(&all, &talks, ports[i].rank))
            result = sl_fail(error, SL_ENOMEM, "out of memory");
    if (result == 0)
        result = ask(all, talks, dirfd(entries), ports, port_count, patience_s, error);
    if (result == 0)
        result = keep_answers(out, count, all, talks, error);
    for (size_t i = 0; i < talks; i++) {
        hang_up(&all[i]);
        free(all[i].heard);
    }
    free(all);
    closedir(entries);
    return result;
}

void sl_asked_free(sl_asked *all, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(all[i].said);
    free(all);
}
