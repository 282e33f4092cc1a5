/* place.c - see place.h. */
#include "top/place.h"

#include <string.h>

#include "status/waits.h"

static json_t *describe_node(const view *v) {
    json_t *waits_for = json_array();
    for (size_t i = 0; i < v->awaited_count; i++)
        json_array_append_new(waits_for, json_integer(v->awaited[i]));
    return json_pack("{s:I, s:s, s:I, s:f, s:o}", "rank", (json_int_t)v->rank, "state",
                     v->answers ? v->doing : "does not answer", "round", (json_int_t)v->round,
                     "still_s", v->still_s, "waits_for", waits_for);
}

static json_t *describe_nodes(const views *vs, const json_t *said) {
    const json_t *lost = json_object_get(said, "lost");
    json_t *nodes = json_array();
    for (size_t i = 0; i < vs->count; i++)
        json_array_append_new(nodes, describe_node(&vs->all[i]));
    for (size_t i = 0; i < json_array_size(lost); i++) {
        const json_t *one = json_array_get(lost, i);
        json_array_append_new(nodes, json_pack("{s:I, s:s, s:f}", "rank",
                                               json_integer_value(json_object_get(one, "rank")),
                                               "state", "lost", "still_s",
                                               json_number_value(json_object_get(one, "since_s"))));
    }
    return nodes;
}

/* Of the edges to it; what it does not know is left out. */
static json_t *describe_links(const json_t *said) {
    static const char *const same[] = {"protection", "round_trip_s", "reconnects"};
    const json_t *edges = json_object_get(said, "neighbours");
    json_t *links = json_array();
    for (size_t i = 0; i < json_array_size(edges); i++) {
        const json_t *edge = json_array_get(edges, i);
        json_t *link = json_object();
        json_object_set(link, "from", json_object_get(edge, "rank"));
        json_object_set(link, "to", json_object_get(said, "rank"));
        for (size_t k = 0; k < sizeof same / sizeof *same; k++)
            json_object_set(link, same[k], json_object_get(edge, same[k]));
        json_array_append_new(links, link);
    }
    return links;
}

static json_t *describe(const char *place, const views *vs, const json_t *said) {
    json_t *run = json_pack("{s:s, s:s, s:O?, s:O?, s:s}", "name", place, "algorithm", "one agent",
                            "members", json_object_get(said, "members"), "nodes",
                            json_object_get(said, "nodes"), "outcome", "running");
    return json_pack("{s:o, s:o, s:o}", "run", run, "nodes", describe_nodes(vs, said), "links",
                     describe_links(said));
}

/* NULL: there is no such page, or the error's code says more. */
static json_t *ask(sl_asked **all, size_t *count, const char *place, const char *path,
                   double patience_s, sl_error *error) {
    if (sl_ask_place(all, count, place, path, patience_s, error) != 0)
        return NULL;
    json_t *said =
        *count > 0 && (*all)[0].said != NULL ? json_loads((*all)[0].said, 0, NULL) : NULL;
    if (!json_is_object(said)) {
        json_decref(said);
        sl_fail(error, SL_EPEER, "%s: no agent answers there", place);
        return NULL;
    }
    return said;
}

json_t *place_look(const char *place, double patience_s, sl_error *error) {
    sl_asked *all = NULL;
    size_t count = 0;
    views vs;
    json_t *board = ask(&all, &count, place, "/board", patience_s, error);
    sl_asked_free(all, count);
    all = NULL;
    if (json_is_object(json_object_get(board, "run")) || (board == NULL && error->code != SL_EPEER))
        return board;
    json_decref(board);
    json_t *said = ask(&all, &count, place, "/status", patience_s, error), *document = NULL;
    if (said != NULL && views_open(&vs, all, count, false)) {
        document = describe(place, &vs, said);
        views_close(&vs);
    }
    if (said != NULL && document == NULL)
        sl_fail(error, SL_ENOMEM, "out of memory");
    json_decref(said);
    sl_asked_free(all, count);
    return document;
}
