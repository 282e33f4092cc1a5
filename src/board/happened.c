/* happened.c - lines of the logs of events, of all nodes in the order of time: who is lost or down,
 * who takes part, and what is told. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "board/state.h"
#include "folder/event_text.h"

enum { EVENTS_MAX = 600, EVENTS_LEFT = 500, LIKE_MAX = 128, TEXT_MAX = SL_ERROR_TEXT_MAX + 64 };

/* ---- kept until all files are read ---- */

int sl_board_keep_event(sl_board_state *s, const char *line, size_t bytes, sl_error *error) {
    sl_fresh fresh = {.number = s->fresh_count};
    json_t *object = json_loadb(line, bytes, 0, NULL);
    fresh.epoch_s = json_number_value(json_object_get(object, "time"));
    json_decref(object);
    const int result = sl_event_text_read(&fresh.entry, line, bytes, error);
    if (result != 0)
        return result;
    if (!sl_board_grow((void **)&s->fresh, &s->fresh_room, s->fresh_count, sizeof *s->fresh)) {
        sl_event_text_free(&fresh.entry);
        return sl_fail(error, SL_ENOMEM, "out of memory for the run's events");
    }
    s->fresh[s->fresh_count++] = fresh;
    return 0;
}

void sl_board_forget_fresh(sl_board_state *s) {
    for (size_t i = 0; i < s->fresh_count; i++)
        sl_event_text_free(&s->fresh[i].entry);
    s->fresh_count = 0;
}

/* ---- what a node's time is ---- */

/* It goes on where the last kept line was. */
static void resume_clock(sl_board_node *n, double epoch_s, uint64_t round) {
    double then_s = 0;
    for (size_t i = 0; i < n->sample_count && n->samples[i].round <= round; i++)
        then_s = n->samples[i].time_s;
    n->epoch_s = epoch_s - then_s;
    n->is_clock_guessed = false;
}

void sl_board_set_clock(sl_board_state *s, uint32_t rank) {
    sl_board_node *n = &s->nodes[rank];
    if (!n->is_clock_guessed || n->sample_count == 0)
        return;
    n->epoch_s -= fmax(0, n->samples[0].time_s - n->samples[0].total);
    n->is_clock_guessed = false;
    if (s->first == rank)
        s->epoch_s = n->epoch_s;
}

static void begin_clock(sl_board_state *s, uint32_t rank, double epoch_s) {
    s->nodes[rank].epoch_s = epoch_s;
    s->nodes[rank].is_clock_guessed = true;
    if (isnan(s->epoch_s)) {
        s->first = rank;
        s->epoch_s = epoch_s;
    }
    sl_board_set_clock(s, rank);
}

/* ---- down ---- */

static sl_down *open_down(const sl_board_node *n) {
    return n->down_count > 0 && isnan(n->downs[n->down_count - 1].until_s)
               ? &n->downs[n->down_count - 1]
               : NULL;
}

static bool go_down(sl_board_node *n, double epoch_s) {
    if (open_down(n) != NULL)
        return true;
    sl_down *more = realloc(n->downs, (n->down_count + 1) * sizeof *more);
    if (more == NULL)
        return false;
    n->downs = more;
    more[n->down_count++] = (sl_down){epoch_s, NAN};
    return true;
}

static void come_up(sl_board_node *n, double epoch_s) {
    sl_down *down = open_down(n);
    if (down != NULL)
        down->until_s = fmax(down->from_s, epoch_s);
}

double sl_down_seconds(const sl_board_node *n, double until_s) {
    const double last_s = n->epoch_s + until_s;
    double sum = 0;
    for (size_t i = 0; i < n->down_count && !isnan(n->epoch_s); i++)
        sum += fmax(0, fmin(last_s, isnan(n->downs[i].until_s) ? last_s : n->downs[i].until_s) -
                           n->downs[i].from_s);
    return sum;
}

/* ---- what follows from an event ---- */

static const char *ending(sl_log_outcome outcome) {
    switch (outcome) {
    case SL_LOG_DONE:
        return "done";
    case SL_LOG_SAVED:
        return "saved";
    case SL_LOG_STOPPED:
        return "stopped";
    case SL_LOG_FAILED:
        return "failed";
    case SL_LOG_LEFT:
        break;
    }
    return "left";
}

/* The run's clock stood while it was away: what was before is on another one. */
static void resume(sl_board_state *s, uint32_t rank, double epoch_s, uint64_t round) {
    resume_clock(&s->nodes[rank], epoch_s, round);
    s->nodes[rank].down_count = 0;
    for (uint32_t i = 0; i < s->node_count; i++) {
        sl_board_node *other = &s->nodes[i];
        if (!other->lost)
            continue;
        other->epoch_s = s->nodes[rank].epoch_s;
        other->is_clock_guessed = false;
        other->down_count = open_down(other) != NULL;
        if (other->down_count > 0)
            other->downs[0] = (sl_down){epoch_s, NAN};
    }
}

/* Of one that was lost, the next view says when it is back. */
static void begin(sl_board_state *s, uint32_t rank, const sl_log_entry *e, double epoch_s) {
    sl_board_node *n = &s->nodes[rank];
    if (isnan(n->epoch_s))
        begin_clock(s, rank, epoch_s);
    if (e->kind == SL_LOG_RESUME)
        resume(s, rank, epoch_s, e->round);
    if (!n->lost)
        come_up(n, epoch_s);
    n->begun = true;
    n->ended = NULL;
}

static bool end(sl_board_node *n, const sl_log_entry *e, double epoch_s) {
    n->ended = ending(e->outcome);
    n->round = e->round;
    return e->outcome == SL_LOG_DONE || go_down(n, epoch_s);
}

static bool lose(sl_board_state *s, const sl_log_entry *e, double epoch_s) {
    if (e->peer >= s->node_count)
        return true;
    sl_board_node *n = &s->nodes[e->peer];
    n->lost = true;
    if (isnan(n->epoch_s) && e->rank < s->node_count)
        n->epoch_s = s->nodes[e->rank].epoch_s;
    return go_down(n, epoch_s);
}

static bool is_members(const sl_board_state *s, const sl_log_entry *e) {
    return s->members != NULL && e->members == s->member_count &&
           memcmp(e->ranks, s->members, s->member_count * sizeof *s->members) == 0;
}

/* All members say the same. */
static int take_view(sl_board_state *s, const sl_log_entry *e, double epoch_s, sl_error *error) {
    const int result =
        is_members(s, e) ? 0 : sl_board_members(s, e->ranks, (uint32_t)e->members, error);
    for (uint64_t i = 0; i < e->members; i++) {
        if (e->ranks[i] >= s->node_count)
            continue;
        sl_board_node *n = &s->nodes[e->ranks[i]];
        n->lost = false;
        come_up(n, epoch_s);
    }
    return result;
}

static bool take_link(sl_board_state *s, const sl_log_entry *e) {
    sl_board_link *link = sl_board_link_of(s, e->peer, e->rank);
    if (link == NULL)
        return true;
    link->reconnects += e->kind == SL_LOG_UP;
    if (e->kind != SL_LOG_EDGE)
        return true;
    free(link->protection);
    link->protection = strdup(e->why);
    return link->protection != NULL;
}

/* ---- what is told ---- */

static void describe_request(char text[TEXT_MAX], const sl_log_entry *e) {
    snprintf(text, TEXT_MAX, "a checkpoint of round %" PRIu64 " was asked for%s", e->round,
             e->then == SL_LOG_LEAVE ? ", and to end after it" : "");
}

/* In the words of the agents' own messages where they have some; empty: nothing. */
static void describe(char text[TEXT_MAX], const sl_log_entry *e) {
    text[0] = '\0';
    switch (e->kind) {
    case SL_LOG_START:
        if (e->round > 0)
            snprintf(text, TEXT_MAX, "training begins with round %" PRIu64 " of %" PRIu64, e->round,
                     e->rounds);
        return;
    case SL_LOG_RESUME:
        snprintf(text, TEXT_MAX, "goes on from the checkpoint of round %" PRIu64, e->round);
        return;
    case SL_LOG_DOWN:
        snprintf(text, TEXT_MAX, "the connection to agent %u broke: %s", e->peer, e->why);
        return;
    case SL_LOG_UP:
        snprintf(text, TEXT_MAX, "the connection to agent %u is back after %.2f s", e->peer,
                 e->seconds);
        return;
    case SL_LOG_REQUEST:
        describe_request(text, e);
        return;
    case SL_LOG_CHECKPOINT:
        if (e->why[0] == '\0')
            snprintf(text, TEXT_MAX, "the checkpoint of round %" PRIu64 " is written", e->round);
        else
            snprintf(text, TEXT_MAX, "no checkpoint of round %" PRIu64 ": %s", e->round, e->why);
        return;
    case SL_LOG_LOST:
    case SL_LOG_VIEW:
        snprintf(text, TEXT_MAX, "%s", e->why);
        return;
    case SL_LOG_JOIN:
        snprintf(text, TEXT_MAX, "asks to take part, with agent %u's model after round %" PRIu64,
                 e->peer, e->after);
        return;
    case SL_LOG_END:
        snprintf(text, TEXT_MAX, "%s", e->why[0] != '\0' ? e->why : "all rounds are done");
        return;
    case SL_LOG_SETTINGS:
    case SL_LOG_EDGE:
    case SL_LOG_CUT:
    case SL_LOG_COMMIT:
        return;
    }
}

static bool is_same(const sl_told *told, const sl_log_entry *e, const char *text) {
    return told->kind == e->kind && told->round == e->round && strcmp(told->text, text) == 0;
}

static void drop_oldest(sl_board_state *s) {
    const size_t dropped = s->event_count - EVENTS_LEFT;
    for (size_t i = 0; i < dropped; i++)
        free(s->events[i].text);
    s->event_count = EVENTS_LEFT;
    memmove(s->events, s->events + dropped, EVENTS_LEFT * sizeof *s->events);
}

static bool tell(sl_board_state *s, const sl_log_entry *e, double epoch_s) {
    char text[TEXT_MAX];
    describe(text, e);
    if (text[0] == '\0')
        return true;
    for (size_t back = 1; back <= s->event_count && back <= LIKE_MAX; back++)
        if (is_same(&s->events[s->event_count - back], e, text)) {
            s->events[s->event_count - back].nodes++;
            return true;
        }
    if (s->events == NULL)
        s->events = malloc(EVENTS_MAX * sizeof *s->events);
    if (s->event_count == EVENTS_MAX)
        drop_oldest(s);
    char *copy = s->events != NULL ? strdup(text) : NULL;
    if (copy != NULL)
        s->events[s->event_count++] = (sl_told){.kind = e->kind,
                                                .node = e->rank,
                                                .nodes = 1,
                                                .round = e->round,
                                                .epoch_s = epoch_s,
                                                .text = copy};
    return copy != NULL;
}

/* ---- in the order of time ---- */

/* Of one node, or of all of a simulation. */
static bool take_course(sl_board_state *s, const sl_log_entry *e, double epoch_s) {
    const bool is_all = e->rank == SL_LOG_ALL;
    bool room = true;
    for (uint32_t i = is_all ? 0 : e->rank; i < s->node_count && (is_all || i == e->rank); i++)
        if (e->kind != SL_LOG_END)
            begin(s, i, e, epoch_s);
        else if (!is_all || !s->nodes[i].lost)
            room = room && end(&s->nodes[i], e, epoch_s);
    return room;
}

static int take_one(sl_board_state *s, const sl_log_entry *e, double epoch_s, sl_error *error) {
    bool room = tell(s, e, epoch_s);
    int result = 0;
    if (e->kind == SL_LOG_START && e->rounds > 0)
        s->rounds = e->rounds;
    if (e->kind == SL_LOG_START || e->kind == SL_LOG_RESUME || e->kind == SL_LOG_END)
        room = room && take_course(s, e, epoch_s);
    else if (e->kind == SL_LOG_LOST)
        room = room && lose(s, e, epoch_s);
    else if (e->kind == SL_LOG_UP || e->kind == SL_LOG_EDGE)
        room = room && take_link(s, e);
    else if (e->kind == SL_LOG_VIEW)
        result = take_view(s, e, epoch_s, error);
    return room ? result : sl_fail(error, SL_ENOMEM, "out of memory for the run's events");
}

static int by_time(const void *a, const void *b) {
    const sl_fresh *one = a, *two = b;
    const int order = (one->epoch_s > two->epoch_s) - (one->epoch_s < two->epoch_s);
    return order != 0 ? order : (one->number > two->number) - (one->number < two->number);
}

int sl_board_take_fresh(sl_board_state *s, sl_error *error) {
    int result = 0;
    if (s->fresh_count > 0)
        qsort(s->fresh, s->fresh_count, sizeof *s->fresh, by_time);
    for (size_t i = 0; i < s->fresh_count && result == 0; i++)
        result = take_one(s, &s->fresh[i].entry, s->fresh[i].epoch_s, error);
    sl_board_forget_fresh(s);
    return result;
}
