/* monitor.c - see starling/monitor.h. What is where at the HTTP server. */
#include "starling/monitor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/http.h"
#include "launch/roster.h"
#include "monitor/page.h"

struct sl_monitor {
    sl_agent *agent;
    uint32_t rank, nodes;
    bool in_folder;
    sl_http *http;
};

/* text: malloc'ed; NULL: out of memory. */
static void give(sl_http_answer *out, const char *type, char *text) {
    if (text == NULL) {
        *out = (sl_http_answer){.status = 500, .type = type, .body = "", .bytes = 0};
        return;
    }
    out->type = type;
    out->body = out->owned = text;
    out->bytes = strlen(text);
}

static void show_status(void *context, const char *query, sl_http_answer *out) {
    (void)query;
    const sl_monitor *m = context;
    give(out, "application/json", sl_page_write(m->agent, m->rank, m->nodes, m->in_folder));
}

/* ---- where ---- */

static int find_place(const sl_monitor *m, char host[SL_HOST_MAX], uint16_t *port,
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

/* ---- from beginning to end ---- */

static int serve(sl_monitor **out, const sl_monitor *as, const sl_http_place *place,
                 sl_error *error) {
    sl_monitor *m = malloc(sizeof *m);
    if (m == NULL)
        return sl_fail(error, SL_ENOMEM, "monitor: out of memory");
    *m = *as;
    const sl_http_route routes[] = {
        {.path = "/status", .context = m, .answer = show_status},
    };
    const int result = sl_http_open(&m->http, place, routes, sizeof routes / sizeof *routes, error);
    if (result == 0)
        *out = m;
    else
        free(m);
    return result;
}

int sl_monitor_open(sl_monitor **out, sl_agent *agent, uint32_t rank, uint32_t nodes,
                    const char *folder, sl_error *error) {
    const sl_monitor as = {.agent = agent, .rank = rank, .nodes = nodes, .in_folder = true};
    char name[SL_MONITOR_NAME_MAX];
    sl_monitor_name(name, rank);
    return serve(out, &as, &(sl_http_place){.folder = folder, .name = name}, error);
}

int sl_monitor_listen(sl_monitor **out, sl_agent *agent, uint32_t rank, uint32_t nodes,
                      const char *place, bool is_public, sl_error *error) {
    const sl_monitor as = {.agent = agent, .rank = rank, .nodes = nodes};
    char host[SL_HOST_MAX];
    sl_http_place at = {.host = host,
                        .is_public = is_public,
                        .key = "monitor.listen",
                        .hint = "agents on one host need ports of their own, such as "
                                "127.0.0.1:91{rank}0"};
    const int result = find_place(&as, host, &at.port, place, error);
    return result != 0 ? result : serve(out, &as, &at, error);
}

void sl_monitor_close(sl_monitor **monitor) {
    sl_monitor *m = *monitor;
    if (m == NULL)
        return;
    *monitor = NULL;
    sl_http_close(&m->http);
    free(m);
}
