/* document.c - the members of the document that are about now; starling/board.h has all of it. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "board/state.h"
#include "folder/event_text.h"
#include "folder/record_json.h"

static json_t *text_or_null(const char *text) {
    return text != NULL ? json_string(text) : json_null();
}

/* ---- run ---- */

static json_t *notes_json(const sl_board_state *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < s->note_count; i++)
        sl_json_append(&list, json_string(s->notes[i]));
    return list;
}

json_t *sl_board_run_json(const sl_board_state *s) {
    const sl_experiment *e = s->experiment;
    const sl_topology *t = s->topology != NULL ? s->topology : e->topology;
    const uint32_t now = s->member_count > 0 ? s->member_count : sl_topology_nodes(e->topology);
    json_t *run = json_object();
    sl_json_set(&run, "name", json_string(e->name));
    sl_json_set(&run, "algorithm", json_string(e->algorithm.name));
    sl_json_set(&run, "driver", text_or_null(sl_run_fact(&s->run, "driver")));
    sl_json_set(&run, "nodes", json_integer(sl_topology_nodes(e->topology)));
    sl_json_set(&run, "members", json_integer(now));
    sl_json_set(&run, "rounds", json_integer((json_int_t)s->rounds));
    sl_json_set(&run, "started", text_or_null(sl_run_fact(&s->run, "started")));
    sl_json_set(&run, "ended", text_or_null(sl_run_fact(&s->run, "ended")));
    sl_json_set(&run, "outcome", json_string(s->run.outcome));
    sl_json_set(&run, "why", text_or_null(sl_run_fact(&s->run, "why")));
    sl_json_set(&run, "rank", s->run.rank >= 0 ? json_integer(s->run.rank) : json_null());
    sl_json_set(&run, "period",
                json_integer(sl_topology_is_endless(t) ? 0 : sl_topology_period(t)));
    sl_json_set(&run, "rho", sl_number_json(s->rho));
    sl_json_set(&run, "notes", notes_json(s));
    return run;
}

/* ---- nodes ---- */

static bool is_running(const sl_board_state *s) {
    return strcmp(s->run.outcome, "running") == 0;
}

/* Who listens nowhere: it has ended, or is a simulation's, or elsewhere, or was killed. */
static const char *state_of_silent(const sl_board_state *s, const sl_board_node *n) {
    const char *driver = sl_run_fact(&s->run, "driver");
    if (n->ended != NULL)
        return n->ended;
    if (n->lost)
        return "lost";
    if (driver != NULL && strcmp(driver, "sim") == 0)
        return is_running(s) ? "runs" : s->run.outcome;
    if (n->heard)
        return n->doing;
    return n->begun ? "lost" : "unknown";
}

static const char *state_of(const sl_board_state *s, const sl_board_node *n) {
    if (n->is_there)
        return n->answers ? n->doing : "does not answer";
    return state_of_silent(s, n);
}

static json_t *seconds_json(const sl_board_node *n) {
    const sl_sample *last = n->sample_count > 0 ? &n->samples[n->sample_count - 1] : NULL;
    const sl_phases p = last != NULL ? sl_phases_between(NULL, last) : (sl_phases){0};
    return json_pack("{sf sf sf sf sf}", "compute", p.compute, "encode", p.encode, "exchange",
                     p.exchange, "wait", p.wait, "down",
                     sl_down_seconds(n, last != NULL ? last->time_s : 0));
}

static json_t *node_json(const sl_board_state *s, uint32_t rank) {
    const sl_board_node *n = &s->nodes[rank];
    const bool known = n->is_there ? n->answers : n->heard;
    const uint64_t round = known && n->now_round > 0 ? n->now_round : n->round;
    json_t *node = json_pack("{sI ss sI}", "rank", (json_int_t)rank, "state", state_of(s, n),
                             "round", (json_int_t)round);
    sl_json_set(&node, "still_s", known ? sl_number_json(n->still_s) : json_null());
    sl_json_set(&node, "waits_for",
                n->waits_for != NULL ? json_incref(n->waits_for) : json_array());
    sl_json_set(&node, "words", json_string(n->words));
    sl_json_set(&node, "loss", sl_number_json(n->sample_count > 0 ? n->loss : NAN));
    sl_json_set(&node, "accuracy", sl_number_json(n->sample_count > 0 ? n->accuracy : NAN));
    sl_json_set(&node, "sent", sl_number_json(n->bytes_sent));
    sl_json_set(&node, "seconds", seconds_json(n));
    return node;
}

json_t *sl_board_nodes_json(const sl_board_state *s) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->node_count; i++)
        sl_json_append(&list, node_json(s, i));
    return list;
}

/* ---- edges ---- */

json_t *sl_board_edges_json(const sl_board_state *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < s->edge_count; i++) {
        const sl_board_edge *e = &s->edges[i];
        sl_json_append(&list, json_pack("{sI sI sf so}", "from", (json_int_t)e->from, "to",
                                        (json_int_t)e->to, "weight", e->weight, "slots",
                                        e->slots != NULL ? json_incref(e->slots) : json_null()));
    }
    return list;
}

json_t *sl_board_positions_json(const sl_board_state *s) {
    return s->positions != NULL ? json_incref(s->positions) : json_array();
}

static uint64_t round_of(const sl_board_node *n) {
    return n->now_round > n->round ? n->now_round : n->round;
}

static json_t *link_json(const sl_board_state *s, const sl_board_edge *e) {
    const uint32_t at = s->link_at[(size_t)e->to * s->node_room + e->from];
    const sl_board_link *l = at > 0 ? &s->links[at - 1] : NULL;
    const uint64_t from = round_of(&s->nodes[e->from]), to = round_of(&s->nodes[e->to]);
    json_t *link = json_pack("{sI sI}", "from", (json_int_t)e->from, "to", (json_int_t)e->to);
    sl_json_set(&link, "lag",
                from > 0 && to > 0 ? json_integer((json_int_t)to - (json_int_t)from) : json_null());
    sl_json_set(&link, "mb_s", sl_number_json(l != NULL ? l->mb_s : NAN));
    sl_json_set(&link, "round_trip_s", sl_number_json(l != NULL ? l->round_trip_s : NAN));
    sl_json_set(&link, "wait_share", sl_number_json(l != NULL ? l->wait_share : NAN));
    sl_json_set(&link, "protection", text_or_null(l != NULL ? l->protection : NULL));
    sl_json_set(&link, "reconnects",
                l != NULL ? json_integer((json_int_t)l->reconnects) : json_null());
    return link;
}

json_t *sl_board_links_json(const sl_board_state *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < s->edge_count; i++)
        sl_json_append(&list, link_json(s, &s->edges[i]));
    return list;
}

/* ---- events ---- */

static const char *kind_name(sl_log_kind kind) {
    static const char *const names[] = {
#define NAME(name, text, ...) text,
        SL_LOG_KINDS(NAME)
#undef NAME
    };
    return names[kind];
}

json_t *sl_board_events_json(const sl_board_state *s) {
    const double epoch_s = isnan(s->epoch_s) ? s->run.started_s : s->epoch_s;
    json_t *list = json_array();
    for (size_t i = 0; i < s->event_count; i++) {
        const sl_told *told = &s->events[i];
        sl_json_append(
            &list, json_pack("{ss so sI sI so ss}", "event", kind_name(told->kind), "node",
                             told->node == SL_LOG_ALL ? json_null() : json_integer(told->node),
                             "nodes", (json_int_t)told->nodes, "round", (json_int_t)told->round,
                             "time", sl_number_json(told->epoch_s - epoch_s), "text", told->text));
    }
    return list;
}
