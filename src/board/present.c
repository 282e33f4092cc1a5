/* present.c - what agents say now: of themselves, and of neighbours that were not asked. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "board/state.h"
#include "starling/text.h"

#define LATELY_S 3.0     /* hearsay that still counts */
#define RATE_EVERY_S 1.0 /* over which bytes become a rate */

static void forget(sl_board_state *s) {
    for (uint32_t i = 0; i < s->node_count; i++) {
        sl_board_node *n = &s->nodes[i];
        json_decref(n->waits_for);
        n->waits_for = NULL;
        n->is_there = n->answers = n->heard = false;
        n->words[0] = '\0';
    }
}

static void take_text(char *out, size_t room, const char *said) {
    sl_text_show(out, room, said != NULL ? said : "", said != NULL ? strlen(said) : 0);
}

static void take_view(sl_board_node *n, const json_t *said, double ago_s) {
    take_text(n->doing, sizeof n->doing, json_string_value(json_object_get(said, "doing")));
    n->now_round = (uint64_t)json_integer_value(json_object_get(said, "round"));
    n->still_s = json_number_value(json_object_get(said, "still_s")) + ago_s;
}

static double number(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Rates, over a second or more. A process that began anew counts anew. */
static void take_rates(sl_board_link *link, const json_t *edge, double now_s) {
    const double bytes = number(edge, "received_bytes"), waited_s = number(edge, "waited_s"),
                 past_s = now_s - link->said_s;
    if (past_s < RATE_EVERY_S)
        return;
    const bool goes_on = bytes >= link->bytes && waited_s >= link->waited_s && past_s > 0;
    link->mb_s = goes_on ? 1e-6 * (bytes - link->bytes) / past_s : NAN;
    link->wait_share = goes_on ? fmin(1, (waited_s - link->waited_s) / past_s) : NAN;
    link->bytes = bytes;
    link->waited_s = waited_s;
    link->said_s = now_s;
}

/* What the agent `to` says of the edge from a neighbour. */
static void take_edge(sl_board_state *s, const json_t *edge, uint32_t to, json_t *waits_for) {
    const json_t *from = json_object_get(edge, "rank");
    const char *protection = json_string_value(json_object_get(edge, "protection"));
    sl_board_link *link = sl_board_link_of(s, (uint32_t)json_integer_value(from), to);
    const bool awaited = json_is_true(json_object_get(edge, "awaited"));
    if (awaited)
        json_array_append_new(waits_for, json_integer(json_integer_value(from)));
    if (link == NULL)
        return;
    link->round_trip_s = number(edge, "round_trip_s");
    take_rates(link, edge, sl_clock_seconds());
    char *copy = protection != NULL ? strdup(protection) : NULL;
    if (copy != NULL) {
        free(link->protection);
        link->protection = copy;
    }
}

/* False: it is no answer of this rank's. */
static bool take_own(sl_board_state *s, uint32_t rank, const json_t *said) {
    const json_t *edges = json_object_get(said, "neighbours");
    sl_board_node *n = &s->nodes[rank];
    if (json_integer_value(json_object_get(said, "rank")) != rank ||
        !json_is_string(json_object_get(said, "doing")))
        return false;
    take_view(n, said, 0);
    take_text(n->words, sizeof n->words, json_string_value(json_object_get(said, "waits_for")));
    n->waits_for = json_array();
    for (size_t i = 0; i < json_array_size(edges); i++)
        take_edge(s, json_array_get(edges, i), rank, n->waits_for);
    return true;
}

/* What a neighbour has told lately; else whether it is connected: it says nothing while it sends
 * what is waited for. */
static void take_neighbour(sl_board_node *n, const json_t *edge) {
    const json_t *said = json_object_get(edge, "said"),
                 *awaited = json_object_get(said, "waits_for");
    const double ago_s = json_number_value(json_object_get(said, "ago_s"));
    n->heard = true;
    n->waits_for = json_array();
    if (json_is_object(said) && ago_s <= LATELY_S) {
        take_view(n, said, ago_s);
        if (json_is_integer(awaited))
            json_array_append_new(n->waits_for, json_integer(json_integer_value(awaited)));
        return;
    }
    const bool connected = json_is_true(json_object_get(edge, "connected"));
    take_text(n->doing, sizeof n->doing, connected ? "is connected" : "is not connected");
    n->still_s = NAN;
}

static void take_hearsay(sl_board_state *s, const json_t *answer) {
    const json_t *edges = json_object_get(answer, "neighbours");
    for (size_t i = 0; i < json_array_size(edges); i++) {
        const json_t *edge = json_array_get(edges, i);
        const json_int_t rank = json_integer_value(json_object_get(edge, "rank"));
        if (rank >= 0 && rank < s->node_count && !s->nodes[rank].is_there && !s->nodes[rank].heard)
            take_neighbour(&s->nodes[rank], edge);
    }
}

int sl_board_ask(sl_board_state *s, const char *folder, const sl_asked_port *ports,
                 size_t port_count, double patience_s, sl_error *error) {
    sl_asked *all = NULL;
    size_t count = 0;
    forget(s);
    if (patience_s <= 0 || s->node_count == 0)
        return 0;
    const int result = sl_ask_folder(&all, &count, folder, ports, port_count, patience_s, error);
    json_t **answers = result == 0 ? calloc(count + 1, sizeof *answers) : NULL;
    for (size_t i = 0; i < count && answers != NULL; i++) {
        answers[i] = all[i].said != NULL ? json_loads(all[i].said, 0, NULL) : NULL;
        if (all[i].rank >= s->node_count || s->nodes[all[i].rank].answers)
            continue;
        s->nodes[all[i].rank].is_there = true;
        s->nodes[all[i].rank].answers = take_own(s, all[i].rank, answers[i]);
    }
    for (size_t i = 0; i < count && answers != NULL; i++) {
        take_hearsay(s, answers[i]);
        json_decref(answers[i]);
    }
    sl_asked_free(all, count);
    if (result == 0 && answers == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for what agents say");
    free(answers);
    return result;
}
