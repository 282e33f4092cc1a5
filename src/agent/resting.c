/* resting.c - how the exchange under way comes to its end before the next view: it is cut where it
 * is, or a node at its own times rests once nothing is open; see members.h.
 */
#include "agent/members.h"

#include "agent/state.h"

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
