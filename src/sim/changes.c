/* changes.c - what becomes of nodes at their own times: others are there after a fault, and all are
 * cut where their tasks want to save them; see clocked.h.
 *
 * A fault's round comes when the first node has ended the one before. Then all rest: at a loss they
 * are cut, else what is open ends, and what is on its way comes. A view begins when that is so; to
 * notice, and to agree, takes no time.
 *
 * Where all tasks wait for a cut, what is on its way comes, and a view of the same nodes begins.
 * All gradients are over then: whoever goes on from there ends them at once, too.
 */
#include "sim/clocked.h"

#include <stdlib.h>

static int tell_all(clocked *c, const sl_event *event, sl_error *error) {
    int result = 0;
    for (uint32_t i = 0; i < c->s->nodes && result == 0; i++)
        if (sl_sim_is_there(&c->s->peers[i]))
            result = sl_clocked_deliver(c, i, event, error);
    return result;
}

/* Is anything to happen but records and a change that waits? */
bool sl_changes_await(const clocked *c) {
    bool any = false;
    for (size_t i = 0; i < c->heap.count && !any; i++)
        any = c->bodies[c->heap.entries[i].body].kind < CHANGE;
    return any;
}

static uint64_t round_of(const clocked *c, uint32_t rank) {
    return sl_async_round(c->s->peers[rank].async);
}

/* Of this view, from a round of its own on. */
static int begin_own(clocked *c, uint32_t rank, const sl_node_view *view, uint64_t round,
                     sl_error *error) {
    sl_node_view *own = &c->s->peers[rank].own_view;
    *own = *view;
    own->round = round;
    return sl_clocked_deliver(c, rank, &(sl_event){.type = SL_EVENT_VIEW, .view = own}, error);
}

/* ---- faults ---- */

int sl_changes_round(clocked *c, uint64_t round, sl_error *error) {
    if (c->changes || c->fault == 0 || round + 1 < c->fault)
        return 0;
    c->changes = true;
    return sl_clocked_add(c, c->now, &(body){.kind = CHANGE}, error);
}

static bool is_message(const body *b) {
    return b->kind <= ACKNOWLEDGED;
}

static bool is_any_on_its_way(const clocked *c) {
    for (size_t i = 0; i < c->heap.count; i++)
        if (is_message(&c->bodies[c->heap.entries[i].body]))
            return true;
    return false;
}

/* Nothing comes of what is on its way, and of what nodes that are gone would have done. */
static void forget(clocked *c) {
    for (size_t i = 0; i < c->heap.count; i++) {
        body *b = &c->bodies[c->heap.entries[i].body];
        const bool of_node = b->kind == GRADIENT || b->kind == TURN;
        if (is_message(b) && b->message != NULL)
            sl_sim_let_go(c->s, b->message);
        if (is_message(b) || (of_node && !sl_sim_is_there(&c->s->peers[b->rank])))
            b->kind = NOTHING;
    }
}

static int close_gone(clocked *c, bool leavers, bool *any) {
    simulator *s = c->s;
    *any = sl_sim_close_gone(s, c->fault, leavers) > 0;
    if (!*any)
        return 0;
    forget(c);
    for (uint32_t i = 0; i < s->nodes; i++)
        if (!sl_sim_is_there(&s->peers[i]))
            sl_recorded_let(&c->recorded, i, UINT64_MAX);
    sl_sim_tell_members(s, c->fault);
    return sl_recorded_flush(&c->recorded);
}

/* Others are to be there. Who leaves takes part until the view. */
static int begin_to_rest(clocked *c, sl_error *error) {
    simulator *s = c->s;
    bool cuts;
    sl_cast_play(&s->scene.cast, &s->experiment->faults, c->fault);
    c->rests = true;
    int result = close_gone(c, false, &cuts);
    if (result == 0)
        result = tell_all(c, &(sl_event){.type = cuts ? SL_EVENT_CUT : SL_EVENT_REST}, error);
    for (uint32_t i = 0; i < s->nodes && result == 0 && cuts; i++)
        if (!sl_sim_is_there(&s->peers[i]))
            result = tell_all(c, &(sl_event){.type = SL_EVENT_PEER_DOWN, .peer = i}, error);
    return result;
}

static bool do_all_rest(const clocked *c) {
    for (uint32_t i = 0; i < c->s->nodes; i++)
        if (sl_sim_is_there(&c->s->peers[i]) && !sl_async_rests(c->s->peers[i].async))
            return false;
    return !is_any_on_its_way(c);
}

/* A newcomer begins with the fault's round, whatever round its sponsor is in. */
static int turn(clocked *c, uint32_t rank, const sl_scene_view *v, sl_error *error) {
    peer *p = &c->s->peers[rank];
    const bool is_new = round_of(c, rank) == 0;
    if (is_new) {
        sl_recorded_let(&c->recorded, rank, c->fault);
        p->pending.finished_round.round = c->fault - 1;
    }
    const int result = sl_sim_enter(c->s, rank, v, error);
    return result == 0 ? begin_own(c, rank, &v->view, is_new ? c->fault : round_of(c, rank), error)
                       : result;
}

static int begin_view(clocked *c, sl_error *error) {
    simulator *s = c->s;
    const sl_scene_view *v;
    bool any;
    int result = tell_all(c, &(sl_event){.type = SL_EVENT_GATHER}, error);
    if (result == 0)
        result = close_gone(c, true, &any);
    if (result == 0)
        result = sl_sim_next_view(s, c->fault, ++c->view, &v, error);
    if (result == 0)
        sl_sim_tell_members(s, c->fault);
    for (uint32_t k = 0; result == 0 && k < v->group.count; k++)
        result = turn(c, v->group.ranks[k], v, error);
    c->fault = sl_faults_next(&s->experiment->faults, c->fault);
    c->changes = c->rests = false;
    return result;
}

/* Looks again after the next instant. */
int sl_changes_go_on(clocked *c, sl_error *error) {
    const int result = c->rests ? 0 : begin_to_rest(c, error);
    if (result != 0 || do_all_rest(c))
        return result != 0 ? result : begin_view(c, error);
    return sl_changes_await(c)
               ? sl_clocked_add(c, c->heap.entries[0].at, &(body){.kind = CHANGE}, error)
               : 0;
}

/* ---- cuts ---- */

bool sl_cuts_wanted(const clocked *c) {
    const sl_checkpoints *k = c->s->checkpoints;
    return k != NULL && k->wants_cut != NULL && k->wants_cut(k->context);
}

/* What is on its way comes; of records only the next one is left. */
static int come_to_rest(clocked *c, sl_error *error) {
    int result = tell_all(c, &(sl_event){.type = SL_EVENT_REST}, error);
    while (result == 0 && c->heap.count > (size_t)(c->record_every > 0))
        result = sl_clocked_take_event(c, error);
    for (uint32_t i = 0; i < c->s->nodes && result == 0; i++)
        if (!sl_async_rests(c->s->peers[i].async))
            result = sl_fail(error, SL_EPROTO, "node %u does not come to rest for a cut", i);
    return result == 0 ? tell_all(c, &(sl_event){.type = SL_EVENT_GATHER}, error) : result;
}

static int begin_again(clocked *c, sl_error *error) {
    const simulator *s = c->s;
    const sl_node_view view = {.exchange = c->view,
                               .members = {c->everybody, s->nodes},
                               .topology = s->experiment->topology,
                               .plan = &s->plan};
    int result = 0;
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        result = begin_own(c, i, &view, round_of(c, i), error);
    return result;
}

/* The first round that no node has ended. */
static uint64_t latest_round(const clocked *c) {
    uint64_t latest = 1;
    for (uint32_t i = 0; i < c->s->nodes; i++)
        latest = round_of(c, i) > latest ? round_of(c, i) : latest;
    return latest;
}

int sl_cuts_make(clocked *c, sl_error *error) {
    const sl_checkpoints *k = c->s->checkpoints;
    sl_checkpoint_view view = {.number = ++c->view};
    int result = come_to_rest(c, error);
    if (result != 0)
        return result;
    for (uint32_t i = 0; i < c->s->nodes; i++)
        view.members[i / 64] |= UINT64_C(1) << i % 64;
    c->cut = latest_round(c) > c->cut ? latest_round(c) : c->cut + 1;
    k->cut(k->context, c->cut, &view);
    result = begin_again(c, error);
    return result == 0 ? sl_clocked_wake(c, error) : result;
}

int sl_cuts_go_on(clocked *c, sl_error *error) {
    c->goes_on = true;
    c->cut = c->s->resumed;
    c->view = c->s->checkpoints->view->number;
    c->recorded.from = latest_round(c);
    int result = tell_all(c, &(sl_event){.type = SL_EVENT_START}, error);
    if (result == 0)
        result = begin_again(c, error);
    c->goes_on = false;
    return result;
}

/* ---- memory ---- */

int sl_changes_open(clocked *c, sl_error *error) {
    const simulator *s = c->s;
    c->view = 1;
    c->fault = sl_faults_next(&s->experiment->faults, 0);
    c->everybody = calloc(s->nodes, sizeof *c->everybody);
    c->recorded.first = c->fault > 0 ? malloc(s->nodes * sizeof *c->recorded.first) : NULL;
    if (c->everybody == NULL || (c->fault > 0 && c->recorded.first == NULL))
        return sl_fail(error, SL_ENOMEM, "simulator: out of memory for %u nodes", s->nodes);
    for (uint32_t i = 0; i < s->nodes; i++) {
        c->everybody[i] = i;
        if (c->fault > 0)
            c->recorded.first[i] = sl_sim_is_there(&s->peers[i]) ? 0 : UINT64_MAX;
    }
    return 0;
}

void sl_changes_close(clocked *c) {
    free(c->everybody);
}
