/* leaving.c - an agent that leaves while the others go on, or for want of a quorum, and neighbours
 * that leave; see members.h. */
#include <inttypes.h>
#include <stdio.h>

#include "agent/state.h"

static const double tick_s = 0.1;

bool sl_members_leave(sl_agent *a) {
    sl_cohort *g = &a->cohort;
    sl_error left;
    if (g->membership == NULL)
        return false;
    if (g->wishes || a->phase != PHASE_TRAINING) /* it ends anyway */
        return true;
    if (sl_cohort_is_new(g)) { /* nobody knows it */
        sl_fail_node(&left, SL_ELEFT, a->side.rank, a->side.now.round,
                     "left on request before it had joined");
        sl_agent_end(a, &left);
        return true;
    }
    g->wishes = true;
    sl_members_alarm(a);
    sl_members_step(a, (sl_membership_event){.type = SL_MEMBERSHIP_LEAVE});
    return true;
}

static void tell_left(sl_agent *a, const sl_neighbour *n) {
    sl_log_entry entry = {.kind = SL_LOG_LOST, .round = a->side.now.round, .peer = n->rank};
    snprintf(entry.why, sizeof entry.why, "round %" PRIu64 ": agent %u has left", entry.round,
             n->rank);
    sl_agent_log(a, &entry);
    sl_agent_notice(a, "%s", entry.why);
}

/* Are all others dead, through, or outside like this agent? Nobody answers what it has to ask. */
static bool is_last(const sl_agent *a) {
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (!sl_neighbour_is_dead(n) && !n->process.bye_received && sl_members_expects(a, n) &&
            !sl_membership_is_out(a->cohort.membership, n->rank, 0))
            return false;
    return a->cohort.alarmed;
}

/* A neighbour that has left has sent all that it owes: what it does not send does not come. */
void sl_members_see_off(sl_agent *a, sl_neighbour *n) {
    if (a->cohort.membership == NULL || !n->process.bye_received || a->phase != PHASE_TRAINING)
        return;
    const bool waits = sl_cohort_is_outside(&a->cohort) || sl_cohort_is_aside(&a->cohort);
    sl_members_step(a, (sl_membership_event){.type = SL_MEMBERSHIP_DONE, .peer = n->rank});
    if (sl_cohort_leaves(&a->cohort, n->rank)) {
        if (!n->absence.gone && sl_neighbour_has_left(n)) {
            tell_left(a, n);
            sl_members_note_gone(a, n);
        }
        if (n->absence.gone)
            sl_neighbour_say_bye(n);
        return;
    }
    if (sl_cohort_is_outside(&a->cohort)) /* and has nothing that it still needs */
        sl_neighbour_say_bye(n);
    if (waits && is_last(a))
        sl_members_stay_out(a, "nobody of them trains any more");
}

/* At own times: it was saved as this view began, and has ended by that. */
static bool never_begins(const sl_agent *a, const sl_neighbour *n) {
    return a->node.own != NULL && (int32_t)(a->side.now.view - n->process.view) > 0;
}

void sl_members_lose_left(sl_agent *a) {
    for (sl_neighbour *n = a->neighbours; a->cohort.membership != NULL && n < sl_agent_behind(a);
         n++)
        if (n->process.bye_received && n->near && a->phase == PHASE_TRAINING &&
            a->cohort.cutting == SL_CUTTING_NOTHING &&
            (never_begins(a, n) || sl_machine_awaits(&a->node, n->rank) ||
             (!n->link.agreed && sl_waits_for_taker(a, n)))) {
            sl_members_note_gone(a, n);
            sl_members_alarm(a);
            sl_members_step(a, (sl_membership_event){.type = SL_MEMBERSHIP_LOST, .peer = n->rank});
        }
}

/* A part of the network that has no quorum rests, for a while. Nothing else is late meanwhile. */
static void watch_quorum(sl_agent *a) {
    sl_cohort *g = &a->cohort;
    uint32_t reached, needed;
    if (a->phase != PHASE_TRAINING || g->wishes ||
        !sl_membership_lacks_quorum(g->membership, &reached, &needed)) {
        g->minority_s = 0;
        return;
    }
    if (g->minority_s == 0) {
        g->minority_s = a->side.now_s;
        sl_members_tell_minority(a, reached, needed);
    }
    if (!sl_cohort_rests(g))
        return;
    a->times.progress_s = a->side.now_s;
    if (a->side.now_s - g->minority_s < a->settings.experiment->membership.minority_s)
        return;
    g->leaves = true;
    a->saving.minority = true;
    sl_agent_depart(a, false);
}

void sl_members_tick(sl_agent *a) {
    if (a->cohort.membership == NULL || !a->cohort.alarmed || a->phase == PHASE_OVER ||
        a->side.now_s - a->cohort.ticked_s < tick_s)
        return;
    a->cohort.ticked_s = a->side.now_s;
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        sl_members_see_off(a, n);
    sl_members_step(a, (sl_membership_event){.type = SL_MEMBERSHIP_TICK});
    if (!a->cohort.leaves)
        watch_quorum(a);
}
