/* changes.c - other nodes are there after a fault; see clocked.h.
 *
 * A fault's round comes when the first node has ended the one before. Then all rest: at a loss they
 * are cut, else what is open ends, and what is on its way comes. A view begins when that is so; to
 * notice, and to agree, takes no time.
 */
#include "sim/clocked.h"

#include <stdlib.h>

int sl_changes_tell_all(clocked *c, const sl_event *event, sl_error *error) {
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

int sl_changes_begin_own(clocked *c, uint32_t rank, const sl_node_view *view, uint64_t round,
                         sl_error *error) {
    sl_node_view *own = &c->s->peers[rank].own_view;
    *own = *view;
    own->round = round;
    return sl_clocked_deliver(c, rank, &(sl_event){.type = SL_EVENT_VIEW, .view = own}, error);
}

/* ---- faults ---- */

/* A round after the last one does not come: who is away then stays so. */
static void find_next(clocked *c) {
    const uint64_t next = sl_faults_next(&c->s->experiment->faults, c->fault);
    c->fault = next <= c->s->task->rounds ? next : 0;
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
        result =
            sl_changes_tell_all(c, &(sl_event){.type = cuts ? SL_EVENT_CUT : SL_EVENT_REST}, error);
    for (uint32_t i = 0; i < s->nodes && result == 0 && cuts; i++)
        if (!sl_sim_is_there(&s->peers[i]))
            result =
                sl_changes_tell_all(c, &(sl_event){.type = SL_EVENT_PEER_DOWN, .peer = i}, error);
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
    return result == 0 ? sl_changes_begin_own(c, rank, &v->view,
                                              is_new ? c->fault : round_of(c, rank), error)
                       : result;
}

static int begin_view(clocked *c, sl_error *error) {
    simulator *s = c->s;
    const sl_scene_view *v;
    bool any;
    int result = sl_changes_tell_all(c, &(sl_event){.type = SL_EVENT_GATHER}, error);
    if (result == 0)
        result = close_gone(c, true, &any);
    if (result == 0)
        result = sl_sim_next_view(s, c->fault, ++c->view, &v, error);
    if (result == 0)
        sl_sim_tell_members(s, c->fault);
    for (uint32_t k = 0; result == 0 && k < v->group.count; k++)
        result = turn(c, v->group.ranks[k], v, error);
    find_next(c);
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

int sl_changes_open(clocked *c, sl_error *error) {
    const simulator *s = c->s;
    c->view = 1;
    find_next(c);
    if (c->fault == 0)
        return 0;
    c->recorded.first = malloc(s->nodes * sizeof *c->recorded.first);
    for (uint32_t i = 0; c->recorded.first != NULL && i < s->nodes; i++)
        c->recorded.first[i] = sl_sim_is_there(&s->peers[i]) ? 0 : UINT64_MAX;
    return c->recorded.first != NULL
               ? 0
               : sl_fail(error, SL_ENOMEM, "simulator: out of memory for %u nodes", s->nodes);
}
