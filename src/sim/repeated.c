/* repeated.c - see repeated.h. */
#include "sim/repeated.h"

#include <stdlib.h>
#include <string.h>

#include "async/averager.h"

const sl_act *sl_repeated_next_act(const repeated *r, uint32_t rank) {
    const sl_history *h = &r->s->checkpoints->history[rank];
    if (r->again_of == rank)
        return &r->again;
    return r->done[rank] < h->act_count ? &h->acts[r->done[rank]] : NULL;
}

bool sl_repeated_is_lost(const repeated *r, uint32_t rank) {
    const sl_history *h = &r->s->checkpoints->history[rank];
    const sl_act *next = r->done[rank] < h->act_count ? &h->acts[r->done[rank]] : NULL;
    const bool ends = next == NULL || next->kind == SL_ACT_JOINS || next->kind == SL_ACT_RETURNS;
    return ends && r->s->peers[rank].async != NULL;
}

bool sl_repeated_is_next(const repeated *r, uint32_t rank, sl_act_kind kind, uint32_t asker,
                         uint64_t number) {
    const sl_act *act = sl_repeated_next_act(r, rank);
    return act != NULL && act->kind == kind && act->peer == asker && act->number == number;
}

void sl_repeated_find_rounds(repeated *r) {
    const uint64_t rounds = r->s->task->rounds;
    for (uint32_t i = 0; i < r->s->nodes; i++) {
        const sl_history *h = &r->s->checkpoints->history[i];
        uint16_t *does = r->recorded.does + i * (rounds + 1);
        does[0] = i < sl_topology_nodes(r->s->experiment->topology);
        for (const sl_act *act = h->acts; act < h->acts + h->act_count; act++)
            if (act->kind == SL_ACT_GRADIENT && act->number <= rounds)
                does[act->number]++;
    }
}

/* ---- steps of a node ---- */

int sl_repeated_fail_at(const repeated *r, uint32_t rank, const char *what, sl_error *error) {
    return sl_fail(error, SL_EFILE, "acts-%u.jsonl:%zu: %s", rank, r->done[rank] + 1, what);
}

/* A node has done this: it must be what its log has next, or the next parts of it. One that was
 * killed may have done one thing more. */
static int check(repeated *r, uint32_t rank, const sl_act *act, sl_error *error) {
    const sl_act *next = sl_repeated_next_act(r, rank);
    if (sl_repeated_is_lost(r, rank))
        return 0;
    const bool same =
        next != NULL && next->kind == act->kind && next->peer == act->peer &&
        next->number == act->number && next->from + r->parts[rank] == act->from &&
        act->to <= next->to && next->version_count == act->version_count &&
        (act->version_count == 0 ||
         memcmp(next->versions, act->versions, act->version_count * sizeof *act->versions) == 0);
    if (!same)
        return sl_repeated_fail_at(
            r, rank,
            "the node does something else here: a line before it is missing, or is another run's",
            error);
    r->parts[rank] += act->to - act->from;
    if (act->to == next->to) {
        r->parts[rank] = 0;
        r->done[rank]++;
    }
    return 0;
}

static int step(repeated *r, uint32_t rank, const sl_event *event, sl_error *error) {
    simulator *s = r->s;
    peer *p = &s->peers[rank];
    sl_update update;
    sl_async_expect(p->async, sl_repeated_next_act(r, rank));
    int result = sl_async_step(p->async, event, &update, error);
    for (size_t i = 0; i < update.released_count; i++)
        if (update.released[i] != NULL)
            sl_sim_let_go(s, update.released[i]);
    bool is_told = true; /* one that was killed may not have told of its last round */
    for (size_t i = 0; i < update.act_count && result == 0; i++) {
        is_told =
            is_told && !(update.acts[i].kind == SL_ACT_GRADIENT && sl_repeated_is_lost(r, rank));
        result = check(r, rank, &update.acts[i], error);
    }
    if (result == 0 && update.round_done && is_told)
        result = sl_apart_end_round(s, &r->recorded, rank, &update.finished_round, error);
    r->computes[rank] = r->computes[rank] || update.compute;
    if (update.compute)
        p->pending.round = update.round;
    r->finished += update.finished;
    return result;
}

static int add_letter(repeated *r, uint32_t from, uint32_t to, const sl_async_part *part,
                      message *m, sl_error *error) {
    letter **end = &r->letters[to], *one = malloc(sizeof *one);
    if (one == NULL)
        return sl_fail(error, SL_ENOMEM, "simulator: out of memory for messages");
    while (*end != NULL)
        end = &(*end)->next;
    *one = (letter){.from = from, .view = r->s->peers[from].view, .part = *part, .message = m};
    if (m != NULL) {
        one->part.payload.data = m->data;
        m->readers++;
    }
    *end = one;
    return 0;
}

static int send(repeated *r, uint32_t rank, const sl_async_part *part, const sl_row *to,
                sl_error *error) {
    int result = 0;
    const bool refuses = r->pattern == SL_PATTERN_PAIRS && part->silent;
    if (part->accounts || refuses) /* the log says what came of it */
        return 0;
    message *m = part->silent || to->count == 0 ? NULL : sl_sim_take_message(r->s);
    if (m == NULL && !part->silent && to->count > 0)
        return sl_fail(error, SL_ENOMEM, "simulator: out of memory for messages");
    if (m != NULL)
        memcpy(m->data, part->payload.data, part->payload.bytes);
    for (uint32_t i = 0; i < to->count && result == 0; i++)
        result = add_letter(r, rank, to->peers[i], part, m, error);
    if (m != NULL)
        sl_sim_let_go(r->s, m);
    return result;
}

/* A server's model goes to somebody when it did. */
static bool may_leave(const repeated *r, uint32_t rank, const sl_async_part *part,
                      const sl_row *to) {
    const sl_act *next = sl_repeated_next_act(r, rank);
    const bool serves = r->pattern == SL_PATTERN_COMMITS && part->step != 0;
    return !serves || (next != NULL && next->kind == SL_ACT_SERVE && next->peer == to->peers[0]);
}

int sl_repeated_send_all(repeated *r, uint32_t rank, bool *any, sl_error *error) {
    sl_async *async = r->s->peers[rank].async;
    sl_async_part part;
    sl_row to;
    int result = 0, next = 0;
    sl_async_expect(async, sl_repeated_next_act(r, rank));
    while (result == 0 && (next = sl_async_next(async, &part, &to, error)) > 0 &&
           may_leave(r, rank, &part, &to)) {
        *any = true;
        result = send(r, rank, &part, &to, error);
        if (result == 0)
            result = step(r, rank, &(sl_event){.type = SL_EVENT_SENT}, error);
        sl_async_expect(async, sl_repeated_next_act(r, rank));
    }
    return result == 0 && next < 0 ? next : result;
}

int sl_repeated_deliver(repeated *r, uint32_t rank, const sl_event *event, sl_error *error) {
    const int result = step(r, rank, event, error);
    return result == 0 ? sl_repeated_send_all(r, rank, &(bool){false}, error) : result;
}

int sl_repeated_give_gradient(repeated *r, uint32_t rank, sl_error *error) {
    r->computes[rank] = false;
    sl_apart_gradient(r->s, rank);
    return sl_repeated_deliver(
        r, rank, &(sl_event){.type = SL_EVENT_GRADIENT, .loss = r->s->peers[rank].loss}, error);
}

/* ---- letters ---- */

/* Two parts that begin a view each may call both by one number. NULL: the first of all. */
static bool is_same(const sl_scene_view *a, const sl_scene_view *b) {
    return a == b ||
           (a != NULL && b != NULL && a->view.exchange == b->view.exchange &&
            a->group.count == b->group.count &&
            memcmp(a->group.ranks, b->group.ranks, a->group.count * sizeof *a->group.ranks) == 0);
}

bool sl_repeated_share_view(const repeated *r, uint32_t rank, uint32_t other) {
    return is_same(r->s->peers[rank].view, r->s->peers[other].view);
}

bool sl_repeated_is_of_view(const repeated *r, uint32_t to, const letter *one) {
    return is_same(one->view, r->s->peers[to].view);
}

letter **sl_repeated_find(const repeated *r, uint32_t from, uint32_t to, uint32_t step) {
    letter **at = &r->letters[to];
    while (*at != NULL && ((from != UINT32_MAX && (*at)->from != from) ||
                           (*at)->part.step != step || !sl_repeated_is_of_view(r, to, *at)))
        at = &(*at)->next;
    return *at != NULL ? at : NULL;
}

letter **sl_repeated_find_any(const repeated *r, uint32_t to) {
    letter **at = &r->letters[to];
    while (*at != NULL && !sl_repeated_is_of_view(r, to, *at))
        at = &(*at)->next;
    return *at != NULL ? at : NULL;
}

letter **sl_repeated_find_of(const repeated *r, uint32_t from, uint32_t to, bool asks,
                             uint64_t number) {
    letter **at = &r->letters[to];
    while (*at != NULL &&
           ((*at)->from != from || !sl_repeated_is_of_view(r, to, *at) ||
            (*at)->part.number != number || ((*at)->part.step == SL_AVERAGER_ASK) != asks))
        at = &(*at)->next;
    return *at != NULL ? at : NULL;
}

int sl_repeated_take(repeated *r, letter **at, uint32_t to, sl_error *error) {
    letter *one = *at;
    *at = one->next;
    const sl_event event = sl_apart_received(one->from, &one->part, one->message);
    const bool tells = one->part.tells;
    const uint32_t from = one->from;
    free(one);
    int result = sl_repeated_deliver(r, to, &event, error);
    if (result == 0 && tells)
        result = sl_repeated_deliver(r, from,
                                     &(sl_event){.type = SL_EVENT_ACKNOWLEDGED, .peer = to}, error);
    return result;
}

void sl_repeated_drop(repeated *r, letter **at) {
    letter *one = *at;
    *at = one->next;
    if (one->message != NULL)
        sl_sim_let_go(r->s, one->message);
    free(one);
}

int sl_repeated_turn(repeated *r, uint32_t rank, bool *any, sl_error *error) {
    *any = sl_async_turns(r->s->peers[rank].async);
    return *any ? sl_repeated_deliver(r, rank, &(sl_event){.type = SL_EVENT_TURN}, error) : 0;
}
