/* server.c - see server.h. */
#include "http/server.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/address.h"
#include "base/clock.h"
#include "http/answer.h"
#include "http/request.h"

enum {
    AT_ONCE = SL_SERVER_PLACES / 2, /* that are accepted, before those are heard */
    IGNORED_BYTES_MAX = 1 << 16,    /* of who goes on to speak */
    QUIET_TICKS_MAX = 30,           /* until a viewer that has gone unseen is to be noticed */
    LATE_TICKS_MAX = 120,           /* of one that is still taking what it was told */
    DESCRIPTORS = 8,                /* that a loop needs, and some */
    FIRST = 0,                      /* priorities: who is here, before who comes */
    SECOND = 1
};
static const double breath_s = 0.002; /* after those that were accepted at once */

static struct timeval in_seconds(double seconds) {
    const double whole = floor(seconds);
    return (struct timeval){(time_t)whole, (suseconds_t)((seconds - whole) * 1e6)};
}

static void after(struct event *timer, double seconds) {
    const struct timeval time = in_seconds(seconds);
    event_add(timer, &time);
}

/* Passes over what has come; false: that is too much. */
static bool ignore(struct bufferevent *line, size_t *ignored_bytes) {
    struct evbuffer *heard = bufferevent_get_input(line);
    const size_t bytes = evbuffer_get_length(heard);
    evbuffer_drain(heard, bytes);
    *ignored_bytes += bytes;
    return *ignored_bytes <= IGNORED_BYTES_MAX;
}

/* ---- viewers ---- */

static void drop(sl_http_viewer *v) {
    sl_http_server *s = v->server;
    bufferevent_free(v->line);
    *v = (sl_http_viewer){0};
    if (--s->viewer_count == 0)
        event_del(s->tick);
}

static size_t pending(const sl_http_viewer *v) {
    return evbuffer_get_length(bufferevent_get_output(v->line));
}

static void say(sl_http_viewer *v) {
    static const char nothing[] = ":\n\n"; /* a comment; a connection that is gone refuses it */
    struct evbuffer *out = bufferevent_get_output(v->line);
    const size_t before = pending(v);
    if (!v->over)
        v->over = !v->route->stream(v->route->context, &v->cursor, out);
    v->quiet_ticks = pending(v) > before ? 0 : v->quiet_ticks + 1;
    if (v->quiet_ticks > QUIET_TICKS_MAX && evbuffer_add(out, nothing, sizeof nothing - 1) == 0)
        v->quiet_ticks = 0;
}

/* One that has not taken all yet is told nothing more: later, what has changed by then. */
static void feed(sl_http_viewer *v) {
    v->late_ticks = pending(v) > 0 ? v->late_ticks + 1 : 0;
    if (v->late_ticks == 0)
        say(v);
    if (v->late_ticks > LATE_TICKS_MAX || (v->over && pending(v) == 0))
        drop(v);
}

static void on_tick(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    sl_http_server *s = context;
    for (sl_http_viewer *v = s->viewers; v < s->viewers + SL_HTTP_VIEWERS; v++)
        if (v->line != NULL)
            feed(v);
}

static void on_viewer_speaks(struct bufferevent *line, void *context) {
    sl_http_viewer *v = context;
    if (!ignore(line, &v->ignored_bytes))
        drop(v);
}

static void on_viewer_took(struct bufferevent *line, void *context) {
    (void)line;
    sl_http_viewer *v = context;
    if (v->over)
        drop(v);
}

static void on_viewer_event(struct bufferevent *line, short what, void *context) {
    (void)line;
    (void)what;
    drop(context);
}

/* A place for one of this host; NULL: there is none. */
static sl_http_viewer *find_seat(sl_http_server *s, int fd, const struct sockaddr_storage *other) {
    sl_http_viewer *free_one = NULL;
    unsigned of_host = 0;
    for (sl_http_viewer *v = s->viewers; v < s->viewers + SL_HTTP_VIEWERS; v++) {
        if (v->line == NULL)
            free_one = v;
        else
            of_host += sl_address_same_host(&v->other, other);
    }
    const bool crowds = !sl_address_is_loopback(other) && of_host >= SL_HTTP_VIEWERS_OF_HOST;
    return crowds || sl_listener_is_short(&s->listener, fd) ? NULL : free_one;
}

static void seat(sl_http_viewer *v, sl_http_server *s, struct bufferevent *line,
                 const struct sockaddr_storage *other, const sl_http_route *route) {
    const struct timeval patience = {.tv_sec = SL_SERVER_VIEWER_PATIENCE_S},
                         each = in_seconds(SL_HTTP_TICK_MS / 1000.0);
    *v = (sl_http_viewer){.server = s, .line = line, .route = route, .other = *other};
    if (s->viewer_count++ == 0)
        event_add(s->tick, &each);
    bufferevent_setcb(line, on_viewer_speaks, on_viewer_took, on_viewer_event, v);
    bufferevent_set_timeouts(line, NULL, &patience);
    if (sl_http_stream_append(bufferevent_get_output(line)))
        say(v);
    else
        drop(v);
}

/* ---- guests ---- */

static void dismiss(sl_http_guest *g) {
    sl_http_server *s = g->server;
    if (g->line != NULL)
        bufferevent_free(g->line);
    *g = (sl_http_guest){.server = s};
    sl_places_leave(&s->places, (unsigned)(g - s->guests));
}

static void tell(sl_http_guest *g, const sl_http_answer *answer, bool head_only) {
    g->answered = true;
    if (!sl_http_answer_append(bufferevent_get_output(g->line), answer, head_only))
        dismiss(g);
}

static void refuse(sl_http_guest *g, int code, bool head_only) {
    sl_http_answer answer = sl_http_refusal(code);
    if (code == SL_ANSWER_UNKNOWN) {
        answer.body = g->server->known;
        answer.bytes = strlen(answer.body);
    }
    tell(g, &answer, head_only);
}

static void show_stream(sl_http_guest *g, const sl_http_route *route, bool head_only) {
    sl_http_server *s = g->server;
    struct bufferevent *line = g->line;
    const struct sockaddr_storage other = s->places.places[g - s->guests].other;
    sl_http_viewer *v = find_seat(s, bufferevent_getfd(line), &other);
    if (v == NULL) {
        refuse(g, SL_ANSWER_FULL, head_only);
    } else if (head_only) {
        g->answered = true;
        if (!sl_http_stream_append(bufferevent_get_output(line)))
            dismiss(g);
    } else {
        g->line = NULL;
        dismiss(g);
        seat(v, s, line, &other, route);
    }
}

static const sl_http_route *find_route(const sl_http_server *s, const char *path) {
    for (const sl_http_route *r = s->routes; r < s->routes + s->route_count; r++)
        if (strcmp(r->path, path) == 0)
            return r;
    return NULL;
}

/* heard: path and query are cut out of it. */
static void show(sl_http_guest *g, char *heard, const sl_wanted *asked) {
    const sl_http_route *route;
    sl_http_answer answer = {SL_REQUEST_OK, "text/plain; charset=utf-8", NULL, NULL, 0, NULL};
    heard[asked->path + asked->path_bytes] = '\0';
    heard[asked->query + asked->query_bytes] = '\0';
    route = find_route(g->server, heard + asked->path);
    if (route == NULL) {
        refuse(g, SL_ANSWER_UNKNOWN, asked->head_only);
    } else if (route->stream != NULL) {
        show_stream(g, route, asked->head_only);
    } else {
        route->answer(route->context, heard + asked->query, &answer);
        tell(g, &answer, asked->head_only);
    }
}

static void on_guest_speaks(struct bufferevent *line, void *context) {
    sl_http_guest *g = context;
    char heard[SL_REQUEST_BYTES_MAX + 1];
    sl_wanted asked;
    if (g->answered) {
        if (!ignore(line, &g->ignored_bytes))
            dismiss(g);
        return;
    }
    struct evbuffer *in = bufferevent_get_input(line);
    const ssize_t bytes = evbuffer_copyout(in, heard, SL_REQUEST_BYTES_MAX);
    const sl_request request = {heard, bytes > 0 ? (size_t)bytes : 0, g->server->host};
    const int code = sl_request_judge(&request, &asked);
    if (code == SL_REQUEST_UNFINISHED)
        return;
    evbuffer_drain(in, evbuffer_get_length(in));
    if (code == SL_REQUEST_OK)
        show(g, heard, &asked);
    else
        refuse(g, code, asked.head_only);
}

/* To close while bytes are unread would take the answer from who has not read it yet. */
static void on_guest_told(struct bufferevent *line, void *context) {
    sl_http_guest *g = context;
    if (!g->answered)
        return;
    g->told = true;
    shutdown(bufferevent_getfd(line), SHUT_WR);
    if (g->silent)
        dismiss(g);
}

static void on_guest_event(struct bufferevent *line, short what, void *context) {
    (void)line;
    sl_http_guest *g = context;
    g->silent = true;
    if ((what & BEV_EVENT_ERROR) != 0 || !g->answered || g->told)
        dismiss(g);
}

/* ---- who comes ---- */

static void expect_limit(sl_http_server *s) {
    const double left_s = sl_places_left_s(&s->places, sl_clock_seconds());
    if (isfinite(left_s) && !evtimer_pending(s->limit, NULL))
        after(s->limit, left_s);
}

static void on_limit(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    sl_http_server *s = context;
    const double now_s = sl_clock_seconds();
    for (int place; (place = sl_places_expired(&s->places, now_s)) >= 0;)
        dismiss(&s->guests[place]);
    expect_limit(s);
}

static void receive(sl_http_guest *g, int fd) {
    g->line = bufferevent_socket_new(g->server->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (g->line == NULL) {
        close(fd);
        dismiss(g);
        return;
    }
    bufferevent_priority_set(g->line, FIRST);
    bufferevent_setwatermark(g->line, EV_READ, 0, SL_REQUEST_BYTES_MAX);
    bufferevent_setcb(g->line, on_guest_speaks, on_guest_told, on_guest_event, g);
    bufferevent_enable(g->line, EV_READ | EV_WRITE);
}

static bool welcome(sl_http_server *s, double now_s) {
    struct sockaddr_storage other;
    bool evicted;
    const int fd = sl_listener_accept(&s->listener, &other, now_s);
    if (fd < 0)
        return false;
    const bool is_short = sl_listener_is_short(&s->listener, fd);
    sl_http_guest *g = &s->guests[sl_places_take(&s->places, &other, now_s, is_short, &evicted)];
    if (evicted)
        bufferevent_free(g->line);
    *g = (sl_http_guest){.server = s};
    receive(g, fd);
    return true;
}

/* A crowd is not to take the processor. */
static void on_door(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    sl_http_server *s = context;
    const double now_s = sl_clock_seconds();
    for (int count = 0; count < AT_ONCE && welcome(s, now_s); count++)
        continue;
    after(s->rest, fmax(s->listener.rests_until_s - now_s, breath_s));
    expect_limit(s);
}

static void on_rest(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    sl_http_server *s = context;
    event_add(s->door, NULL);
}

/* ---- from beginning to end ---- */

static void on_end(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    sl_http_server *s = context;
    event_base_loopbreak(s->base);
}

static unsigned half_of_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    return limit.rlim_cur / 2 < INT_MAX ? (unsigned)(limit.rlim_cur / 2) : INT_MAX;
}

static void list_routes(sl_http_server *s) {
    size_t used = (size_t)snprintf(s->known, sizeof s->known, "there is");
    for (size_t i = 0; i < s->route_count && used < sizeof s->known; i++)
        used += (size_t)snprintf(s->known + used, sizeof s->known - used, "%s %s", i > 0 ? "," : "",
                                 s->routes[i].path);
    if (used < sizeof s->known)
        snprintf(s->known + used, sizeof s->known - used, "\n");
}

/* Used by one thread, it needs no locks. */
static struct event_base *open_base(void) {
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;
    if (config != NULL && event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK) == 0)
        base = event_base_new_with_config(config);
    if (config != NULL)
        event_config_free(config);
    if (base != NULL && event_base_priority_init(base, SECOND + 1) == 0)
        return base;
    if (base != NULL)
        event_base_free(base);
    return NULL;
}

static bool make_events(sl_http_server *s, int listener, int end) {
    s->base = open_base();
    if (s->base == NULL)
        return false;
    s->door = event_new(s->base, listener, EV_READ, on_door, s);
    s->rest = evtimer_new(s->base, on_rest, s);
    s->limit = evtimer_new(s->base, on_limit, s);
    s->tick = event_new(s->base, -1, EV_PERSIST, on_tick, s);
    s->end = event_new(s->base, end, EV_READ, on_end, s);
    return s->door != NULL && s->rest != NULL && s->limit != NULL && s->tick != NULL &&
           s->end != NULL && event_priority_set(s->door, SECOND) == 0 &&
           event_add(s->door, NULL) == 0 && event_add(s->end, NULL) == 0;
}

int sl_http_server_open(sl_http_server *s, int listener, int end, const char *host,
                        const sl_http_route *routes, size_t count, sl_error *error) {
    assert(count <= SL_HTTP_ROUTES_MAX);
    *s = (sl_http_server){.host = host, .route_count = count};
    memcpy(s->routes, routes, count * sizeof *routes);
    list_routes(s);
    sl_listener_open(&s->listener, listener, half_of_descriptors());
    sl_places_open(&s->places, SL_SERVER_PLACES, SL_SERVER_PLACES_OF_HOST, SL_SERVER_PATIENCE_S);
    if (sl_descriptors_left(DESCRIPTORS) && make_events(s, listener, end))
        return 0;
    sl_http_server_close(s);
    return sl_fail(error, SL_ENOMEM, "the HTTP server finds no memory, or no descriptor");
}

void sl_http_server_run(sl_http_server *s) {
    event_base_dispatch(s->base);
}

void sl_http_server_turn(sl_http_server *s) {
    event_base_loop(s->base, EVLOOP_NONBLOCK);
}

void sl_http_server_close(sl_http_server *s) {
    for (sl_http_guest *g = s->guests; g < s->guests + SL_SERVER_PLACES; g++)
        if (g->line != NULL)
            dismiss(g);
    for (sl_http_viewer *v = s->viewers; v < s->viewers + SL_HTTP_VIEWERS; v++)
        if (v->line != NULL)
            drop(v);
    struct event *const all[] = {s->door, s->rest, s->limit, s->tick, s->end};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] != NULL)
            event_free(all[i]);
    if (s->base != NULL)
        event_base_free(s->base);
    sl_listener_close(&s->listener);
}
