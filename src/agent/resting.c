/* resting.c - how the exchange under way comes to its end before the next view: it is cut where it
 * is, or a node at its own times rests once nothing is open; see members.h.
 */
#include "agent/members.h"

#include "agent/state.h"

/* ---- cuts ---- */

void sl_cutting_begin(sl_agent *a) {
    if (a->cohort.cutting == SL_CUTTING_NOTHING)
        a->cohort.cutting = SL_CUTTING_WAITS;
    sl_cutting_go_on(a);
}

/* From where on a replay cuts it, too. */
static void log_cut(sl_agent *a) {
    sl_reach at;
    if (a->node.own != NULL) /* its acts say it */
        return;
    sl_node_reach(a->node.rounds, &at);
    sl_agent_log(a, &(sl_log_entry){.kind = SL_LOG_CUT,
                                    .round = a->side.now.round,
                                    .exchange = at.exchange,
                                    .step = at.step,
                                    .part = at.part});
}

void sl_cutting_go_on(sl_agent *a) {
    if (a->cohort.cutting != SL_CUTTING_WAITS || !sl_agent_recall(a))
        return;
    a->cohort.cutting = SL_CUTTING_DONE;
    a->outbox.recalled = false;
    a->tells.node.neighbour = NULL;
    log_cut(a);
    sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_CUT});
    if (a->node.own == NULL)
        return;
    a->cohort.rest = a->cohort.rest == SL_NODE_RUNS ? SL_NODE_COMES_TO_REST : a->cohort.rest;
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (n->absence.gone)
            sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_PEER_DOWN, .peer = n->rank});
}

void sl_members_note_gone(sl_agent *a, sl_neighbour *n) {
    n->absence.gone = true;
    n->absence.sought_s = 0;
    if (a->node.own != NULL && a->cohort.cutting == SL_CUTTING_DONE)
        sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_PEER_DOWN, .peer = n->rank});
}

/* A node at its own times has no rounds between which members agree: it rests when they want to. */
void sl_members_rest_if_wanted(sl_agent *a) {
    const sl_membership *m = a->cohort.membership;
    const bool trains = a->averaging.stage <= SL_AVERAGING_GATHERS && a->phase == PHASE_TRAINING;
    if (a->node.own == NULL || !trains || a->cohort.rest != SL_NODE_RUNS ||
        !(sl_async_rests_late(a->node.own) ? sl_membership_turns(m) : sl_membership_holds(m)))
        return;
    a->cohort.rest = SL_NODE_COMES_TO_REST;
    sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_REST});
}

/* ---- at rest ---- */

/* Has it begun a later view than this agent? */
static bool is_ahead(const sl_agent *a, const sl_neighbour *n) {
    return (int32_t)(n->process.view - a->side.now.view) > 0;
}

/* A connection that was down may keep an ask until its receiver is in the next view, and drops it
 * as one of the view before: nothing comes of it. The ask is the node's memory until it has left.
 */
static void end_what_is_too_late(sl_agent *a) {
    if (a->cohort.rest != SL_NODE_COMES_TO_REST || sl_async_rests(a->node.own))
        return;
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (is_ahead(a, n) && sl_neighbour_has_left(n)) {
            sl_stream_void(&n->stream, 1u << SL_FRAME_DATA | 1u << SL_FRAME_DIRECT);
            sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_PEER_DOWN, .peer = n->rank});
        }
}

bool sl_members_go_on(sl_agent *a) {
    end_what_is_too_late(a);
    if (a->cohort.rest == SL_NODE_COMES_TO_REST && sl_async_rests(a->node.own) &&
        a->cohort.cutting != SL_CUTTING_WAITS)
        a->cohort.rest = SL_NODE_HAS_ENDED;
    if (a->cohort.rest != SL_NODE_HAS_ENDED || a->phase == PHASE_OVER ||
        (a->cohort.leaves && sl_agent_computes_apart(a)))
        return false;
    a->cohort.rest = SL_NODE_RESTS;
    if (a->cohort.leaves)
        sl_agent_depart(a, false);
    else
        sl_members_step(a, (sl_membership_event){.type = SL_MEMBERSHIP_READY});
    return true;
}

bool sl_members_is_behind(const sl_agent *a) {
    bool any = false;
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        any = any || is_ahead(a, n);
    return any && sl_members_turn(a);
}
