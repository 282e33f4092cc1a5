/* monitor.c - see starling/monitor.h. A server on a thread of its own. */
#include "starling/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
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
#include "monitor/page.h"
#include "monitor/server.h"

enum { WAITING_MAX = 512, PORT_TEXT_MAX = 8 };

struct sl_monitor {
    sl_agent *agent;
    uint32_t rank, nodes;
    int folder, listener, end; /* descriptors; end: readable when the thread is to end */
    char name[SL_MONITOR_NAME_MAX];
    char host[SL_HOST_MAX];     /* of monitor.listen */
    char own_name[SL_HOST_MAX]; /* the same, or this machine's, where it is none */
    bool bound, runs;
    sl_server server;
    pthread_t thread;
};

/* ---- the thread ---- */

static char *write_page(void *context) {
    const sl_monitor *m = context;
    return sl_page_write(m->agent, m->rank, m->nodes, m->bound);
}

static void *run(void *context) {
    sl_monitor *m = context;
    while (sl_server_look(&m->server, m->end))
        continue;
    return NULL;
}

/* Signals are for others. */
static int start(sl_monitor *m, sl_error *error) {
    sigset_t all, before;
    sigfillset(&all);
    sl_server_open(&m->server, m->listener);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    m->runs = pthread_create(&m->thread, NULL, run, m) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (m->runs)
        return 0;
    sl_server_close(&m->server);
    return sl_fail(error, SL_ENOMEM, "monitor: no thread could be started");
}

/* ---- the socket ---- */

/* A socket's address is short, and a folder's path may be long. */
static struct sockaddr_un address_of(const sl_monitor *m) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", m->folder, m->name);
    return address;
}

static int open_socket(int family) {
    return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int listen_there(sl_monitor *m) {
    const struct sockaddr_un address = address_of(m);
    unlinkat(m->folder, m->name, 0);
    if (bind(m->listener, (const struct sockaddr *)&address, sizeof address) != 0)
        return -1;
    m->bound = true;
    return listen(m->listener, WAITING_MAX);
}

/* Only who may use the folder comes there, by any name of the host. */
static int bind_socket(sl_monitor *m, const char *folder, sl_error *error) {
    m->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    m->listener = open_socket(AF_UNIX);
    if (m->folder >= 0 && m->listener >= 0 && listen_there(m) == 0)
        return 0;
    return sl_fail(error, SL_EFILE, "%s/%s: cannot be made: %s", folder, m->name, strerror(errno));
}

/* ---- the port ---- */

static int find_place(sl_monitor *m, uint16_t *port, const char *place, sl_error *error) {
    sl_roster *all = NULL;
    if (strstr(place, "{rank}") == NULL)
        return sl_place_parse(m->host, port, place, 1, "monitor.listen", error);
    int result = sl_roster_find(&all, place, m->nodes, 0, 0, error);
    if (result != 0)
        return sl_fail_prefix(error, result, "monitor.listen: ");
    snprintf(m->host, sizeof m->host, "%s", sl_roster_host(all, m->rank));
    *port = sl_roster_port(all, m->rank);
    sl_roster_close(&all);
    return 0;
}

/* 0, or an errno. */
static int listen_at(sl_monitor *m, const struct addrinfo *at) {
    const int on = 1;
    m->listener = open_socket(at->ai_family);
    if (m->listener < 0)
        return errno;
    setsockopt(m->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return bind(m->listener, at->ai_addr, at->ai_addrlen) == 0 &&
                   listen(m->listener, WAITING_MAX) == 0
               ? 0
               : errno;
}

static int listen_at_host(sl_monitor *m, uint16_t port, sl_error *error) {
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char text[PORT_TEXT_MAX];
    snprintf(text, sizeof text, "%u", port);
    const int unknown = getaddrinfo(m->host, text, &wanted, &found);
    if (unknown != 0)
        return sl_fail(error, SL_EINVAL, "monitor.listen: host '%s' is unknown: %s", m->host,
                       gai_strerror(unknown));
    const int failure = listen_at(m, found);
    freeaddrinfo(found);
    return failure == 0 ? 0
                        : sl_fail(error, SL_EINVAL,
                                  "monitor.listen: agent %u cannot listen at %s port %u: %s; "
                                  "agents on one host need ports of their own, such as "
                                  "127.0.0.1:91{rank}0",
                                  m->rank, m->host, port, strerror(failure));
}

static bool is_loopback(int fd) {
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    return getsockname(fd, (struct sockaddr *)&own, &bytes) == 0 && sl_address_is_loopback(&own);
}

/* As a request may name it that does not by an address. */
static void name_self(sl_monitor *m) {
    if (!sl_host_is_any(m->host) || gethostname(m->own_name, sizeof m->own_name - 1) != 0)
        memcpy(m->own_name, m->host, sizeof m->host);
}

/* Nobody is answered before the thread runs. */
static int bind_port(sl_monitor *m, const char *place, bool is_public, sl_error *error) {
    uint16_t port;
    int result = find_place(m, &port, place, error);
    if (result == 0)
        result = listen_at_host(m, port, error);
    if (result != 0)
        return result;
    m->server.host = m->own_name;
    name_self(m);
    if (is_public || is_loopback(m->listener))
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "monitor.listen: %s is beyond loopback, where anybody may look, unencrypted, at "
                   "what this agent does: say \"monitor\": {\"public\": true} if they may, or "
                   "listen on loopback; nothing can be changed through it, and how agents prove "
                   "themselves stays",
                   m->host);
}

/* ---- from beginning to end ---- */

/* Answers nobody yet. */
static int make(sl_monitor **out, sl_agent *agent, uint32_t rank, uint32_t nodes, sl_error *error) {
    sl_monitor *m = calloc(1, sizeof *m);
    if (m == NULL)
        return sl_fail(error, SL_ENOMEM, "monitor: out of memory");
    m->agent = agent;
    m->rank = rank;
    m->nodes = nodes;
    m->folder = m->listener = -1;
    m->server.path = "/status";
    m->server.page = write_page;
    m->server.context = m;
    sl_monitor_name(m->name, rank);
    m->end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    *out = m;
    return m->end >= 0 ? 0 : sl_fail(error, SL_ENOMEM, "monitor: no descriptor is left");
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
                      const char *place, bool is_public, sl_error *error) {
    sl_monitor *m = NULL;
    int result = make(&m, agent, rank, nodes, error);
    if (result == 0)
        result = bind_port(m, place, is_public, error);
    return finish(out, m, result, error);
}

static void close_if_open(int fd) {
    if (fd >= 0)
        close(fd);
}

void sl_monitor_close(sl_monitor **monitor) {
    sl_monitor *m = *monitor;
    if (m == NULL)
        return;
    *monitor = NULL;
    if (m->runs) {
        eventfd_write(m->end, 1);
        pthread_join(m->thread, NULL);
        sl_server_close(&m->server);
    }
    if (m->bound)
        unlinkat(m->folder, m->name, 0);
    close_if_open(m->listener);
    close_if_open(m->end);
    close_if_open(m->folder);
    free(m);
}
