/* waits.c - for whom this agent waits, and for whom in the end; see state.h.
 *
 * A neighbour that waits itself says in its heartbeats for whom, and who is at the end of its wait.
 * Of what cannot be this agent makes nothing: words of the wait before, or that lead back to
 * itself.
 */
#include <inttypes.h>
#include <stdio.h>

#include "agent/state.h"

static const double silent_s = 1; /* of a neighbour that is waited for, and answers that at once */

static bool is_in_round(const sl_agent *a) {
    const bool computes = sl_worker_busy(a->worker) && a->calls.current.kind != SL_CALL_REST;
    return a->phase == PHASE_TRAINING && !computes;
}

bool sl_waits_for_taker(const sl_agent *a, const sl_neighbour *n) {
    uint32_t i = 0;
    while (i < a->receiver_count && a->receivers[i] != n)
        i++;
    if (i == a->receiver_count)
        return false;
    if (a->node.own != NULL)
        return a->outbox.held && !sl_neighbour_takes_data(n);
    return a->outbox.open && a->outbox.gone < a->outbox.message.parts &&
           sl_neighbour_holds_up(n, &a->outbox);
}

static bool awaits(const sl_agent *a, const sl_neighbour *n, const sl_neighbour *in_call) {
    if (a->phase == PHASE_CONNECTING)
        return n->near && !n->link.agreed;
    if (a->phase == PHASE_GOODBYE)
        return n->link.agreed && !n->process.bye_received;
    return a->phase == PHASE_TRAINING &&
           (n == in_call ||
            (is_in_round(a) && (sl_machine_awaits(&a->node, n->rank) || sl_waits_for_taker(a, n))));
}

static sl_agent_doing doing_of(const sl_agent *a) {
    const bool computes = sl_worker_busy(a->worker) && a->calls.current.kind == SL_CALL_NONE;
    if (a->phase == PHASE_TRAINING)
        return computes ? SL_AGENT_COMPUTES : SL_AGENT_EXCHANGES;
    return a->phase == PHASE_CONNECTING ? SL_AGENT_CONNECTS : SL_AGENT_ENDS;
}

double sl_waits_moved_s(const sl_agent *a) {
    const bool calls = a->calls.current.kind != SL_CALL_NONE;
    if (a->phase == PHASE_CONNECTING)
        return a->times.deadline_s - a->side.limits.connect_timeout_s;
    return calls && a->calls.moved_s > a->times.progress_s ? a->calls.moved_s : a->times.progress_s;
}

double sl_waits_patient_s(const sl_agent *a) {
    double since_s = sl_waits_moved_s(a);
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (n->awaited && n->process.exchange < a->side.now.exchange &&
            n->process.exchange_s > since_s)
            since_s = n->process.exchange_s;
    return since_s;
}

/* What is at the end of the wait for this neighbour; false: not known yet. */
static bool find_root(const sl_agent *a, const sl_neighbour *n, sl_agent_view *root) {
    const double now_s = a->side.now_s, moved_s = sl_waits_moved_s(a);
    const double quiet_s = now_s - (n->link.heard_s > moved_s ? n->link.heard_s : moved_s);
    if (!n->link.agreed) {
        const double since_s = n->absence.lost_s > 0 ? n->absence.lost_s : moved_s;
        *root = (sl_agent_view){n->rank, SL_AGENT_AWAY, 0, now_s - since_s};
    } else if (quiet_s >= silent_s) {
        *root = (sl_agent_view){n->rank, SL_AGENT_SILENT, 0, now_s - n->link.heard_s};
    } else if (sl_neighbour_has_said(n)) {
        if (!sl_heartbeat_knows_root(&n->link.beats.said) ||
            n->link.beats.said.root.rank == a->side.rank)
            return false;
        *root = n->link.beats.said.root;
        root->still_s += now_s - n->link.beats.said_s;
    } else { /* its data is on the way, with all that it says behind */
        *root = (sl_agent_view){n->rank, SL_AGENT_EXCHANGES, a->side.now.round, now_s - moved_s};
        return now_s - moved_s >= silent_s;
    }
    return true;
}

static bool differs(const sl_agent_view *a, const sl_agent_view *b) {
    return a->rank != b->rank || a->doing != b->doing || a->round != b->round;
}

/* Of several roots the one that has stood still for longest. */
static void follow(sl_agent *a, const sl_neighbour *n) {
    sl_heartbeat *says = &a->side.now.says;
    const bool first = !sl_heartbeat_waits(says), knows = sl_heartbeat_knows_root(says);
    sl_agent_view root = says->own;
    const bool found = find_root(a, n, &root);
    if (!first && (!found || (knows && root.still_s <= says->root.still_s)))
        return;
    says->waits_for = n->rank;
    if (found)
        says->root = root;
}

void sl_waits_look(sl_agent *a) {
    const sl_neighbour *in_call = sl_calls_awaited(&a->calls);
    const sl_heartbeat before = a->side.now.says;
    sl_heartbeat *says = &a->side.now.says;
    const double still_s = a->side.now_s - sl_waits_moved_s(a);
    says->own = (sl_agent_view){a->side.rank, doing_of(a), a->side.now.round, still_s};
    says->waits_for = a->side.rank;
    says->root = says->own;
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
        n->awaited = awaits(a, n, in_call);
        if (n->awaited && still_s >= sl_heartbeat_long_s)
            follow(a, n);
        else if (n->awaited)
            says->waits_for = n->rank;
    }
    a->side.now.news += says->waits_for != before.waits_for || differs(&says->own, &before.own) ||
                        differs(&says->root, &before.root);
}

/* ---- in words ---- */

const char *sl_agent_doing_name(sl_agent_doing doing) {
    static const char *const names[] = {
        [SL_AGENT_CONNECTS] = "connects",     [SL_AGENT_COMPUTES] = "computes",
        [SL_AGENT_EXCHANGES] = "exchanges",   [SL_AGENT_SILENT] = "is silent",
        [SL_AGENT_AWAY] = "is not connected", [SL_AGENT_ENDS] = "ends"};
    return names[doing];
}

static void name_ranks(const sl_agent *a, const char *what, char *out, size_t bytes) {
    size_t used = 0;
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a) && used < bytes; n++)
        if (n->awaited)
            used +=
                (size_t)snprintf(out + used, bytes - used, "%s%u", used > 0 ? ", " : what, n->rank);
}

bool sl_waits_name_taker(const sl_agent *a, sl_error *wait) {
    const sl_neighbour *n = NULL;
    sl_error missing;
    const bool names = sl_machine_name_wait(&a->node, &missing) != 0;
    if (a->node.own == NULL && !(names && missing.peer == SL_ERROR_NOWHERE))
        return false;
    for (uint32_t i = 0; i < a->receiver_count && n == NULL; i++)
        if (sl_waits_for_taker(a, a->receivers[i]))
            n = a->receivers[i];
    if (n == NULL)
        return false;
    if (a->node.own != NULL)
        sl_fail_edge(wait, SL_EPEER, a->side.rank, n->rank, a->side.now.round,
                     "its message is not taken");
    else
        sl_fail_edge(wait, SL_EPEER, a->side.rank, n->rank, a->side.now.round,
                     "part %u of %u has not been taken", a->outbox.gone, a->outbox.message.parts);
    wait->rank = a->side.rank;
    wait->peer = n->rank;
    return true;
}

/* The first that refuses this agent says why; NULL: nobody has. */
static const sl_neighbour *find_refusing(const sl_agent *a) {
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (!n->link.agreed && n->dialing.turned_away > 0)
            return n;
    return NULL;
}

static void name_members(const sl_agent *a, char *out, size_t bytes) {
    const sl_neighbour *n = sl_cohort_is_outside(&a->cohort) ? find_refusing(a) : NULL;
    if (n != NULL)
        snprintf(out, bytes, "agent %u to let this one in: %s", n->rank, n->dialing.refusal);
    else
        snprintf(out, bytes, "the members to agree on who goes on");
}

static void name_in_round(const sl_agent *a, char *out, size_t bytes) {
    sl_error wait;
    if (sl_cohort_rests(&a->cohort) && a->cohort.transfer.sponsor != NULL)
        snprintf(out, bytes, "agent %u's model, to return with", a->cohort.transfer.sponsor->rank);
    else if (sl_cohort_rests(&a->cohort))
        name_members(a, out, bytes);
    else if (sl_waits_name_taker(a, &wait) || sl_machine_name_wait(&a->node, &wait) != 0)
        snprintf(out, bytes, "%s", wait.text);
}

bool sl_waits_name(const sl_agent *a, char *out, size_t bytes) {
    uint32_t peer;
    out[0] = '\0';
    if (a->phase == PHASE_CONNECTING)
        name_ranks(a, "agents to come up: ", out, bytes);
    else if (a->phase == PHASE_GOODBYE)
        name_ranks(a, "agents to finish: ", out, bytes);
    else if (a->phase == PHASE_TRAINING && !sl_calls_name_wait(&a->calls, out, bytes, &peer) &&
             is_in_round(a))
        name_in_round(a, out, bytes);
    return out[0] != '\0';
}

void sl_waits_name_root(const sl_agent *a, char *out, size_t bytes) {
    const sl_heartbeat *says = &a->side.now.says;
    const sl_agent_view *root = &says->root;
    char round[32] = "";
    out[0] = '\0';
    if (!sl_heartbeat_waits(says) || !sl_heartbeat_knows_root(says) || a->phase == PHASE_CONNECTING)
        return;
    if (root->round > 0)
        snprintf(round, sizeof round, " round %" PRIu64, root->round);
    snprintf(out, bytes, "; agent %u %s%s since %.0f s", root->rank,
             sl_agent_doing_name(root->doing), round, root->still_s);
}
