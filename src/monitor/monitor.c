/* monitor.c - see starling/monitor.h. libevent's HTTP server on a loop and a thread of its own. */
#include "starling/monitor.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "launch/roster.h"

/* Of a request, and for how long it may come. */
enum { HEADER_BYTES_MAX = 4096, BODY_BYTES_MAX = 0, PATIENCE_S = 5, WAITING_MAX = 16 };

struct sl_monitor {
    sl_agent *agent;
    uint32_t rank, nodes;
    int folder, end; /* descriptors: of the folder; readable: the thread is to end */
    char name[SL_MONITOR_NAME_MAX];
    bool bound, runs;
    struct event_base *base;
    struct evhttp *http;
    struct event *ending;
    pthread_t thread;
};

void sl_monitor_name(char out[SL_MONITOR_NAME_MAX], uint32_t rank) {
    snprintf(out, SL_MONITOR_NAME_MAX, "status-%u.sock", rank);
}

/* ---- what is said: NULL where memory ends, and so all of it ---- */

static json_t *describe_view(const sl_agent_view *v) {
    return json_pack("{s:I, s:s, s:I, s:f}", "rank", (json_int_t)v->rank, "doing",
                     sl_agent_doing_name(v->doing), "round", (json_int_t)v->round, "still_s",
                     v->still_s);
}

/* What a neighbour has said; JSON's null: nothing. */
static json_t *describe_said(const sl_agent_edge *edge) {
    if (!edge->heard)
        return json_null();
    const bool waits = edge->waits_for != edge->rank, knows = edge->root.rank != edge->rank;
    json_t *said = describe_view(&edge->said);
    json_t *awaited = waits ? json_integer(edge->waits_for) : json_null(),
           *root = knows ? describe_view(&edge->root) : json_null();
    if ((json_object_set_new(said, "ago_s", json_real(edge->ago_s)) |
         json_object_set_new(said, "waits_for", awaited) |
         json_object_set_new(said, "root", root)) == 0)
        return said;
    json_decref(said);
    return NULL;
}

static json_t *describe_edge(const sl_agent_edge *edge) {
    return json_pack("{s:I, s:b, s:s?, s:b, s:o}", "rank", (json_int_t)edge->rank, "connected",
                     edge->agreed, "protection", edge->agreed ? edge->protection : NULL, "awaited",
                     edge->awaited, "said", describe_said(edge));
}

static json_t *describe_edges(sl_agent *agent) {
    json_t *edges = json_array();
    sl_agent_edge edge;
    int missing = 0;
    for (uint32_t i = 0; sl_agent_edge_read(agent, i, &edge); i++)
        missing |= json_array_append_new(edges, describe_edge(&edge));
    if (missing == 0)
        return edges;
    json_decref(edges);
    return NULL;
}

/* As json_dumps, which leaves out a name where memory ends. */
static char *dump(const json_t *all) {
    const size_t bytes = json_dumpb(all, NULL, 0, JSON_COMPACT);
    char *text = bytes > 0 ? malloc(bytes + 1) : NULL;
    if (text != NULL && json_dumpb(all, text, bytes, JSON_COMPACT) == bytes) {
        text[bytes] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

/* malloc'ed; NULL: out of memory. */
static char *describe(const sl_monitor *m) {
    sl_agent_progress p = sl_agent_progress_read(m->agent);
    p.own.rank = m->rank; /* it may not run yet */
    json_t *all = describe_view(&p.own);
    char *text = NULL;
    if (json_object_set_new(all, "nodes", json_integer(m->nodes)) == 0 &&
        json_object_set_new(all, "waits_for", json_string(p.waits_for)) == 0 &&
        json_object_set_new(all, "root", p.waits ? describe_view(&p.root) : json_null()) == 0 &&
        json_object_set_new(all, "neighbours", describe_edges(m->agent)) == 0)
        text = dump(all);
    json_decref(all);
    return text;
}

static void answer(struct evhttp_request *request, void *context) {
    struct evbuffer *body = evbuffer_new();
    char *text = describe(context);
    const bool whole = body != NULL && text != NULL && evbuffer_add(body, text, strlen(text)) == 0;
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
                      "application/json");
    evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close");
    if (whole)
        evhttp_send_reply(request, HTTP_OK, "OK", body);
    else
        evhttp_send_error(request, HTTP_INTERNAL, "out of memory");
    if (body != NULL)
        evbuffer_free(body);
    free(text);
}

/* ---- the thread ---- */

static void end_loop(evutil_socket_t fd, short what, void *context) {
    const sl_monitor *m = context;
    (void)fd;
    (void)what;
    event_base_loopbreak(m->base);
}

static void *run(void *context) {
    const sl_monitor *m = context;
    event_base_dispatch(m->base);
    return NULL;
}

/* Signals are for others. */
static int start(sl_monitor *m, sl_error *error) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    m->runs = pthread_create(&m->thread, NULL, run, m) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return m->runs ? 0 : sl_fail(error, SL_ENOMEM, "monitor: no thread could be started");
}

/* ---- the socket ---- */

/* A socket's address is short, and a folder's path may be long. */
static struct sockaddr_un address_of(const sl_monitor *m) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", m->folder, m->name);
    return address;
}

static int listen_there(sl_monitor *m, int fd) {
    const struct sockaddr_un address = address_of(m);
    unlinkat(m->folder, m->name, 0);
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        return -1;
    m->bound = true;
    return listen(fd, WAITING_MAX);
}

static int bind_socket(sl_monitor *m, const char *folder, sl_error *error) {
    m->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (m->folder < 0 || fd < 0 || listen_there(m, fd) != 0) {
        const int code = errno;
        if (fd >= 0)
            close(fd);
        return sl_fail(error, SL_EFILE, "%s/%s: cannot be made: %s", folder, m->name,
                       strerror(code));
    }
    if (evhttp_accept_socket(m->http, fd) == 0) /* which takes it */
        return 0;
    close(fd);
    return sl_fail(error, SL_ENOMEM, "monitor: out of memory");
}

static int open_server(sl_monitor *m, sl_error *error) {
    m->end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    m->base = event_base_new();
    m->http = m->base != NULL ? evhttp_new(m->base) : NULL;
    m->ending = m->base != NULL ? event_new(m->base, m->end, EV_READ, end_loop, m) : NULL;
    if (m->end < 0 || m->http == NULL || m->ending == NULL || event_add(m->ending, NULL) != 0 ||
        evhttp_set_cb(m->http, "/status", answer, m) != 0)
        return sl_fail(error, SL_ENOMEM, "monitor: out of memory, or no descriptor left");
    evhttp_set_allowed_methods(m->http, EVHTTP_REQ_GET);
    evhttp_set_max_headers_size(m->http, HEADER_BYTES_MAX);
    evhttp_set_max_body_size(m->http, BODY_BYTES_MAX);
    evhttp_set_timeout(m->http, PATIENCE_S);
    return 0;
}

/* ---- the port ---- */

static int find_place(char host[SL_HOST_MAX], uint16_t *port, const sl_monitor *m,
                      const char *place, sl_error *error) {
    sl_roster *all = NULL;
    if (strstr(place, "{rank}") == NULL)
        return sl_place_parse(host, port, place, 1, "monitor.listen", error);
    int result = sl_roster_find(&all, place, m->nodes, 0, 0, error);
    if (result != 0)
        return sl_fail_prefix(error, result, "monitor.listen: ");
    snprintf(host, SL_HOST_MAX, "%s", sl_roster_host(all, m->rank));
    *port = sl_roster_port(all, m->rank);
    sl_roster_close(&all);
    return 0;
}

static bool is_loopback(int fd) {
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    return getsockname(fd, (struct sockaddr *)&own, &bytes) == 0 && sl_address_is_loopback(&own);
}

/* Nobody is answered before the thread runs. */
static int bind_port(sl_monitor *m, const char *place, bool trusted_network, sl_error *error) {
    char host[SL_HOST_MAX];
    uint16_t port;
    int result = find_place(host, &port, m, place, error);
    if (result != 0)
        return result;
    errno = 0;
    struct evhttp_bound_socket *there = evhttp_bind_socket_with_handle(m->http, host, port);
    if (there == NULL)
        return sl_fail(error, SL_EINVAL,
                       "monitor.listen: agent %u cannot listen at %s port %u%s%s; agents on one "
                       "host need ports of their own, such as 127.0.0.1:91{rank}0",
                       m->rank, host, port, errno != 0 ? ": " : "",
                       errno != 0 ? strerror(errno) : "");
    if (!trusted_network && !is_loopback(evhttp_bound_socket_get_fd(there)))
        return sl_fail(
            error, SL_EINVAL,
            "monitor.listen: %s is beyond loopback, where anybody may look: if everybody "
            "on that network is trusted, say \"security\": {\"mode\": \"none\", "
            "\"trusted_network\": true}",
            host);
    return 0;
}

/* ---- from beginning to end ---- */

/* Answers nobody yet. */
static int make(sl_monitor **out, sl_agent *agent, uint32_t rank, uint32_t nodes, sl_error *error) {
    sl_monitor *m = calloc(1, sizeof *m);
    if (m == NULL)
        return sl_fail(error, SL_ENOMEM, "monitor: out of memory");
    *m = (sl_monitor){.agent = agent, .rank = rank, .nodes = nodes, .folder = -1, .end = -1};
    sl_monitor_name(m->name, rank);
    *out = m;
    return open_server(m, error);
}

/* Begins to answer, or closes it where something has failed. */
static int finish(sl_monitor **out, sl_monitor *m, int result, sl_error *error) {
    if (result == 0)
        result = start(m, error);
    if (result != 0)
        sl_monitor_close(&m);
    else
        *out = m;
    return result;
}

int sl_monitor_open(sl_monitor **out, sl_agent *agent, uint32_t rank, uint32_t nodes,
                    const char *folder, sl_error *error) {
    sl_monitor *m = NULL;
    int result = make(&m, agent, rank, nodes, error);
    if (result == 0)
        result = bind_socket(m, folder, error);
    return finish(out, m, result, error);
}

int sl_monitor_listen(sl_monitor **out, sl_agent *agent, uint32_t rank, uint32_t nodes,
                      const char *place, bool trusted_network, sl_error *error) {
    sl_monitor *m = NULL;
    int result = make(&m, agent, rank, nodes, error);
    if (result == 0)
        result = bind_port(m, place, trusted_network, error);
    return finish(out, m, result, error);
}

void sl_monitor_close(sl_monitor **monitor) {
    sl_monitor *m = *monitor;
    if (m == NULL)
        return;
    *monitor = NULL;
    if (m->runs) {
        eventfd_write(m->end, 1);
        pthread_join(m->thread, NULL);
    }
    if (m->bound)
        unlinkat(m->folder, m->name, 0);
    if (m->http != NULL)
        evhttp_free(m->http);
    if (m->ending != NULL)
        event_free(m->ending);
    if (m->base != NULL)
        event_base_free(m->base);
    if (m->end >= 0)
        close(m->end);
    if (m->folder >= 0)
        close(m->folder);
    free(m);
}
