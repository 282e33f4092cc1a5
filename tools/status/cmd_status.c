/* cmd_status.c - `starling status`: what the agents of a run do at this moment, and whom they wait
 * for in the end. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/outcome.h"
#include "cli/text_table.h"
#include "cli/tool.h"
#include "status/edges.h"
#include "status/health.h"
#include "status/waits.h"

#define PATIENCE_S 0.5 /* an agent that is well answers in milliseconds */

typedef struct status_request {
    bool wide, json;
} status_request;

static void put_awaited(text_table *t, const view *v) {
    char text[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < v->awaited_count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%u", i > 0 ? ", " : "",
                                 v->awaited[i]);
    text_table_put(t, "%s", text);
}

static void put_round(text_table *t, const view *v) {
    if (v->round > 0)
        text_table_put(t, "%llu", (unsigned long long)v->round);
    else
        text_table_put(t, "-");
}

static void print_table(const views *vs, bool wide) {
    static const char *const heads[] = {"rank", "round", "does", "since", "waits for"};
    text_table *t = text_table_open();
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        text_table_column(t,
                          i == 2   ? ALIGN_LEFT
                          : i == 4 ? ALIGN_FILL
                                   : ALIGN_RIGHT,
                          0, "", heads[i]);
    for (size_t i = 0; i < vs->count; i++) {
        const view *v = &vs->all[i];
        text_table_row(t);
        text_table_put(t, "%u", v->rank);
        if (!v->answers) {
            text_table_put(t, "-");
            text_table_put_rest(t, "does not answer");
            continue;
        }
        put_round(t, v);
        text_table_put(t, "%s", v->doing);
        text_table_put(t, "%.1f s", v->still_s);
        put_awaited(t, v);
    }
    text_table_print(t, output_width(wide));
    text_table_close(&t);
}

static void print_waits(const views *vs) {
    for (size_t i = 0; i < vs->count; i++)
        if (view_waits(&vs->all[i]) && vs->all[i].words[0] != '\0')
            printf("rank %u waits: %s\n", vs->all[i].rank, vs->all[i].words);
}

/* For people. */
static bool show_table(const health *h, const sl_asked *all, size_t count, bool at_port,
                       bool wide) {
    views vs;
    if (!views_open(&vs, all, count, !at_port))
        return false;
    health_print(h);
    print_table(&vs, wide);
    print_edges(all, count);
    if (at_port)
        print_waits(&vs);
    const bool printed = print_roots(&vs);
    views_close(&vs);
    return printed;
}

/* Returns the exit code, or an error. */
static int show(const status_request *r, const sl_asked *all, size_t count, bool at_port,
                sl_error *error) {
    health h;
    bool printed = health_open(&h, all, count);
    const int code = (int)h.state;
    if (printed)
        printed = r->json ? health_print_json(&h, all, count)
                          : show_table(&h, all, count, at_port, r->wide);
    health_close(&h);
    return printed ? code : sl_fail(error, SL_ENOMEM, "out of memory");
}

/* Nobody who can be asked is as bad as it gets. */
static int run(void *request, char *const *operands, size_t count) {
    const status_request *r = request;
    sl_asked *all = NULL;
    sl_error error;
    (void)count;
    size_t agents = 0;
    const char *where = operands[0];
    const bool at_port = access(where, F_OK) != 0 && strchr(where, ':') != NULL;
    int result = at_port ? sl_ask_place(&all, &agents, where, "/status", PATIENCE_S, &error)
                         : sl_ask_folder(&all, &agents, where, NULL, 0, PATIENCE_S, &error);
    if (result == 0 && !at_port && !r->json)
        outcomes_tell(where);
    if (result == 0 && agents == 0 && !r->json)
        result = sl_fail(&error, SL_EPEER, "%s: no agent runs there", where);
    if (result == 0)
        result = show(r, all, agents, at_port, &error);
    sl_asked_free(all, agents);
    if (result < 0)
        complain("%s", error.text);
    return result < 0 ? HEALTH_DOWN : result;
}

static const command_option option_wide_here = OPTION_WIDE(status_request);
static const command_option option_json = {
    "json", .help = "an object with state, members, lost, and all that the agents said",
    .take = take_switch, .offset = offsetof(status_request, json)};
static const command_option *const option_rows[] = {&option_json, &option_wide_here, NULL};

const command status_command = {
    .name = "status",
    .summary = "what the agents of a run do now, and whom they wait for",
    .operands = "RUN|HOST:PORT",
    .operands_min = 1,
    .operands_max = 1,
    .offer = OFFER_FOLDER,
    .text = "Asks all agents that run in the run folder RUN on this machine, and follows who waits "
            "for whom to the agent that all wait for; or the one agent that listens at HOST:PORT "
            "(monitor.listen), which has heard of the others that it waits for. Says how their "
            "connections are protected, and which agents of RUN have crashed, or are gone without "
            "a word. The first line says how many take part, and who is lost. Exit codes: 0 where "
            "all that should take part do; 1 where somebody is lost, does not answer, or is still "
            "to connect; 2 where nobody answers, or too few are left to go on.",
    .options = option_rows,
    .request_bytes = sizeof(status_request),
    .run = run,
};
