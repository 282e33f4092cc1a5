/* tidings.c - what members.c tells the log of events, and whoever started the agent. */
#include <inttypes.h>
#include <stdio.h>

#include "agent/state.h"

void sl_members_tell_fold(sl_agent *a, uint32_t peer) {
    sl_reach at;
    if (!sl_node_reach(a->node, peer, &at))
        return;
    sl_agent_log(a, &(sl_log_entry){.kind = SL_LOG_FOLD,
                                    .round = a->side.round,
                                    .peer = peer,
                                    .exchange = at.exchange,
                                    .step = at.step,
                                    .part = at.part});
}

void sl_members_tell_commit(sl_agent *a, const sl_decision *committed) {
    if (committed != NULL)
        sl_agent_log(a, &(sl_log_entry){.kind = SL_LOG_COMMIT,
                                        .round = a->side.round,
                                        .after = committed->epoch.round - 1});
}

void sl_members_tell_view(sl_agent *a) {
    const sl_grouping *grouping = &a->cohort.grouping;
    sl_log_entry entry = {.kind = SL_LOG_VIEW,
                          .round = a->cohort.view.round,
                          .exchange = a->cohort.view.exchange,
                          .ranks = grouping->ranks,
                          .members = grouping->count,
                          .gap = grouping->gap};
    sl_grouping_describe(grouping, a->settings.experiment, entry.round, entry.why,
                         sizeof entry.why);
    sl_agent_log(a, &entry);
    sl_agent_notice(a, "%s", entry.why);
}

/* Both ends live. Nobody looks for another edge: a view's topology is a function of its members. */
void sl_members_tell_broken(sl_agent *a, const sl_epoch *view) {
    char list[160] = "";
    size_t used = 0;
    uint32_t near = 0, broken = 0;
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        const sl_neighbour *n = &a->neighbours[i];
        near += n->near;
        if (!n->near || !sl_epoch_is_broken(view, a->side.rank, n->rank))
            continue;
        broken++;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%u", used > 0 ? ", " : "",
                                     n->rank);
    }
    const char *what = a->cohort.voids ? "exchanges are void"
                       : broken < near ? "its weight stays with the own model"
                                       : "this agent, which has no other neighbour, trains alone";
    if (broken > 0)
        sl_agent_notice(a, "round %" PRIu64 ": no connection to agent %s; until it is back, %s",
                        view->round, list, what);
}

void sl_members_tell_merge(sl_agent *a, const sl_epoch *view, uint32_t sides) {
    const uint64_t after = a->cohort.rested.round;
    sl_log_entry entry = {.kind = SL_LOG_MERGE, .round = after, .sides = sides};
    snprintf(entry.why, sizeof entry.why,
             "round %" PRIu64 ": %u parts of the network are one again; this one has come to round "
             "%" PRIu64,
             view->round, sides, after);
    sl_agent_log(a, &entry);
    sl_agent_notice(a, "%s", entry.why);
    a->cohort.merge = (sl_merge){view->round, after, sides};
}

/* What the node was to be given by it, of 1. */
static double weight_of(const sl_agent *a, uint32_t rank) {
    const sl_topology *topology = a->cohort.grouping.count > 0 ? a->cohort.grouping.topology
                                                               : a->settings.experiment->topology;
    const sl_row in =
        sl_topology_in(topology, a->side.exchange > 0 ? a->side.exchange : 1, a->side.rank);
    for (uint32_t i = 0; i < in.count; i++)
        if (in.peers[i] == rank)
            return in.weights[i];
    return 0;
}

void sl_members_tell_lost(sl_agent *a, const sl_neighbour *n, const char *why) {
    sl_log_entry entry = {.kind = SL_LOG_LOST, .round = a->side.round, .peer = n->rank};
    char fold[96] = "";
    if (n->near && a->cohort.voids)
        snprintf(fold, sizeof fold, "; until a view, exchanges are void");
    else if (n->near)
        snprintf(fold, sizeof fold, "; until a view, its weight %.4g stays with the own model",
                 weight_of(a, n->rank));
    snprintf(entry.why, sizeof entry.why, "round %" PRIu64 ": agent %u is lost: %.300s%s",
             entry.round, n->rank, why, fold);
    sl_agent_log(a, &entry);
    if (n->near) /* others tell of the rest */
        sl_agent_notice(a, "%s", entry.why);
}
