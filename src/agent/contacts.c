/* contacts.c - what connections report, and what that means for the run; see state.h.
 *
 * Until training begins, nothing that a connection does ends the run, but for a neighbour that has
 * proved who it is and says why it ends, and one that this agent dialed and that runs another
 * configuration. A neighbour that goes away then may come back.
 */
#include <stdio.h>
#include <string.h>

#include "agent/state.h"

/* Between looks for a port that refused, and for one of a lost agent. */
static const double refusals_apart_s = 0.05, look_again_s = 1;

double sl_contacts_left_s(const sl_agent *a, const sl_neighbour *n) {
    return n->absence.superseded ? 0
                                 : n->absence.lost_s + sl_side_return_s(&a->side) - a->side.now_s;
}

bool sl_contacts_awaits(const sl_agent *a, const sl_neighbour *n) {
    if (n->link.agreed || (n->process.parted && !n->absence.gone))
        return false;
    if (a->phase == PHASE_OVER)
        return a->parting && !n->link.abort_sent && n->near && !n->absence.gone;
    return n->near || a->cohort.alarmed;
}

/* Why it ended, as it said; "": it did not. */
static const char *end_of(const sl_neighbour *n) {
    return n->process.ends == SL_ABORT_DROPS ? "" : n->process.cause;
}

/* A neighbour that gave up may have waited for one that waits itself: this agent says for whom. */
static void add_own_wait(const sl_agent *a, const sl_neighbour *n, sl_error *error) {
    const size_t used = strlen(error->text);
    sl_error wait;
    if (a->phase == PHASE_TRAINING && strstr(end_of(n), SL_NODE_LATE) != NULL &&
        !sl_worker_busy(a->worker) && sl_machine_name_wait(&a->node, &wait) != 0 &&
        wait.peer != n->rank)
        snprintf(error->text + used, sizeof error->text - used,
                 "; it waited, as this agent does: %.300s", wait.text);
}

static bool goes_on(const sl_agent *a) {
    return a->cohort.membership != NULL;
}

/* It has ended for somebody who never came. An agent that has all its neighbours may have begun: it
 * does not train what all others do not. */
static bool begins_for_nobody(const sl_agent *a, const sl_neighbour *n) {
    return n->process.ends == SL_ABORT_BEGINS && a->side.now.view <= 1 &&
           !sl_cohort_is_new(&a->cohort);
}

/* The run ends, or goes on without this neighbour. */
static void fail(sl_agent *a, sl_neighbour *n, const sl_error *error) {
    sl_error whole = *error;
    a->side.now.unbegun = a->side.now.unbegun || begins_for_nobody(a, n);
    if (goes_on(a) && (n->link.agreed || !sl_cohort_is_new(&a->cohort)) &&
        !begins_for_nobody(a, n)) {
        sl_members_lose(a, n, error);
        return;
    }
    add_own_wait(a, n, &whole);
    sl_agent_fail(a, &whole, end_of(n)[0] != '\0' ? n->process.cause : error->text);
}

/* ---- neighbours ---- */

static void on_connected(void *context, void *owner) {
    (void)context;
    sl_neighbour_connected(owner);
}

static sl_log_entry log_of(const sl_agent *a, sl_log_kind kind, const sl_neighbour *n) {
    return (sl_log_entry){.kind = kind,
                          .peer = n->rank,
                          .round = a->side.now.round,
                          .exchange = a->side.now.exchange};
}

void sl_contacts_log_edges(sl_agent *a) {
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
        if (!sl_members_expects(a, n))
            continue;
        sl_log_entry entry = log_of(a, SL_LOG_EDGE, n);
        entry.round = sl_saving_first_round(a);
        sl_guard_describe(&a->side.guard, n->rank, entry.why);
        sl_agent_log(a, &entry);
    }
}

static void log_lost(sl_agent *a, const sl_neighbour *n) {
    sl_log_entry entry = log_of(a, SL_LOG_DOWN, n);
    snprintf(entry.why, sizeof entry.why, "%s", n->absence.lost.text);
    sl_agent_log(a, &entry);
}

void sl_contacts_log_lost(sl_agent *a) {
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (n->absence.lost_s > 0)
            log_lost(a, n);
}

/* Its connection broke, and it has time to come back. */
static void miss(sl_agent *a, sl_neighbour *n, const sl_error *why) {
    n->absence.lost_s = a->side.now_s;
    n->absence.lost = *why;
    log_lost(a, n);
}

/* What came of the process before is not this one's: its model may be another. A node that trains
 * has done with it. */
static void renew(sl_agent *a, sl_neighbour *n) {
    if (n->renewed && a->phase == PHASE_CONNECTING)
        sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_RENEWED, .peer = n->rank});
    n->renewed = false;
}

/* Of neighbours at one address one would expect that they read each other's memory. */
static void tell_apart(sl_agent *a, sl_neighbour *n) {
    const sl_roster *roster = a->side.roster;
    if (n->process.apart_told || n->process.why_apart[0] == '\0' || !sl_neighbour_has_address(n) ||
        a->side.rank >= sl_roster_count(roster) ||
        strcmp(sl_roster_host(roster, n->rank), sl_roster_host(roster, a->side.rank)) != 0)
        return;
    n->process.apart_told = true;
    sl_agent_notice(a,
                    "transport.memory: data goes through the connection to agent %u, and not "
                    "through memory: %s",
                    n->rank, n->process.why_apart);
}

/* A connection was agreed on: what came over the one before goes on. */
static void come_back(sl_agent *a, sl_neighbour *n) {
    const bool knows_nothing = n->stream.numbered.frames == 0 || n->absence.gone;
    n->back = false;
    renew(a, n);
    if (n->absence.lost_s > 0) {
        sl_log_entry entry = log_of(a, SL_LOG_UP, n);
        entry.seconds = a->side.now_s - n->absence.lost_s;
        sl_agent_log(a, &entry);
        sl_agent_notice(a, "the connection to agent %u is back after %.2f s; %s", n->rank,
                        entry.seconds, n->absence.lost.text);
    }
    n->absence = (sl_absence){0};
    if (knows_nothing)
        sl_saving_tell(a, n);
    sl_members_reach(a, n);
}

/* The connection to it broke, or is good for nothing. There is time for another one. */
static void lose(sl_agent *a, sl_neighbour *n, const sl_error *why) {
    sl_neighbour_drop(n, NULL);
    if (a->side.limits.reconnect_s == 0 && !n->process.bye_received && !goes_on(a)) {
        fail(a, n, why);
        return;
    }
    if (a->phase == PHASE_CONNECTING)
        return;
    n->dialing.next_s = a->side.now_s;
    miss(a, n, why);
}

void sl_contacts_expel(sl_agent *a, sl_neighbour *n, const char *why, bool for_good) {
    sl_error error;
    if (n->link.connection == NULL && n->absence.lost_s == 0)
        return;
    if (!n->link.agreed && n->absence.lost_s == 0) {
        sl_neighbour_drop(n, why);
        return;
    }
    sl_fail_edge(&error, SL_EPEER, n->rank, a->side.rank, a->side.now.round, "agent %u: %s",
                 n->rank, why);
    if (for_good)
        fail(a, n, &error);
    else if (n->link.agreed)
        lose(a, n, &error);
}

static void on_received(void *context, void *owner, sl_buffer *buffer, size_t bytes) {
    sl_agent *a = context;
    sl_neighbour *n = owner;
    sl_event event;
    sl_frame frame;
    sl_error error;
    const uint8_t *payload = buffer->data + SL_FRAME_HEADER_BYTES;
    const int arrived = sl_neighbour_take(n, buffer, bytes, &event, &frame, &error);
    int result = arrived;
    if (arrived == SL_ARRIVED_DATA && frame.view == a->side.now.view &&
        !sl_agent_has_left(a)) /* the node's */
        sl_agent_deliver(a, &event);
    else if (arrived == SL_ARRIVED_DATA)
        sl_neighbour_consumed(event.token);
    else if (arrived == SL_ARRIVED_CALL)
        result = sl_calls_take(&a->calls, n, &frame, payload, &error);
    else if (arrived == SL_ARRIVED_CHECKPOINT)
        result = sl_saving_hear(a, n, &frame, &error);
    else if (arrived == SL_ARRIVED_MEMBERSHIP)
        sl_members_hear(a, n, &frame, payload);
    else if (arrived == SL_ARRIVED_MODEL)
        sl_state_transfer_hear(a, n, &frame, payload);
    else if (arrived == SL_ARRIVED_ACCOUNT)
        sl_agent_take_account(a, n, &frame);
    if (arrived > SL_ARRIVED_DATA && arrived < SL_ARRIVED_BROKEN)
        sl_buffer_release(buffer);
    if (n->back)
        come_back(a, n);
    tell_apart(a, n);
    sl_members_see_off(a, n);
    if (result == SL_ARRIVED_BROKEN)
        lose(a, n, &error);
    if (result < 0)
        fail(a, n, &error);
    sl_agent_settle(a, false);
}

static void on_sent(void *context, void *owner, uint32_t cookie) {
    sl_neighbour *n = owner;
    n->stream.left += sl_channel_sent(n->link.channel, cookie);
    sl_agent_settle(context, false);
}

/* Nobody listens where it was: twice, and it is gone. */
static void note_refusal(sl_agent *a, sl_neighbour *n) {
    sl_error error;
    const bool seeks = n->absence.sought_s > 0 && a->phase == PHASE_TRAINING;
    n->dialing.next_s = a->side.now_s + (n->absence.gone ? look_again_s : refusals_apart_s);
    n->absence.refusals++;
    sl_members_note_ended(a, n);
    if (n->absence.refusals < SL_REFUSALS || n->absence.gone || n->process.bye_received ||
        (n->absence.lost_s == 0 && !seeks))
        return;
    if (n->absence.lost_s == 0)
        sl_fail_edge(&n->absence.lost, SL_EPEER, n->rank, a->side.rank, a->side.now.round,
                     "agent %u was looked for", n->rank);
    error = n->absence.lost;
    const size_t used = strlen(error.text);
    snprintf(error.text + used, sizeof error.text - used, "; its port refuses");
    sl_members_lose(a, n, &error);
}

static void on_down(void *context, void *owner, bool established, const char *reason) {
    sl_agent *a = context;
    sl_neighbour *n = owner;
    sl_error error;
    /* Does it listen, and says why it does not take this agent? A port that nobody has says
     * nothing. */
    const bool is_turned_away =
        !established && strncmp(reason, SL_REASON_REFUSED ": ", sizeof SL_REASON_REFUSED + 1) == 0;
    n->dialing.turned_away = is_turned_away ? n->dialing.turned_away + 1 : 0;
    if (!n->link.agreed || a->phase == PHASE_OVER) {
        sl_neighbour_drop(n, established ? "it closed the connection" : reason);
        if (goes_on(a) && !established && strcmp(reason, SL_REASON_REFUSED) == 0)
            note_refusal(a, n);
    } else if (a->phase == PHASE_CONNECTING) {
        sl_neighbour_drop(n, NULL);
        sl_agent_notice(a,
                        "warning: agent %u went away before training began (%s); it may come back",
                        n->rank, reason);
    } else if (n->process.bye_received && sl_neighbour_bye_has_left(n)) {
        sl_neighbour_drop(n, NULL);
        n->process.parted = true;
        n->dialing.next_s = a->side.now_s + look_again_s; /* another process may take its place */
    } else {
        sl_fail_edge(&error, SL_EPEER, n->rank, a->side.rank, a->side.now.round,
                     "agent %u is gone: %s", n->rank, reason);
        lose(a, n, &error);
    }
}

const sl_connection_handlers sl_contacts_neighbours = {on_connected, on_received, on_sent, on_down};

/* ---- visitors ---- */

/* Where there are proofs, only a peer that has proved itself hears this. */
static bool is_wanted(sl_agent *a, const sl_passage *p, char why[SL_GREETING_WHY_MAX]) {
    if (p->to != a->side.rank)
        snprintf(why, SL_GREETING_WHY_MAX,
                 "it looks for agent %u, but this is agent %u: the rosters differ, or their order",
                 p->to, a->side.rank);
    else
        snprintf(why, SL_GREETING_WHY_MAX, "it calls itself an agent that is no neighbour");
    return p->to == a->side.rank && sl_agent_neighbour(a, p->from) != NULL;
}

sl_connection *sl_contacts_requested(void *context, const uint8_t greeting[SL_GREETING_BYTES],
                                     const char *from, char why[SL_GREETING_WHY_MAX]) {
    sl_agent *a = context;
    sl_passage passage;
    if (sl_gate_admits(a, greeting, &passage, why) && is_wanted(a, &passage, why))
        return sl_unverified_welcome(&a->unverified, &passage, from, why);
    sl_unverified_note_refused(&a->unverified, from, why);
    return NULL;
}

static void visitor_connected(void *context, void *owner) {
    (void)context;
    ((sl_unverified *)owner)->connected = true;
}

/* A peer that asks for this agent may look for all, as one is lost that this one does not miss yet:
 * it counts this one as lost, too, unless it connects in time. */
static void answer(sl_agent *a, sl_neighbour *n) {
    if (!goes_on(a) || a->phase != PHASE_TRAINING || n->link.agreed)
        return;
    sl_members_alarm(a);
    if (n->link.connection == NULL)
        n->dialing.next_s = a->side.now_s;
}

/* The number of this member's view, if that has another process of its rank; else 0. */
static uint64_t followed_in(const sl_agent *a, const sl_neighbour *n, const sl_standing *theirs) {
    const sl_view *newest = goes_on(a) ? sl_membership_newest(a->cohort.membership) : NULL;
    const bool has_other = sl_neighbour_has_other(n, sl_standing_process(theirs));
    return newest != NULL && has_other ? newest->number : 0;
}

/* Its HELLO equals ours. A newer attempt of a neighbour replaces its connection, of whose end this
 * side may not have heard. */
static void take_in(sl_agent *a, sl_unverified *visitor, sl_standing *theirs) {
    sl_neighbour *n = sl_agent_neighbour(a, visitor->rank);
    char text[SL_REFUSAL_MAX];
    const uint64_t followed = followed_in(a, n, theirs);
    if (followed != 0 && sl_neighbour_is_dialed(n) && n->link.agreed) {
        snprintf(text, sizeof text, "agent %u has another process, which is connected", n->rank);
        sl_unverified_turn_away(&a->unverified, visitor, followed, text);
        return;
    }
    if (!a->side.now.trains && !sl_first_view_has(a, n->rank)) {
        snprintf(
            text, sizeof text,
            "agent %u was no member when this agent's checkpoint was written: it can join when "
            "the members train",
            n->rank);
        sl_unverified_turn_away(&a->unverified, visitor, 0, text);
        return;
    }
    if (sl_neighbour_is_dialed(n)) { /* it asks whether this is really the agent of this rank */
        sl_unverified_confirm(&a->unverified, visitor);
        answer(a, n);
        return;
    }
    if (!sl_neighbour_may_go_on(n, theirs, text)) {
        if (goes_on(a) && a->side.now.trains && !theirs->joins && !theirs->trains)
            sl_unverified_say_join(&a->unverified, visitor, text);
        else
            sl_unverified_turn_away(&a->unverified, visitor, followed, text);
        n->dialing.ahead = theirs->trains && !a->side.now.trains;
        return;
    }
    if (n->process.incarnation == theirs->incarnation && theirs->attempt <= n->process.attempt) {
        sl_unverified_refuse(&a->unverified, visitor, NULL); /* it has another one by now */
        return;
    }
    if (n->link.agreed && a->side.now.trains) {
        sl_error why;
        sl_fail_edge(&why, SL_EPEER, n->rank, a->side.rank, a->side.now.round,
                     "agent %u connected anew", n->rank);
        miss(a, n, &why);
    }
    sl_channel *channel = visitor->channel;
    sl_neighbour_adopt(n, sl_unverified_release(visitor), channel, visitor->connected, theirs);
    come_back(a, n);
    sl_agent_settle(a, false);
}

/* It says another configuration. It may lie: the agent at the neighbour's own address knows
 * better, and is asked. */
static void doubt(sl_agent *a, uint32_t rank, const char *text) {
    sl_neighbour *n = sl_agent_neighbour(a, rank);
    if (n == NULL || n->link.agreed || sl_neighbour_is_dialed(n) ||
        n->rank >= sl_roster_count(a->side.roster))
        return;
    snprintf(n->dialing.refusal, sizeof n->dialing.refusal, "refused: %.*s",
             (int)sizeof n->dialing.refusal - 16, text);
    n->dialing.doubted = true;
}

static void visitor_received(void *context, void *owner, sl_buffer *buffer, size_t bytes) {
    sl_agent *a = context;
    sl_unverified *visitor = owner;
    const uint32_t rank = visitor->rank;
    sl_standing theirs;
    char text[SL_REFUSAL_MAX];
    switch (sl_unverified_judge(&a->unverified, visitor, buffer, bytes, &theirs, text)) {
    case SL_VERDICT_EQUAL:
        take_in(a, visitor, &theirs);
        break;
    case SL_VERDICT_DIFFERS:
        doubt(a, rank, text);
        break;
    case SL_VERDICT_REFUSED:
        sl_gate_remember(a, rank, text);
        break;
    case SL_VERDICT_NONE:
        break;
    }
}

static void visitor_sent(void *context, void *owner, uint32_t cookie) {
    (void)context;
    sl_channel_sent(((sl_unverified *)owner)->channel, cookie);
}

static void visitor_down(void *context, void *owner, bool established, const char *reason) {
    sl_agent *a = context;
    (void)established;
    sl_unverified_refuse(&a->unverified, owner, reason);
}

const sl_connection_handlers sl_contacts_visitors = {visitor_connected, visitor_received,
                                                     visitor_sent, visitor_down};

/* ---- time ---- */

/* Nobody waits for ever: a neighbour that does not come back ends the run, unless it has no part in
 * it any more. */
static void check_lost(sl_agent *a, sl_neighbour *n) {
    if (n->link.agreed || n->absence.lost_s == 0 || n->absence.gone || n->process.bye_received ||
        a->phase != PHASE_TRAINING || sl_contacts_left_s(a, n) > 0)
        return;
    const size_t used = strlen(n->absence.lost.text);
    if (n->absence.superseded)
        snprintf(n->absence.lost.text + used, sizeof n->absence.lost.text - used,
                 "; another process came for its rank");
    else
        snprintf(n->absence.lost.text + used, sizeof n->absence.lost.text - used,
                 "; it did not come back within %g s (%s)%s%s", sl_side_return_s(&a->side),
                 sl_neighbour_return_key(n), n->dialing.refusal[0] != '\0' ? ": " : "",
                 n->dialing.refusal);
    if (goes_on(a)) /* a joining process, too: it can ask others */
        sl_members_lose(a, n, &n->absence.lost);
    else
        fail(a, n, &n->absence.lost);
}

/* A joining process may be refused until all have gone on without the one before. */
static double seeks_s(const sl_agent *a, const sl_neighbour *n) {
    const double timeout_s = a->side.limits.timeout_s;
    return sl_cohort_is_outside(&a->cohort) && n->dialing.refusal[0] != '\0'
               ? SL_PATIENCE_S(timeout_s)
               : timeout_s;
}

/* Somebody is lost, so all look for all. */
static void check_sought(sl_agent *a, sl_neighbour *n) {
    sl_error error;
    const bool is_here = n->link.agreed && !sl_neighbour_has_other(n, n->process.id);
    if (is_here || n->absence.sought_s == 0 || a->phase != PHASE_TRAINING ||
        (a->side.now_s - n->absence.sought_s < seeks_s(a, n) && !n->absence.superseded))
        return;
    sl_fail_edge(&error, SL_EPEER, n->rank, a->side.rank, a->side.now.round,
                 "it cannot be reached%s%s", n->dialing.refusal[0] != '\0' ? ": " : "",
                 n->dialing.refusal);
    sl_members_lose(a, n, &error);
}

/* A neighbour that connects to this agent may be gone: then its port says so. */
static void ask(const sl_agent *a, sl_neighbour *n) {
    const bool misses = n->absence.lost_s > 0 || n->absence.sought_s > 0 || n->absence.gone;
    if (goes_on(a) && !n->link.agreed && n->link.connection == NULL && !sl_neighbour_is_dialed(n) &&
        sl_neighbour_has_address(n) && misses)
        n->dialing.doubted = true;
}

/* What happened while this process did not run is no silence of others. */
void sl_contacts_forgive(sl_agent *a, double lag_s) {
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
        n->link.heard_s += lag_s;
        n->absence.lost_s += n->absence.lost_s > 0 ? lag_s : 0;
        n->absence.sought_s += n->absence.sought_s > 0 ? lag_s : 0;
    }
    a->times.progress_s += lag_s;
    a->times.deadline_s += lag_s;
}

void sl_contacts_tick(sl_agent *a) {
    for (sl_neighbour *n = a->neighbours;
         n < sl_agent_behind(a) && (a->phase != PHASE_OVER || a->parting); n++) {
        sl_error error;
        ask(a, n);
        if (sl_contacts_awaits(a, n))
            sl_neighbour_dial_if_due(n);
        const bool silent = sl_neighbour_tick(n, &error) != 0;
        if (silent && goes_on(a))
            sl_members_lose(a, n, &error);
        else if (silent)
            lose(a, n, &error);
        check_lost(a, n);
        if (n->absence.superseded)
            sl_members_note_ended(a, n);
        check_sought(a, n);
    }
    if (a->side.now.out_of_memory)
        sl_agent_fail_here(a, SL_ENOMEM, "out of memory for frames");
    sl_unverified_tick(&a->unverified);
    sl_unverified_note_silent(&a->unverified, sl_fabric_end_silent(a->side.fabric));
}
