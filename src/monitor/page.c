/* page.c - see page.h. */
#include "monitor/page.h"

#include <jansson.h>
#include <stdlib.h>

/* Each is NULL where memory ends, and so is all of it. */
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

static json_t *describe_round_trip(double seconds) {
    return seconds > 0 ? json_real(seconds) : json_null();
}

static json_t *describe_edge(const sl_agent_edge *edge) {
    const sl_agent_traffic *t = &edge->traffic;
    return json_pack("{s:I, s:b, s:s?, s:b, s:b, s:I, s:I, s:I, s:f, s:o, s:o}", "rank",
                     (json_int_t)edge->rank, "connected", edge->agreed, "protection",
                     edge->agreed ? edge->protection : NULL, "memory", edge->memory, "awaited",
                     edge->awaited, "sent_bytes", (json_int_t)t->sent_bytes, "received_bytes",
                     (json_int_t)t->received_bytes, "connections", (json_int_t)t->connections,
                     "waited_s", t->waited_s, "round_trip_s", describe_round_trip(t->round_trip_s),
                     "said", describe_said(edge));
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

static json_t *describe_lost(sl_agent *agent) {
    json_t *all = json_array();
    sl_agent_lost lost;
    int missing = 0;
    for (uint32_t i = 0; sl_agent_lost_read(agent, i, &lost); i++)
        missing |= json_array_append_new(all, json_pack("{s:I, s:b, s:f}", "rank",
                                                        (json_int_t)lost.rank, "member",
                                                        lost.is_member, "since_s", lost.since_s));
    if (missing == 0)
        return all;
    json_decref(all);
    return NULL;
}

/* How the agent has read its roster and keys again, the last time; JSON's null: it has not. */
static json_t *describe_reload(const sl_agent_progress *p) {
    return p->reloads == 0 ? json_null()
                           : json_pack("{s:I, s:b, s:s}", "count", (json_int_t)p->reloads, "well",
                                       p->reloaded, "said", p->reload);
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

char *sl_page_write(const sl_monitor_subject *of, bool in_folder) {
    sl_agent_progress p = sl_agent_progress_read(of->agent);
    p.own.rank = of->rank; /* it may not run yet */
    json_t *all = describe_view(&p.own);
    char *text = NULL;
    if (json_object_set_new(all, "nodes", json_integer(of->nodes)) == 0 &&
        json_object_set_new(all, "view", json_integer(p.view)) == 0 &&
        json_object_set_new(all, "members", json_integer(p.members)) == 0 &&
        json_object_set_new(all, "rests", json_boolean(p.rests)) == 0 &&
        json_object_set_new(all, "lost", describe_lost(of->agent)) == 0 &&
        json_object_set_new(all, "waits_for", json_string(p.waits_for)) == 0 &&
        json_object_set_new(all, "root", p.waits ? describe_view(&p.root) : json_null()) == 0 &&
        json_object_set_new(all, "neighbours", describe_edges(of->agent)) == 0 &&
        (!in_folder || json_object_set_new(all, "reload", describe_reload(&p)) == 0))
        text = dump(all);
    json_decref(all);
    return text;
}
