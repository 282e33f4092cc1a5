/* monitor.c - see starling/monitor.h. What is where at the HTTP server. */
#include "starling/monitor.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exposition.h"
#include "http/door.h"
#include "http/http.h"
#include "launch/roster.h"
#include "monitor/health.h"
#include "monitor/metrics.h"
#include "monitor/page.h"

struct sl_monitor {
    sl_monitor_subject of;
    bool in_folder;
    bool predicts; /* somebody has asked for metrics: */
    double contraction;
    sl_http *http;
};

/* ---- what is where ---- */

/* text: malloc'ed; NULL: out of memory. */
static void give(sl_http_answer *out, int status, const char *type, char *text) {
    out->status = text != NULL ? status : 500;
    out->type = type;
    out->body = out->owned = text;
    out->bytes = text != NULL ? strlen(text) : 0;
}

static void show_status(void *context, const char *query, sl_http_answer *out) {
    (void)query;
    const sl_monitor *m = context;
    give(out, 200, "application/json", sl_page_write(&m->of, m->in_folder));
}

static void show_metrics(void *context, const char *query, sl_http_answer *out) {
    (void)query;
    sl_monitor *m = context;
    if (!m->predicts)
        m->contraction = sl_metrics_contraction(m->of.experiment->topology);
    m->predicts = true;
    give(out, 200, SL_EXPOSITION_TYPE, sl_metrics_write(&m->of, m->contraction));
}

static void show_health(const sl_monitor *m, sl_health which, const char *query,
                        sl_http_answer *out) {
    bool well;
    char *text = sl_health_write(&m->of, which, strcmp(query, "verbose") == 0, &well);
    give(out, well ? 200 : 503, "text/plain; charset=utf-8", text);
}

static void show_live(void *context, const char *query, sl_http_answer *out) {
    show_health(context, SL_HEALTH_LIVES, query, out);
}

static void show_ready(void *context, const char *query, sl_http_answer *out) {
    show_health(context, SL_HEALTH_IS_READY, query, out);
}

/* ---- from beginning to end ---- */

enum { OWN_ROUTES = 4 };

/* more (more_count): what else is there. */
static int serve(sl_monitor **out, const sl_monitor_subject *subject, const sl_http_place *place,
                 const sl_http_route *more, size_t more_count, sl_error *error) {
    sl_monitor *m = calloc(1, sizeof *m);
    if (m == NULL)
        return sl_fail(error, SL_ENOMEM, "monitor: out of memory");
    m->of = *subject;
    m->in_folder = place->folder != NULL;
    sl_http_route routes[SL_HTTP_ROUTES_MAX] = {
        {.path = "/status", .context = m, .answer = show_status},
        {.path = "/metrics", .context = m, .answer = show_metrics},
        {.path = "/livez", .context = m, .answer = show_live},
        {.path = "/readyz", .context = m, .answer = show_ready},
    };
    assert(more_count <= SL_HTTP_ROUTES_MAX - OWN_ROUTES);
    if (more_count > 0)
        memcpy(routes + OWN_ROUTES, more, more_count * sizeof *more);
    const int result = sl_http_open(&m->http, place, routes, OWN_ROUTES + more_count, error);
    if (result == 0)
        *out = m;
    else
        sl_monitor_close(&m);
    return result;
}

int sl_monitor_open(sl_monitor **out, const sl_monitor_subject *subject, const char *folder,
                    sl_error *error) {
    char name[SL_MONITOR_NAME_MAX];
    sl_monitor_name(name, subject->rank);
    return serve(out, subject, &(sl_http_place){.folder = folder, .name = name}, NULL, 0, error);
}

/* Of a rank. */
static int find_place(uint32_t rank, uint32_t nodes, char host[SL_HOST_MAX], uint16_t *port,
                      const sl_monitor_place *place, sl_error *error) {
    sl_roster *all = NULL;
    if (strstr(place->at, "{rank}") == NULL)
        return sl_place_parse(host, port, place->at, !place->is_any_port, place->key, error);
    int result = sl_roster_find(&all, place->at, nodes, 0, 0, error);
    if (result != 0)
        return sl_fail_prefix(error, result, "%s: ", place->key);
    snprintf(host, SL_HOST_MAX, "%s", sl_roster_host(all, rank));
    *port = sl_roster_port(all, rank);
    sl_roster_close(&all);
    return 0;
}

/* host: kept in *out. */
static int find_door(sl_http_place *out, char host[SL_HOST_MAX], uint32_t rank, uint32_t nodes,
                     const sl_monitor_place *place, sl_error *error) {
    *out = (sl_http_place){.host = host,
                           .is_public = place->is_public,
                           .allow = place->allow,
                           .key = place->key,
                           .hint = "ss -ltnp says who has it; agents on one host need ports of "
                                   "their own, such as 127.0.0.1:91{rank}0"};
    return find_place(rank, nodes, host, &out->port, place, error);
}

int sl_monitor_listen(sl_monitor **out, const sl_monitor_subject *subject,
                      const sl_monitor_place *place, sl_error *error) {
    char host[SL_HOST_MAX];
    sl_http_place at;
    const int result = find_door(&at, host, subject->rank, subject->nodes, place, error);
    return result != 0 ? result
                       : serve(out, subject, &at, place->routes, place->route_count, error);
}

int sl_monitor_try(uint32_t rank, uint32_t nodes, const sl_monitor_place *place, sl_error *error) {
    char host[SL_HOST_MAX];
    sl_http_place at;
    sl_http_door door;
    int result = find_door(&at, host, rank, nodes, place, error);
    if (result != 0)
        return result;
    result = sl_http_door_open(&door, &at, error);
    sl_http_door_close(&door);
    return result;
}

static bool set_port(struct sockaddr_storage *address, uint16_t port) {
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)address)->sin_port = htons(port);
    return address->ss_family != 0;
}

size_t sl_monitor_neighbours(sl_asked_port **out, const sl_monitor_subject *of,
                             const sl_monitor_place *place, const sl_roster *roster) {
    const sl_topology *topology = of->experiment->topology;
    const uint32_t *peers,
        nodes = sl_topology_nodes(topology),
        count = of->rank < nodes ? sl_topology_peers(topology, of->rank, &peers) : 0;
    sl_asked_port *all = malloc((count + 1) * sizeof *all);
    size_t found = 0;
    for (uint32_t i = 0; i < count && all != NULL; i++) {
        char host[SL_HOST_MAX];
        uint16_t port;
        if (peers[i] >= sl_roster_count(roster) ||
            find_place(peers[i], of->nodes, host, &port, place, NULL) != 0)
            continue;
        all[found] = (sl_asked_port){peers[i], sl_roster_address(roster, peers[i])};
        found += set_port(&all[found].address, port);
    }
    *out = all;
    return found;
}

uint16_t sl_monitor_port(const sl_monitor *m) {
    return sl_http_port(m->http);
}

void sl_monitor_close(sl_monitor **monitor) {
    sl_monitor *m = *monitor;
    if (m == NULL)
        return;
    *monitor = NULL;
    sl_http_close(&m->http);
    free(m);
}
