/* server.c - see server.h. */
#include "monitor/server.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    AT_ONCE = SL_SERVER_PLACES / 2, /* that are accepted, before those are heard */
    HEADER_BYTES_MAX = 256,
    IGNORED_BYTES_MAX = 1 << 16, /* of who goes on to speak */
    LOOK_MS_MAX = 60000,
};
static const double breath_s = 0.002; /* after those */

/* ---- answers ---- */

typedef struct status {
    int code;
    const char *reason, *text;
} status;

static const status statuses[] = {
    {SL_REQUEST_OK, "OK", ""},
    {SL_REQUEST_BAD, "Bad Request", "this is no request of HTTP/1.1 that can be read\n"},
    {SL_REQUEST_FOREIGN, "Forbidden",
     "the request is for another host: say an address, localhost, the host of monitor.listen, or "
     "the name of this machine, where that is 0.0.0.0 or ::\n"},
    {SL_REQUEST_UNKNOWN, "Not Found", "there is one page: /status\n"},
    {SL_REQUEST_WRITES, "Method Not Allowed", "nothing can be changed here: GET and HEAD only\n"},
    {SL_REQUEST_HAS_BODY, "Content Too Large", "a request has no body here\n"},
    {SL_REQUEST_LONG, "Request Header Fields Too Large", "a request has at most 4096 bytes\n"},
    {SL_REQUEST_VERSION, "HTTP Version Not Supported", "HTTP/1.1 is spoken here\n"},
    {500, "Internal Server Error", "out of memory\n"},
};
enum { STATUSES = sizeof statuses / sizeof *statuses };

static const status *find_status(int code) {
    size_t i = 0;
    while (i + 1 < STATUSES && statuses[i].code != code)
        i++;
    return &statuses[i];
}

/* malloc'ed; NULL: out of memory. */
static char *compose(const status *s, const char *type, const char *body, bool head_only,
                     size_t *bytes) {
    const size_t length = strlen(body);
    char *all = malloc(HEADER_BYTES_MAX + length);
    if (all == NULL)
        return NULL;
    const int head =
        snprintf(all, HEADER_BYTES_MAX,
                 "HTTP/1.1 %d %s\r\n%sContent-Type: %s\r\nContent-Length: %zu\r\n"
                 "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
                 s->code, s->reason, s->code == SL_REQUEST_WRITES ? "Allow: GET, HEAD\r\n" : "",
                 type, length);
    memcpy(all + head, body, head_only ? 0 : length);
    *bytes = (size_t)head + (head_only ? 0 : length);
    return all;
}

static void make_answer(const sl_server *s, sl_server_guest *g, int code, bool head_only) {
    char *page = code == SL_REQUEST_OK ? s->page(s->context) : NULL;
    const status *what = find_status(code == SL_REQUEST_OK && page == NULL ? 500 : code);
    g->answer = compose(what, page != NULL ? "application/json" : "text/plain; charset=us-ascii",
                        page != NULL ? page : what->text, head_only, &g->answer_bytes);
    free(page);
}

/* ---- guests ---- */

static void end(sl_server_guest *g) {
    if (g->fd >= 0)
        close(g->fd);
    free(g->answer);
    *g = (sl_server_guest){.fd = -1};
}

static void dismiss(sl_server *s, unsigned place) {
    end(&s->guests[place]);
    sl_places_leave(&s->places, place);
}

/* Each returns false where nothing more is to be expected of a guest. */
static bool may_come(ssize_t bytes) {
    return bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static bool tell(sl_server_guest *g) {
    const ssize_t sent = send(g->fd, g->answer + g->told_bytes, g->answer_bytes - g->told_bytes,
                              MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0)
        return may_come(sent);
    g->told_bytes += (size_t)sent;
    if (g->told_bytes == g->answer_bytes)
        shutdown(g->fd, SHUT_WR);
    return true;
}

static bool hear(const sl_server *s, sl_server_guest *g) {
    const sl_request asked = {g->heard, 0, s->path, s->host};
    sl_request request = asked;
    bool head_only;
    const ssize_t got =
        recv(g->fd, g->heard + g->heard_bytes, sizeof g->heard - g->heard_bytes, MSG_DONTWAIT);
    if (got <= 0)
        return may_come(got);
    g->heard_bytes += (size_t)got;
    request.count = g->heard_bytes;
    const int code = sl_request_judge(&request, &head_only);
    if (code == SL_REQUEST_UNFINISHED)
        return true;
    make_answer(s, g, code, head_only);
    return g->answer != NULL && tell(g);
}

/* To close while bytes are unread would take the answer from who has not read it yet. */
static bool ignore(sl_server_guest *g) {
    char bytes[4096];
    const ssize_t got = recv(g->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= 0)
        return may_come(got);
    g->ignored_bytes += (size_t)got;
    return g->ignored_bytes <= IGNORED_BYTES_MAX;
}

static bool is_told(const sl_server_guest *g) {
    return g->answer != NULL && g->told_bytes == g->answer_bytes;
}

static void attend(sl_server *s, unsigned place) {
    sl_server_guest *g = &s->guests[place];
    const bool stays = g->answer == NULL ? hear(s, g) : is_told(g) ? ignore(g) : tell(g);
    if (!stays)
        dismiss(s, place);
}

/* ---- who comes ---- */

/* Who has asked at once is answered at once. */
static bool welcome(sl_server *s, double now_s) {
    struct sockaddr_storage other;
    bool evicted;
    const int fd = sl_listener_accept(&s->listener, &other, now_s);
    if (fd < 0)
        return false;
    const unsigned place =
        sl_places_take(&s->places, &other, now_s, sl_listener_is_short(&s->listener, fd), &evicted);
    if (evicted)
        end(&s->guests[place]);
    s->guests[place].fd = fd;
    attend(s, place);
    return true;
}

/* A crowd is not to take the processor. */
static void welcome_some(sl_server *s, double now_s) {
    int count = 0;
    while (count < AT_ONCE && welcome(s, now_s))
        count++;
    if (count > 0)
        sl_listener_rest(&s->listener, now_s + breath_s);
}

static void dismiss_expired(sl_server *s, double now_s) {
    for (int place; (place = sl_places_expired(&s->places, now_s)) >= 0;)
        dismiss(s, (unsigned)place);
}

/* ---- the loop ---- */

static short waits_for(const sl_server_guest *g) {
    return g->answer == NULL || is_told(g) ? POLLIN : POLLOUT;
}

/* Until somebody's time is over, or the listener has rested. */
static int look_ms(const sl_server *s, double now_s) {
    double wait_s = sl_places_left_s(&s->places, now_s);
    if (!sl_listener_listens(&s->listener, now_s))
        wait_s = fmin(wait_s, s->listener.rests_until_s - now_s);
    return (int)fmin(ceil(wait_s * 1000), LOOK_MS_MAX);
}

bool sl_server_look(sl_server *s, int end_fd) {
    struct pollfd watched[SL_SERVER_PLACES + 2];
    const double now_s = sl_clock_seconds();
    const bool listens = sl_listener_listens(&s->listener, now_s);
    for (unsigned i = 0; i < SL_SERVER_PLACES; i++)
        watched[i] = (struct pollfd){s->guests[i].fd, waits_for(&s->guests[i]), 0};
    struct pollfd *const door = &watched[SL_SERVER_PLACES], *const last = door + 1;
    *door = (struct pollfd){listens ? s->listener.fd : -1, POLLIN, 0};
    *last = (struct pollfd){end_fd, POLLIN, 0};
    if (poll(watched, SL_SERVER_PLACES + 2, look_ms(s, now_s)) < 0)
        return errno == EINTR;
    for (unsigned i = 0; i < SL_SERVER_PLACES; i++)
        if (watched[i].revents != 0)
            attend(s, i);
    const double then_s = sl_clock_seconds();
    dismiss_expired(s, then_s);
    if (door->revents != 0)
        welcome_some(s, then_s);
    return last->revents == 0;
}

/* ---- from beginning to end ---- */

static unsigned half_of_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    return limit.rlim_cur / 2 < INT_MAX ? (unsigned)(limit.rlim_cur / 2) : INT_MAX;
}

void sl_server_open(sl_server *s, int listener) {
    sl_listener_open(&s->listener, listener, half_of_descriptors());
    sl_places_open(&s->places, SL_SERVER_PLACES, SL_SERVER_PLACES_OF_HOST, SL_SERVER_PATIENCE_S);
    for (unsigned i = 0; i < SL_SERVER_PLACES; i++)
        s->guests[i] = (sl_server_guest){.fd = -1};
}

void sl_server_close(sl_server *s) {
    for (unsigned i = 0; i < SL_SERVER_PLACES; i++)
        end(&s->guests[i]);
    sl_listener_close(&s->listener);
}
