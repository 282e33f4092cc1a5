/* rejoin.c - how an agent comes back that the others have gone on without: whose model it asks
 * for, and when it asks to join; see members.h. */
#include <inttypes.h>
#include <stdio.h>

#include "agent/state.h"

static bool is_reached(const sl_neighbour *n) {
    return n != NULL && n->link.agreed && !n->absence.gone;
}

/* An agent that is out as well has no model that holds; one that has said BYE gives none. */
static bool can_sponsor(const sl_agent *a, const sl_neighbour *n) {
    return is_reached(n) && !n->process.bye_received &&
           !sl_membership_is_out(a->cohort.membership, n->rank, 0);
}

/* Has it begun a view without this agent? A rank beyond the first topology is in none. */
static bool is_without(const sl_agent *a, const sl_neighbour *n) {
    return n->process.view > 1 ||
           a->side.rank >= sl_topology_nodes(a->settings.experiment->topology);
}

/* The agents that it reaches and that go on without it: of a run that it joins it knows no more. */
static sl_view find_others(sl_agent *a, sl_member *members) {
    const sl_view *known = sl_membership_others(a->cohort.membership);
    sl_view others = {.members = members};
    if (known->count > 0)
        return *known;
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (can_sponsor(a, n) && is_without(a, n))
            members[others.count++].rank = n->rank;
    return others;
}

/* Its lowest neighbour in a view with the others and itself; NULL: it is not reached. */
static sl_neighbour *find_neighbour(sl_agent *a, const sl_view *others) {
    sl_member *members = a->cohort.room + a->side.ranks + 1; /* behind the others' */
    sl_grouping grouping = {0};
    sl_neighbour *found = NULL;
    const uint32_t *peers;
    uint32_t count = 0;
    for (uint32_t i = 0; i < others->count; i++) {
        if (count == i && others->members[i].rank > a->side.rank)
            members[count++].rank = a->side.rank;
        members[count++].rank = others->members[i].rank;
    }
    if (count == others->count)
        members[count++].rank = a->side.rank;
    const sl_view with = {.members = members, .count = count};
    if (sl_members_regroup(a, &with, &grouping, NULL) == 0 &&
        sl_topology_peers(grouping.topology, a->side.rank, &peers) > 0)
        found = sl_agent_neighbour(a, peers[0]);
    sl_grouping_close(&grouping);
    return can_sponsor(a, found) ? found : NULL;
}

/* Is each of the roster connected, or dead? */
static bool has_found_all(const sl_agent *a) {
    bool all = true;
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (sl_neighbour_has_address(n))
            all = all && (is_reached(n) || sl_neighbour_is_dead(n));
    return all;
}

/* Any agent that is reached, if its neighbour is not, once all have connected or had time to. */
static sl_neighbour *find_sponsor(sl_agent *a) {
    const sl_view others = find_others(a, a->cohort.room);
    const bool waits = a->side.now_s - a->cohort.outside_s < SL_ANSWER_S && !has_found_all(a);
    sl_neighbour *n = waits && sl_cohort_is_new(&a->cohort) ? NULL : find_neighbour(a, &others);
    for (uint32_t i = 0; n == NULL && !waits && i < others.count; i++) {
        sl_neighbour *other = sl_agent_neighbour(a, others.members[i].rank);
        n = can_sponsor(a, other) ? other : NULL;
    }
    return n;
}

/* An agent that is only silent may wake up. */
static bool are_all_dead(const sl_agent *a) {
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (!sl_neighbour_is_dead(n) && sl_members_expects(a, n))
            return false;
    return true;
}

/* It has the sponsor's model. */
static void ask_to_join(sl_agent *a) {
    const sl_state_transfer *f = &a->cohort.transfer;
    const uint32_t sponsor = f->sponsor->rank;
    const sl_log_entry entry = {
        .kind = SL_LOG_JOIN, .round = a->cohort.rested.round, .peer = sponsor, .after = f->round};
    sl_agent_log(a, &entry);
    sl_agent_act(a, &(sl_act){.kind = sl_cohort_is_new(&a->cohort) ? SL_ACT_JOINS : SL_ACT_RETURNS,
                              .peer = sponsor,
                              .number = f->number});
    a->cohort.transfer.sponsor = NULL;
    sl_members_step(a, (sl_membership_event){.type = SL_MEMBERSHIP_JOIN, .peer = sponsor});
}

static bool may_step_aside(const sl_agent *a) {
    const sl_cohort *g = &a->cohort;
    return g->membership != NULL && !g->leaves && !g->wishes && !a->settings.meets &&
           a->side.now.round < a->settings.task.rounds;
}

/* The worker has nothing to do. */
static void tell_aside(sl_agent *a, const char *why) {
    a->cohort.told_aside = a->cohort.tells_aside = true;
    sl_worker_give(a->worker, &(sl_job){.aside = why, .compute_round = a->side.now.round});
}

bool sl_returning_step_aside(sl_agent *a) {
    sl_cohort *g = &a->cohort;
    if (g->refused.code == 0 || a->phase != PHASE_TRAINING || sl_worker_busy(a->worker))
        return false;
    const sl_error why = g->refused;
    g->refused.code = 0;
    const bool third = may_step_aside(a) && sl_setbacks_add(&g->setbacks, a->side.now.round);
    if (third)
        sl_agent_notice(a, "round %" PRIu64 ": the third time in 100 rounds", a->side.now.round);
    if (third || !may_step_aside(a)) {
        sl_agent_fail(a, &why, why.text);
        return true;
    }
    sl_agent_notice(a,
                    "round %" PRIu64
                    ": loss, gradient or model is not finite; this agent begins anew "
                    "with a neighbour's model",
                    a->side.now.round);
    tell_aside(a, "its loss, gradient or model is not finite");
    sl_members_step_aside(a);
    return true;
}

bool sl_returning_knocks(const sl_agent *a) {
    return sl_cohort_is_outside(&a->cohort) && sl_cohort_is_new(&a->cohort) &&
           a->cohort.transfer.sponsor == NULL && !sl_state_transfer_is_whole(a);
}

static void check_patience(sl_agent *a) {
    char why[128];
    snprintf(why, sizeof why,
             "none let it in within %g s (transport.connect_timeout_s): do they train, and has the "
             "process of its rank ended?",
             a->side.limits.connect_timeout_s);
    if (a->side.now_s > a->times.deadline_s)
        sl_members_stay_out(a, why);
}

/* A node that has stepped aside may have parts to encode, and nobody to send them to. */
static bool is_at_rest(const sl_agent *a) {
    return !a->cohort.tells_aside && a->cohort.cutting != SL_CUTTING_WAITS &&
           (!sl_cohort_is_aside(&a->cohort) || a->node.own != NULL ||
            sl_node_rests(a->node.rounds));
}

/* Do all that it reaches say that another process has its rank, in a view after its own? In a part
 * of the network of which it is a member, somebody does not. */
static bool is_followed(const sl_agent *a) {
    bool any = false;
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
        const bool says_so = n->absence.followed > a->side.now.view;
        if (n->link.agreed || (!says_so && !n->absence.gone && sl_members_expects(a, n)))
            return false;
        any = any || says_so;
    }
    return any && !sl_cohort_is_new(&a->cohort) && !a->cohort.leaves;
}

void sl_returning_tick(sl_agent *a) {
    sl_state_transfer *f = &a->cohort.transfer;
    sl_error error;
    if (a->cohort.membership == NULL || a->phase != PHASE_TRAINING)
        return;
    if (is_followed(a)) {
        sl_agent_fail_here(a, SL_EPEER,
                           "the others went on without this agent, and another process has its "
                           "rank now");
        return;
    }
    sl_state_transfer_tick(a);
    if (!sl_cohort_is_outside(&a->cohort) || !sl_cohort_rests(&a->cohort))
        return;
    if (!sl_cohort_is_new(&a->cohort) && !a->cohort.told_aside && !sl_worker_busy(a->worker)) {
        sl_members_name_dropping(a, a->cohort.dropped);
        tell_aside(a, a->cohort.dropped);
    }
    if (f->sponsor != NULL && sl_state_transfer_is_whole(a) && is_at_rest(a)) {
        ask_to_join(a);
    } else if (f->sponsor == NULL && !sl_state_transfer_is_whole(a)) {
        sl_neighbour *n = find_sponsor(a);
        if (n != NULL && sl_state_transfer_begin(a, n, &error) != 0)
            sl_agent_fail(a, &error, error.text);
        else if (n == NULL && sl_cohort_is_new(&a->cohort))
            check_patience(a);
        else if (n == NULL && are_all_dead(a))
            sl_members_stay_out(a, "nobody of them is reached any more");
    }
}
