/* progress.c - what threads other than the loop's see of an agent, and ask of it; see
 * starling/agent.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/state.h"
#include "base/clock.h"
#include "starling/text.h"

void sl_agent_notice(sl_agent *a, const char *format, ...) {
    char text[SL_ERROR_TEXT_MAX], shown[SL_ERROR_TEXT_MAX];
    if (a->settings.observer.notice == NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sl_text_show(shown, sizeof shown, text, strlen(text));
    a->settings.observer.notice(a->settings.observer.context, shown);
}

void sl_agent_log(sl_agent *a, const sl_log_entry *entry) {
    const sl_observer *o = &a->settings.observer;
    if (o->log == NULL || a->times.began_s == 0)
        return;
    sl_log_entry mine = *entry;
    mine.rank = a->side.rank;
    o->log(o->context, &mine);
}

void sl_agent_note_saved(sl_agent *a) {
    pthread_mutex_lock(&a->shown.mutex);
    a->shown.progress.saved_s = sl_clock_seconds();
    pthread_mutex_unlock(&a->shown.mutex);
}

void sl_agent_wish(sl_agent *agent, unsigned bit) {
    atomic_fetch_or(&agent->saving.wishes, bit);
    sl_signal_give(agent->stop_descriptor);
}

void sl_agent_stop(sl_agent *agent) {
    sl_agent_wish(agent, SL_WISH_STOP);
}

void sl_agent_checkpoint(sl_agent *agent, bool leave) {
    if (!leave && !atomic_load(&agent->saving.trains))
        return; /* while it looks for addresses, it would take that for a request to stop */
    sl_agent_wish(agent, 1u << (leave ? SL_CUT_LEAVE : SL_CUT_GO_ON));
}

void sl_agent_leave(sl_agent *agent) {
    sl_agent_wish(agent, SL_WISH_LEAVE);
}

void sl_agent_end(sl_agent *a, const sl_error *why) {
    pthread_mutex_lock(&a->shown.mutex);
    if (a->shown.end.code == 0)
        a->shown.end = *why;
    pthread_mutex_unlock(&a->shown.mutex);
    sl_agent_stop(a);
}

sl_error sl_agent_end_asked(sl_agent *a) {
    pthread_mutex_lock(&a->shown.mutex);
    sl_error error = a->shown.end;
    pthread_mutex_unlock(&a->shown.mutex);
    if (error.code == 0)
        sl_fail_node(&error, SL_ESTOPPED, a->side.rank, a->side.now.round, "stopped on request");
    return error;
}

/* A process that came later does not know why those went that it has never met. */
static bool is_missing(const sl_agent *a, const sl_neighbour *n) {
    return n->rank < sl_topology_nodes(a->settings.experiment->topology) &&
           !sl_members_has(a, n->rank) && !n->absence.left &&
           !n->process.bye_received && /* by agreement, or at the end */
           (!a->side.joins || n->process.incarnation != 0);
}

static uint32_t count_missing(const sl_agent *a) {
    uint32_t count = 0;
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        count += is_missing(a, n);
    return count;
}

bool sl_agent_missing(const sl_agent *a, uint32_t index, uint32_t *rank, uint64_t *round) {
    if (a->cohort.view.members.count == 0)
        return false;
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
        if (!is_missing(a, n) || index-- > 0)
            continue;
        *rank = n->rank;
        *round = n->absence.lost.round > 0 ? (uint64_t)n->absence.lost.round : 0;
        return true;
    }
    return false;
}

bool sl_agent_lacked_quorum(const sl_agent *a) {
    return a->saving.minority;
}

bool sl_agent_members(const sl_agent *a, const uint32_t **ranks, uint32_t *count, bool *minority) {
    const sl_grouping *g = &a->cohort.grouping;
    *ranks = g->ranks;
    *count = a->cohort.view.members.count > 0 ? g->count : 0;
    *minority = *count > 0 && sl_is_minority(sl_topology_nodes(a->settings.experiment->topology),
                                             count_missing(a));
    return *count > 0;
}

static sl_agent_edge edge_to(const sl_neighbour *n) {
    sl_agent_edge edge = {.rank = n->rank,
                          .agreed = n->link.agreed,
                          .memory = n->process.lends && n->process.borrows,
                          .exchange = n->process.exchange,
                          .awaited = n->awaited,
                          .heard = n->link.beats.said_s > 0,
                          .ago_s = n->side->now_s - n->link.beats.said_s,
                          .said = n->link.beats.said.own,
                          .waits_for = n->link.beats.said.waits_for,
                          .root = n->link.beats.said.root,
                          .traffic = n->traffic};
    if (n->link.agreed)
        sl_guard_describe(&n->side->guard, n->rank, edge.protection);
    return edge;
}

sl_agent_counters sl_agent_counters_read(const sl_agent *a) {
    sl_agent_counters counters = a->side.counters;
    counters.payload_bytes_copied = a->side.copies.copied;
    counters.frames_dropped = a->node.own == NULL ? sl_node_dropped(a->node.rounds) : 0;
    counters.receive_buffer_bytes = (size_t)a->neighbour_count * a->side.limits.receive_buffers *
                                    sl_machine_part_bytes_max(&a->node);
    counters.vector_bytes = sl_machine_memory(&a->node);
    return counters;
}

/* ---- who takes part ---- */

static uint32_t count_members(const sl_agent *a) {
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < a->side.ranks; rank++)
        count += sl_members_has(a, rank);
    return count;
}

static bool is_away(const sl_neighbour *n) {
    return (n->absence.gone || (!n->link.agreed && n->absence.lost_s > 0)) && !n->absence.left &&
           !n->process.bye_received;
}

/* Under the mutex. Who had never been connected has been away since the others were seen to go
 * on without it. */
static void look_for_lost(sl_agent *a) {
    sl_agent_shown *s = &a->shown;
    s->lost_count = 0;
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a) && a->times.began_s > 0; n++) {
        const bool has = sl_members_has(a, n->rank);
        if (has ? !is_away(n) : !is_missing(a, n)) {
            n->missed_s = 0;
            continue;
        }
        if (n->absence.lost_s > 0)
            n->missed_s = n->absence.lost_s;
        else if (n->missed_s == 0)
            n->missed_s = a->side.now_s;
        s->lost[s->lost_count++] = (sl_agent_lost){n->rank, has, a->side.now_s - n->missed_s};
    }
}

void sl_agent_measured(sl_agent *a, const sl_round *round) {
    sl_agent_shown *s = &a->shown;
    const double before = s->distance, now = round->neighbour_distance;
    if (!(now >= 0))
        return;
    const double past = (double)round->round - (double)s->measured_round;
    s->contraction = now > 0 && before > 0 && past > 0 ? pow(now / before, 1 / past) : NAN;
    s->distance = now;
    s->measured_round = round->round;
}

void sl_agent_look(sl_agent *a) {
    const sl_heartbeat *says = &a->side.now.says;
    char whom[SL_AGENT_WAIT_MAX], root[SL_AGENT_WAIT_MAX / 2];
    sl_waits_look(a);
    if (sl_waits_name(a, whom, sizeof whom)) {
        const size_t used = strlen(whom);
        sl_waits_name_root(a, root, sizeof root);
        snprintf(whom + used, sizeof whom - used, "%s", root);
    }
    pthread_mutex_lock(&a->shown.mutex);
    sl_agent_progress *p = &a->shown.progress;
    const double since_s = a->shown.seen_s > 0 ? a->side.now_s - a->shown.seen_s : 0;
    p->record = a->record;
    p->own = says->own;
    p->waits = sl_heartbeat_waits(says) && sl_heartbeat_knows_root(says);
    p->root = says->root;
    p->distance = a->shown.distance;
    p->contraction = a->shown.contraction;
    p->ended_s = a->times.began_s + a->record.times.total;
    p->members = count_members(a);
    p->view = a->side.now.view;
    p->rests = a->cohort.minority_s > 0;
    p->exchange = a->side.now.exchange;
    p->counters = sl_agent_counters_read(a);
    memcpy(p->waits_for, whom, sizeof whom);
    const bool anew = floor(a->side.now_s) > floor(a->shown.seen_s);
    a->shown.seen_s = a->side.now_s;
    a->shown.edge_count = 0;
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
        n->traffic.waited_s += n->awaited ? since_s : 0;
        if (n->link.agreed && (anew || n->traffic.round_trip_s == 0))
            n->traffic.round_trip_s = sl_connection_round_trip_s(n->link.connection);
        if (n->near)
            a->shown.edges[a->shown.edge_count++] = edge_to(n);
    }
    look_for_lost(a);
    pthread_mutex_unlock(&a->shown.mutex);
}

/* The loop may be held up: what it saw has grown older since. */
static double since_seen_s(const sl_agent *a) {
    return a->shown.seen_s > 0 ? sl_clock_seconds() - a->shown.seen_s : 0;
}

sl_agent_progress sl_agent_progress_read(sl_agent *a) {
    pthread_mutex_lock(&a->shown.mutex);
    sl_agent_progress progress = a->shown.progress;
    progress.ago_s = since_seen_s(a);
    progress.own.still_s += progress.ago_s;
    progress.root.still_s += progress.ago_s;
    pthread_mutex_unlock(&a->shown.mutex);
    return progress;
}

bool sl_agent_edge_read(sl_agent *a, uint32_t index, sl_agent_edge *out) {
    pthread_mutex_lock(&a->shown.mutex);
    const bool there = index < a->shown.edge_count;
    if (there) {
        *out = a->shown.edges[index];
        out->ago_s += since_seen_s(a);
    }
    pthread_mutex_unlock(&a->shown.mutex);
    return there;
}

bool sl_agent_lost_read(sl_agent *a, uint32_t index, sl_agent_lost *out) {
    pthread_mutex_lock(&a->shown.mutex);
    const bool there = index < a->shown.lost_count;
    if (there) {
        *out = a->shown.lost[index];
        out->since_s += since_seen_s(a);
    }
    pthread_mutex_unlock(&a->shown.mutex);
    return there;
}

void sl_agent_tell_mixed(sl_agent *a) {
    const sl_task *task = &a->settings.task;
    sl_range range;
    const float *model;
    if (task->mixed == NULL || a->node.rounds == NULL)
        return;
    if (a->tells.task.round != a->side.now.round)
        a->tells.task = (sl_told_ranges){.round = a->side.now.round};
    for (; sl_node_mixed(a->node.rounds, a->tells.task.count, &range, &model);
         a->tells.task.count++)
        task->mixed(task->context, a->side.rank, model, range.from, range.count);
}
