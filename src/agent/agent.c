/* agent.c - one peer: phases, deadlines, the loop; see starling/agent.h.
 *
 * The loop: take what the fabric has, step the node, send what may be sent; when nothing moved, one
 * blocking pass of the event loop (non-blocking where the provider says so). However it ends, it
 * ends: every phase has a deadline, a failure is told to all neighbours, and nothing is waited for
 * without a limit.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/state.h"
#include "base/clock.h"
#include "launch/roster.h"

static const double farewell_s = 0.5; /* how long a failing agent stays to tell its neighbours */
static const double farewell_connecting_s = 1.5; /* the same where some are not connected yet */
static const double farewell_look_s = 0.002;
static const double lag_s = 0.5; /* between two looks: the process was stopped, or starved */
static const double tell_every_s = 5, tell_every_max_s = 60; /* what is waited for */
enum { TICK_MS = 50, PASSES_BETWEEN_LOOPS = 16, LOOKS = 64 };

static void on_stop(void *context) {
    sl_agent *a = context;
    sl_signal_take(a->stop_descriptor);
    unsigned wishes = atomic_exchange(&a->saving.wishes, 0);
    if ((wishes & 1u << SL_CUT_GO_ON) != 0 && !sl_saving_ask(a, SL_CUT_GO_ON))
        sl_agent_notice(a, "warning: no checkpoint now: checkpoint.every is 0, or nothing trains");
    if ((wishes & SL_WISH_LEAVE) != 0 && !sl_members_leave(a))
        wishes |= 1u << SL_CUT_LEAVE;
    if ((wishes & 1u << SL_CUT_LEAVE) != 0 && !sl_saving_ask(a, SL_CUT_LEAVE))
        wishes |= SL_WISH_STOP;
    if ((wishes & SL_WISH_RELOAD) != 0)
        sl_trust_take(a);
    if ((wishes & SL_WISH_STOP) == 0)
        return;
    sl_error error = sl_agent_end_asked(a);
    sl_agent_fail(a, &error, error.text);
}

/* A device that has failed signals nothing. */
static void check_device(sl_agent *a) {
    sl_error error;
    if (a->side.vec->async == NULL || a->side.vec->async->status(&error) == 0)
        return;
    sl_agent_fail_here(a, SL_EDEVICE, "%s", error.text);
}

/* ---- waiting ---- */

/* "agents 1 (10.0.0.1:7401), 2 (10.0.0.2:7401)": whom of the roster this phase waits for. */
static void name_awaited(const sl_agent *a, char *out, size_t bytes) {
    size_t used = 0;
    out[0] = '\0';
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a) && used < bytes; n++) {
        const bool is_awaited = a->phase == PHASE_CONNECTING
                                    ? n->near && !n->link.agreed
                                    : n->link.connection != NULL && !n->process.bye_received;
        if (n->rank < sl_roster_count(a->side.roster) && is_awaited)
            used += (size_t)snprintf(
                out + used, bytes - used, "%s%u (%.100s:%u)%s%s", used > 0 ? ", " : "", n->rank,
                sl_roster_host(a->side.roster, n->rank), sl_roster_port(a->side.roster, n->rank),
                n->dialing.refusal[0] != '\0' ? ": " : "", n->dialing.refusal);
    }
}

static bool is_lost(const sl_agent *a, const sl_neighbour *n) {
    return !n->link.agreed && !n->absence.gone && n->absence.lost_s > 0 &&
           sl_contacts_left_s(a, n) > 0;
}

/* Connections that broke, and neighbours that are waited for and say nothing. */
static void tell_lost(sl_agent *a, const char *warns) {
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
        const double quiet_s = a->side.now_s - n->link.heard_s;
        if (is_lost(a, n))
            sl_agent_notice(a,
                            "%swaiting for agent %u to come back: %s%s%s; %.0f s left "
                            "(%s)",
                            warns, n->rank, n->absence.lost.text,
                            n->dialing.refusal[0] != '\0' ? "; " : "", n->dialing.refusal,
                            sl_contacts_left_s(a, n), sl_neighbour_return_key(n));
        else if (n->link.agreed && n->awaited && quiet_s >= tell_every_s)
            sl_agent_notice(a,
                            "%sagent %u has been silent for %.0f s; %.0f s left until its "
                            "connection counts as broken (%s)",
                            warns, n->rank, quiet_s, sl_neighbour_patience_s(n) - quiet_s,
                            sl_neighbour_silence_key(n));
    }
}

static void tell_wait_in_training(sl_agent *a, const char *warns) {
    char what[512], root[128];
    if (!sl_waits_name(a, what, sizeof what))
        return;
    sl_waits_name_root(a, root, sizeof root);
    const bool knocks = sl_returning_knocks(a);
    const double left_s = knocks ? a->times.deadline_s - a->side.now_s
                                 : a->settings.experiment->transport.round_timeout_s -
                                       (a->side.now_s - sl_waits_patient_s(a));
    sl_agent_notice(a,
                    "%swaiting%s %s%s; %.0f s left (transport.%s); does its process train, and is "
                    "its host reachable?",
                    warns, a->calls.current.kind == SL_CALL_NONE ? ":" : " for", what, root, left_s,
                    knocks ? "connect_timeout_s" : "round_timeout_s");
}

static void tell_wait_for_all(sl_agent *a, const char *warns) {
    const bool connecting = a->phase == PHASE_CONNECTING;
    char whom[512];
    name_awaited(a, whom, sizeof whom);
    if (whom[0] != '\0')
        sl_agent_notice(a, "%swaiting for agents to %s: %s; %.0f s left (transport.%s)%s", warns,
                        connecting ? "come up" : "finish", whom,
                        a->times.deadline_s - a->side.now_s,
                        connecting ? "connect_timeout_s" : "round_timeout_s",
                        connecting ? "; have they been started, with this roster?" : "");
}

/* Since when it waits for anything; now: for nothing. */
static double waits_since_s(const sl_agent *a) {
    char what[512];
    double since_s = sl_waits_name(a, what, sizeof what) ? sl_waits_moved_s(a) : a->side.now_s;
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (is_lost(a, n) && n->absence.lost_s < since_s)
            since_s = n->absence.lost_s;
    return since_s;
}

/* Says for whom a wait of some seconds is, and how long still: ever more rarely. The first time it
 * is a warning. */
static void tell_wait(sl_agent *a) {
    const double now_s = a->side.now_s, since_s = waits_since_s(a);
    const bool anew = since_s > a->times.told_s;
    const char *warns = anew && !a->settings.meets ? "warning: " : ""; /* a session's call warns */
    if (anew)
        a->times.tell_after_s = tell_every_s;
    if (now_s - (anew ? since_s : a->times.told_s) < a->times.tell_after_s)
        return;
    a->times.told_s = now_s;
    a->times.tell_after_s =
        a->times.tell_after_s < tell_every_max_s / 2 ? 2 * a->times.tell_after_s : tell_every_max_s;
    tell_lost(a, warns);
    if (a->phase == PHASE_TRAINING)
        tell_wait_in_training(a, warns);
    else
        tell_wait_for_all(a, warns);
}

/* ---- phases ---- */

/* Have both said HELLO, where they have to, and this one heard whether its memory is read? */
static bool is_ready(const sl_neighbour *n) {
    return !n->near || (n->link.agreed && n->link.hello_sent && !n->link.awaits);
}

/* All are there, with their first models. Until then, a loss ends the run. */
static void start_rounds(sl_agent *a) {
    sl_error error;
    a->initialized = false;
    if (sl_members_start(a, &error) != 0)
        sl_agent_fail(a, &error, error.text);
    else
        sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_START});
    sl_members_hear_early(a);
}

static void start(sl_agent *a) {
    a->times.progress_s = sl_clock_seconds();
    a->times.began_s = a->times.progress_s - a->record.times.total;
    sl_saving_log(a);
    sl_contacts_log_edges(a);
    sl_contacts_log_lost(a); /* while they agreed on a round */
    atomic_store(&a->saving.trains, true);
    if (a->settings.meets)
        sl_worker_give(a->worker, &(sl_job){.initial = sl_machine_model(&a->node)});
    else
        start_rounds(a);
}

/* The others train. It is one that they have gone on without, until a view has it. */
static void begin_outside(sl_agent *a) {
    sl_error error;
    a->phase = PHASE_TRAINING;
    a->side.now.trains = true;
    a->times.began_s = a->times.progress_s = sl_clock_seconds();
    sl_saving_log(a);
    if (sl_members_start_outside(a, &error) != 0)
        sl_agent_fail(a, &error, error.text);
}

/* Others of its run have gone on without this rank. */
static bool yields(sl_agent *a) {
    uint32_t i = 0;
    while (i < a->neighbour_count && !a->neighbours[i].dialing.ahead)
        i++;
    if (i == a->neighbour_count || !a->settings.yields)
        return false;
    sl_error error;
    sl_fail_edge(&error, SL_ETRAINS, a->neighbours[i].rank, a->side.rank, 0,
                 "agent %u trains already", a->neighbours[i].rank);
    sl_agent_fail(a, &error, error.text);
    return true;
}

static void begin_training(sl_agent *a) {
    if (a->settings.joins) {
        begin_outside(a);
        return;
    }
    if (yields(a))
        return;
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (!is_ready(n))
            return;
    a->phase = PHASE_TRAINING;
    a->side.now.trains = true;
    a->times.progress_s = sl_clock_seconds();
    sl_agent_look(a); /* nobody is to come up any more */
    if (a->saving.agreement == SL_AGREED)
        start(a);
}

/* Before its first round an agent that goes on agrees with the others on where. */
static void agree(sl_agent *a) {
    sl_error error;
    if (a->saving.agreement == SL_AGREED)
        return;
    const int agreed = sl_saving_agree(a, &error);
    if (agreed < 0)
        sl_agent_fail(a, &error, error.text);
    else if (agreed > 0)
        start(a);
}

/* It needs nothing more of this agent, which needs nothing of it: or it does not come back. */
static bool is_through(const sl_agent *a, const sl_neighbour *n) {
    if (!n->link.agreed)
        return n->process.parted || n->absence.gone || n->absence.lost_s == 0 ||
               sl_contacts_left_s(a, n) <= 0;
    return n->process.bye_sent && n->process.bye_received && sl_stream_is_through(&n->stream) &&
           !sl_channel_waits(n->link.channel) && sl_connection_sending(n->link.connection) == 0;
}

static void say_goodbye(sl_agent *a) {
    bool all = !sl_worker_busy(a->worker);
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
        if (sl_calls_are_told(&a->calls, n))
            sl_neighbour_say_bye(n);
        all = all && is_through(a, n);
    }
    if (all)
        a->phase = PHASE_OVER;
}

/* Of a neighbour that has not come, and has not said why. */
static const char *hint_of(const sl_agent *a, const sl_neighbour *n) {
    if (n->dialing.refusal[0] != '\0')
        return "";
    return n->rank < a->side.rank ? "; is it running, with this roster, and can it be reached from "
                                    "here? (behind NAT only the highest rank)"
                                  : "; is it running, with this roster?";
}

static void fail_connecting(sl_agent *a) {
    const sl_neighbour *n = NULL;
    for (uint32_t i = 0; i < a->neighbour_count; i++)
        if (!is_ready(&a->neighbours[i]) && (n == NULL || n->dialing.refusal[0] == '\0'))
            n = &a->neighbours[i];
    sl_error error;
    sl_fail_edge(&error, SL_EPEER, n->rank, a->side.rank, 0,
                 "%s%sagent %u (%.200s:%u) did not come up within %g s "
                 "(transport.connect_timeout_s)%s",
                 n->dialing.refusal, n->dialing.refusal[0] != '\0' ? "; " : "", n->rank,
                 sl_roster_host(a->side.roster, n->rank), sl_roster_port(a->side.roster, n->rank),
                 a->side.limits.connect_timeout_s, hint_of(a, n));
    sl_agent_fail(a, &error, error.text);
}

static void fail_call(sl_agent *a) {
    char what[512];
    uint32_t peer;
    sl_error error;
    sl_calls_name_wait(&a->calls, what, sizeof what, &peer);
    sl_fail_node(&error, SL_EPEER, a->side.rank, a->side.now.round,
                 "waited %g s (transport.round_timeout_s) for %s",
                 a->settings.experiment->transport.round_timeout_s, what);
    error.peer = peer;
    sl_agent_fail(a, &error, error.text);
}

/* The node does not know its receivers' connections. */
static bool fail_untaken(sl_agent *a) {
    sl_error error;
    if (!sl_waits_name_taker(a, &error))
        return false;
    const size_t used = strlen(error.text);
    snprintf(error.text + used, sizeof error.text - used, " in time");
    sl_agent_fail(a, &error, error.text);
    return true;
}

/* The others may have left out all that it reaches: then nobody answers. */
static bool fail_unagreed(sl_agent *a) {
    sl_error missing;
    const bool rests = sl_cohort_rests(&a->cohort) && sl_machine_name_wait(&a->node, &missing) == 0;
    if (rests)
        sl_agent_fail_here(a, SL_EPEER,
                           "the members have not agreed on who goes on within %g s "
                           "(transport.round_timeout_s)",
                           a->settings.experiment->transport.round_timeout_s);
    return rests;
}

/* A gradient may take as long as it likes. A call waits for the others; rounds that it answers
 * meanwhile are progress too. */
static void fail_late(sl_agent *a) {
    if (sl_cohort_is_outside(&a->cohort))
        sl_members_stay_out(a, "nobody of them agreed on its return in time");
    else if (a->averaging.stage == SL_AVERAGING_GATHERS)
        return; /* others take as long as they like */
    else if (a->calls.current.kind != SL_CALL_NONE)
        fail_call(a);
    else if (!sl_worker_busy(a->worker) && !fail_untaken(a) && !fail_unagreed(a))
        sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_DEADLINE});
}

static void check_deadlines(sl_agent *a) {
    double now_s = a->side.now_s;
    double patience_s = a->settings.experiment->transport.round_timeout_s;
    if (a->phase == PHASE_CONNECTING)
        begin_training(a); /* the last HELLO may just have come, or gone */
    if (a->phase == PHASE_CONNECTING && now_s > a->times.deadline_s)
        fail_connecting(a);
    else if (a->phase == PHASE_TRAINING && now_s - sl_waits_patient_s(a) > patience_s)
        fail_late(a);
    else if (a->phase == PHASE_GOODBYE && now_s > a->times.deadline_s)
        a->phase = PHASE_OVER; /* its own part is done: a missing goodbye is no error */
}

static void on_tick(void *context) {
    sl_agent *a = context;
    a->tick_due = true;
}

/* After the fabric has been polled: what came while this process was held up counts as heard. */
static void tick(sl_agent *a) {
    a->tick_due = false;
    sl_agent_look(a);
    sl_contacts_tick(a);
    check_deadlines(a);
    sl_members_tick(a);
    sl_returning_tick(a);
    sl_trust_tick(a);
    check_device(a);
    tell_wait(a);
    if (a->settings.observer.alive != NULL)
        a->settings.observer.alive(a->settings.observer.context);
}

/* ---- the loop ---- */

static void advance_calls(sl_agent *a) {
    sl_error error;
    /* After the last round no view begins any more, unless it has begun for some. */
    const sl_calls_news news = {.turns = a->averaging.stage <= SL_AVERAGING_GATHERS
                                             ? sl_members_turn(a)
                                             : a->node.own != NULL && sl_members_is_behind(a),
                                .holds = sl_averaging_holds(a),
                                .alarmed = a->cohort.alarmed};
    if (sl_calls_advance(&a->calls, &news, &error) != 0)
        sl_agent_fail(a, &error, error.text);
    if (sl_averaging_ends_views(a))
        sl_members_step(a, (sl_membership_event){.type = SL_MEMBERSHIP_ENDS});
}

/* True when something moved. */
static bool move(sl_agent *a) {
    const double before_s = a->side.now_s;
    a->side.now.retry_soon = false;
    a->side.now_s = sl_clock_seconds();
    if (a->side.goes_on && a->side.now_s - before_s > lag_s)
        sl_contacts_forgive(a, a->side.now_s - before_s);
    int happened = sl_fabric_poll(a->side.fabric);
    if (a->tick_due)
        tick(a);
    if (a->phase == PHASE_CONNECTING)
        begin_training(a);
    if (a->phase == PHASE_TRAINING)
        agree(a);
    if (a->phase == PHASE_TRAINING && a->initialized)
        start_rounds(a);
    if (a->phase == PHASE_GOODBYE)
        say_goodbye(a);
    if (a->phase == PHASE_TRAINING || a->phase == PHASE_GOODBYE)
        advance_calls(a);
    if (a->averaging.stage != SL_AVERAGING_NONE &&
        sl_averaging_advance(a, sl_members_leave_one_out(a), sl_members_is_behind(a)))
        sl_agent_finish(a);
    sl_members_convict(a);
    sl_members_lose_left(a);
    sl_cutting_go_on(a);
    if (sl_own_cut_is_due(a))
        sl_members_renew(a);
    const bool turned = sl_agent_turn(a);
    bool sent = sl_agent_send_parts(a) || turned;
    sent = sl_state_transfer_give(a) || sent;
    sl_agent_tell_mixed(a);
    return sl_returning_step_aside(a) || sl_members_go_on(a) || sent || happened > 0;
}

/* What the job asked for before it ended goes first: it may have found its numbers wrong. */
static bool take_result(sl_agent *a) {
    if (!sl_worker_done(a->worker))
        return false;
    if (atomic_load(&a->saving.wishes) != 0)
        on_stop(a);
    if (a->phase != PHASE_OVER)
        sl_agent_on_worker(a);
    return true;
}

/* Before sleeping, some more looks, with the processor offered to others: the
 * worker may be about to have its result, or a neighbour on this host to send, and waking up costs
 * more than looking. Bounded, only while the processor comes back soon, and only while a round
 * waits for data, or for a job that takes no longer than that. */
static bool linger(sl_agent *a) {
    const bool computes = sl_worker_busy(a->worker);
    if (computes && !sl_worker_is_quick(a->worker))
        return false;
    bool soon = true;
    for (int look = 0; look < LOOKS && soon && a->phase == PHASE_TRAINING; look++) {
        soon = sl_clock_yield();
        if (computes ? take_result(a) : move(a))
            return true;
    }
    return false;
}

/* What the node stops for is copied: where receivers' data comes, too, after a few looks, which may
 * bring their answer; what it stops for next, at once. True when something moved. */
static bool go_on(sl_agent *a, bool *copies) {
    const bool looks = a->outbox.message.mutual && !*copies;
    *copies = false;
    if (move(a) || (looks && linger(a)))
        return true;
    *copies = sl_agent_settle(a, true);
    return *copies || (!looks && linger(a));
}

static int run_loop(sl_agent *a) {
    sl_error error;
    bool copies = false;
    int result = 0;
    for (unsigned pass = 0; a->phase != PHASE_OVER && result == 0; pass++) {
        const bool moved = go_on(a, &copies);
        if (moved && pass % PASSES_BETWEEN_LOOPS != 0)
            continue;
        bool block = !moved && a->phase != PHASE_OVER && sl_fabric_may_block(a->side.fabric);
        if (block && a->node.own == NULL && sl_node_before_sleep(a->node.rounds)) {
            sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_NOTIFIED});
            continue;
        }
        result = sl_loop_pass(a->loop, block, a->side.now.retry_soon ? 1 : 0, &error);
    }
    if (result != 0)
        sl_agent_fail(a, &error, error.text);
    return a->error.code;
}

int sl_agent_open_loop(sl_agent *a, sl_error *error) {
    int descriptors[2];
    const int count = sl_fabric_descriptors(a->side.fabric, descriptors);
    int result = sl_loop_open(&a->loop, error);
    for (int i = 0; i < count && result == 0; i++)
        result = sl_loop_watch(a->loop, descriptors[i], NULL, NULL, error);
    const struct {
        int descriptor;
        void (*on_readable)(void *agent);
    } watched[] = {{sl_worker_descriptor(a->worker), sl_agent_on_worker},
                   {a->stop_descriptor, on_stop},
                   {a->notify_fd, sl_agent_on_notified},
                   {a->calls.desk.descriptor, sl_agent_on_call}}; /* if they are open */
    for (int i = 0; i < 3 + a->calls.open && result == 0; i++)
        result = sl_loop_watch(a->loop, watched[i].descriptor, watched[i].on_readable, a, error);
    return result != 0 ? result : sl_loop_tick(a->loop, TICK_MS, on_tick, a, error);
}

/* Tells every neighbour why, and stays a moment, so that what is on the way arrives before the
 * connections are cut. A neighbour that has not agreed yet would look for this agent until its time
 * is over: a little longer, it is still connected, to be told. */
static void tell_everyone(sl_agent *a) {
    double until_s = sl_clock_seconds() + farewell_s;
    bool waiting = true;
    a->parting = true;
    a->side.now.unbegun =
        a->side.now.unbegun || (a->cohort.membership == NULL && !a->settings.joins);
    sl_agent_look(a);
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (n->near && !n->link.agreed)
            until_s = sl_clock_seconds() + farewell_connecting_s;
    while (waiting && a->side.now_s < until_s) {
        a->side.now_s = sl_clock_seconds();
        sl_fabric_poll(a->side.fabric);
        sl_contacts_tick(a);
        waiting = false;
        for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
            sl_neighbour_tell(n, a->cause);
            waiting = waiting || n->link.connection != NULL || sl_contacts_awaits(a, n);
        }
        if (waiting)
            sl_clock_sleep(farewell_look_s);
    }
}

/* Of a run that has come to its end, beside others. */
static void tell_apart(sl_agent *a) {
    const sl_record *r = &a->record;
    if (r->round.round == 0 || r->bytes_sent + r->bytes_received > 0 ||
        sl_topology_nodes(a->settings.experiment->topology) == 1)
        return;
    const sl_algorithm_config *config = &a->plan.config;
    const uint64_t interval = sl_algorithm_interval(sl_algorithm_of(config, NULL), config);
    char why[128] = "its neighbours were gone before the first";
    if (interval > r->round.round)
        snprintf(why, sizeof why,
                 "there is one each %" PRIu64 " rounds (algorithm.local_steps, or period)",
                 interval);
    sl_agent_notice(a,
                    "warning: no exchange took place in %" PRIu64
                    " rounds: this agent has trained alone; %s",
                    r->round.round, why);
}

/* The first roster names the topology's nodes. A further rank that joins has a line of its own. */
static int check_roster(const sl_agent *a, uint32_t count, sl_error *error) {
    const sl_experiment *e = a->settings.experiment;
    const uint32_t nodes = sl_topology_nodes(e->topology), ranks = sl_experiment_ranks(e);
    if (count < nodes || count > ranks)
        return sl_fail(error, SL_EINVAL,
                       "the roster names %u agents, the topology has %u nodes; %s", count, nodes,
                       ranks == nodes ? "they must be equal"
                                      : "beyond these it may name membership.joiners more");
    return a->settings.rank < count
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "the roster names %u agents, and not this one, rank %u: add lines for the "
                         "ranks from %u on",
                         count, a->settings.rank, count);
}

int sl_agent_run(sl_agent *a, sl_roster *roster, sl_error *error) {
    int result = check_roster(a, sl_roster_count(roster), error);
    if (result == 0)
        result = sl_saving_begin(a, error);
    if (result != 0)
        return result;
    sl_roster_be(roster, a->settings.rank);
    const sl_lookup_wait wait = {.timeout_s = a->side.limits.connect_timeout_s,
                                 .stop_fd = a->stop_descriptor,
                                 .notice = a->settings.observer.notice,
                                 .context = a->settings.observer.context};
    result = sl_roster_find_addresses(roster, &wait, error);
    if (result != 0)
        return result;
    result = sl_guard_take_roster(&a->side.guard, roster, a->settings.rank, error);
    if (result != 0)
        return result;
    a->side.roster = roster;
    if (sl_roster_run(roster) != 0)
        a->side.hello.run_id = sl_roster_run(roster);
    a->side.now_s = sl_clock_seconds();
    a->times.deadline_s = a->side.now_s + a->side.limits.connect_timeout_s;
    sl_trust_be(a, SL_TRUST_RUNS);
    result = run_loop(a);
    sl_trust_be(a, SL_TRUST_OVER);
    /* An agent that is stopped before training began may be started again: nobody is told, and the
     * others wait for it. */
    if (result != 0 && (a->error.code != SL_ESTOPPED || a->times.began_s != 0))
        tell_everyone(a);
    if (result == 0)
        tell_apart(a);
    if (result == 0)
        result = sl_saving_outcome(a, &a->error);
    const sl_log_entry end = sl_log_end(a->record.round.round, &a->error);
    sl_agent_log(a, &end);
    if (result != 0 && error != NULL)
        *error = a->error;
    return result;
}

/* ---- what is told ---- */

uint16_t sl_agent_port(const sl_agent *agent) {
    return sl_fabric_port(agent->side.fabric);
}
