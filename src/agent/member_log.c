/* member_log.c - what members.c tells the log of events, and the starter of the agent. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/state.h"

enum { ABSENT_MAX = 64 };

/* "2, 5": ranks that began the run and are not in the view. */
static void name_absent(const sl_agent *a, char out[ABSENT_MAX]) {
    const uint32_t first = sl_topology_nodes(a->settings.experiment->topology);
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t rank = 0; rank < first && used < ABSENT_MAX; rank++)
        if (!sl_members_has(a, rank))
            used +=
                (size_t)snprintf(out + used, ABSENT_MAX - used, "%s%u", used > 0 ? ", " : "", rank);
}

void sl_members_tell_view(sl_agent *a, bool is_cut) {
    char absent[ABSENT_MAX];
    const sl_grouping *grouping = &a->cohort.grouping;
    sl_log_entry entry = {.kind = SL_LOG_VIEW,
                          .round = a->cohort.view.round,
                          .exchange = a->cohort.view.exchange,
                          .ranks = grouping->ranks,
                          .members = grouping->count,
                          .broken = a->cohort.view.broken,
                          .broken_count = a->cohort.view.broken_count,
                          .gap = grouping->gap};
    sl_grouping_describe(grouping, a->settings.experiment, entry.round, entry.why,
                         sizeof entry.why);
    sl_agent_log(a, &entry);
    name_absent(a, absent);
    if (is_cut)
        return;
    if (absent[0] == '\0')
        sl_agent_notice(a, "warning: %s", entry.why);
    else
        sl_agent_notice(a, "warning: %s; lost: %s; a new process may take a lost rank's place (%s)",
                        entry.why, absent, a->settings.meets ? "options.joins" : "starling agent");
}

/* Both ends live. Nobody looks for another edge: a view's topology is a function of its members. */
void sl_members_tell_broken(sl_agent *a, const sl_view *view) {
    char list[160] = "";
    size_t used = 0;
    uint32_t near = 0, broken = 0;
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
        near += n->near;
        if (!n->near || !sl_view_is_broken(view, a->side.rank, n->rank))
            continue;
        broken++;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%u", used > 0 ? ", " : "",
                                     n->rank);
    }
    const char *what = broken < near ? "its weight stays with the own model"
                                     : "this agent, which has no other neighbour, trains alone";
    if (broken > 0)
        sl_agent_notice(a,
                        "warning: round %" PRIu64 ": no connection to agent %s; until it is back, "
                        "%s; is the network between these hosts up?",
                        view->round, list, what);
}

void sl_members_tell_minority(sl_agent *a, uint32_t reached, uint32_t needed) {
    sl_agent_notice(a,
                    "warning: round %" PRIu64 ": %u members of this view are reached, this agent "
                    "among them, and %u are needed (membership.quorum); it rests until more are, "
                    "for %g s (membership.minority_s); is the network up?",
                    a->side.now.round, reached, needed,
                    a->settings.experiment->membership.minority_s);
}

/* What they say of it, or what it knows itself. */
void sl_members_name_dropping(const sl_agent *a, char out[SL_DROPPED_MAX]) {
    const sl_neighbour *says = NULL, *lost = NULL;
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
        says = n->process.ends == SL_ABORT_DROPS && n->process.cause[0] != '\0' ? n : says;
        lost = n->absence.gone && n->absence.lost.text[0] != '\0' ? n : lost;
    }
    snprintf(out, SL_DROPPED_MAX, "the others have gone on without this agent%s",
             says != NULL || lost != NULL
                 ? ""
                 : ", which was silent for longer than membership.grace_s, or cut off");
    const size_t used = strlen(out);
    if (says != NULL)
        snprintf(out + used, SL_DROPPED_MAX - used, "; agent %u says: %s", says->rank,
                 says->process.cause);
    else if (lost != NULL)
        snprintf(out + used, SL_DROPPED_MAX - used, ", which had lost agent %u: %s", lost->rank,
                 lost->absence.lost.text);
}

void sl_members_tell_lost(sl_agent *a, const sl_neighbour *n, const char *why) {
    sl_log_entry entry = {.kind = SL_LOG_LOST, .round = a->side.now.round, .peer = n->rank};
    snprintf(entry.why, sizeof entry.why, "round %" PRIu64 ": agent %u is lost: %.300s%s",
             entry.round, n->rank, why, n->near ? "; until a view, nothing is exchanged" : "");
    sl_agent_log(a, &entry);
    if (n->near) /* others tell of the rest */
        sl_agent_notice(a, "warning: %s", entry.why);
}
