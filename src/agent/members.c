/* members.c - see members.h. */
#include "agent/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"

static void be(sl_agent *a, sl_part_taken part) {
    a->cohort.part = part;
    if (sl_cohort_is_outside(&a->cohort))
        a->cohort.outside_s = a->side.now_s;
}

/* ---- opening ---- */

int sl_members_room(sl_agent *a, sl_error *error) {
    a->cohort.room = calloc(2 * (a->side.ranks + 1u), sizeof *a->cohort.room);
    a->cohort.broken = calloc(sl_broken_max(a->side.ranks) + 1u, sizeof *a->cohort.broken);
    return a->cohort.room != NULL && a->cohort.broken != NULL
               ? 0
               : sl_fail(error, SL_ENOMEM, "agent %u: out of memory", a->settings.rank);
}

int sl_members_open(sl_agent *a, sl_error *error) {
    sl_cohort *g = &a->cohort;
    const uint32_t nodes = a->side.ranks;
    if (!a->side.goes_on)
        return 0;
    g->bytes = malloc(sl_letter_bytes_max(nodes));
    if (g->bytes == NULL)
        return sl_fail(error, SL_ENOMEM, "agent %u: out of memory for %u members", a->side.rank,
                       nodes);
    return sl_letter_open(&g->letter, nodes, error);
}

void sl_members_close(sl_agent *a) {
    sl_cohort *g = &a->cohort;
    sl_membership_close(&g->membership);
    sl_letter_close(&g->letter);
    sl_grouping_close(&g->grouping);
    free(g->bytes);
    free(g->room);
    free(g->broken);
}

/* first: NULL: it joins. */
static int open_membership(sl_agent *a, const sl_view *first, sl_error *error) {
    const sl_experiment *e = a->settings.experiment;
    const sl_algorithm *algorithm = sl_algorithm_of(&e->algorithm, error);
    if (algorithm == NULL)
        return SL_EINVAL;
    const sl_membership_settings settings = {
        .rank = a->side.rank,
        .incarnation = first != NULL ? SL_FOUNDER : a->side.incarnation,
        .ranks_max = a->side.ranks,
        .quorum = e->membership.quorum,
        .period = (uint32_t)sl_algorithm_interval(algorithm, &e->algorithm),
        .grace_s = a->side.limits.timeout_s,
        .first = first,
        .first_begins = a->cohort.resumed.number > 0,
        .round = a->saving.resumed};
    return sl_membership_open(&a->cohort.membership, &settings, error);
}

int sl_members_start(sl_agent *a, sl_error *error) {
    if (!a->side.goes_on)
        return 0;
    sl_view first = sl_first_view_members(a, a->cohort.room);
    if (a->node.own == NULL) /* else no number is common to all */
        first.exchange = sl_node_exchange(a->node.rounds);
    const int result = open_membership(a, &first, error);
    if (result != 0)
        return result;
    if (a->cohort.resumed.number > 0) { /* the node rests before the first round of a view */
        sl_members_alarm(a);
        if (a->node.own != NULL)
            a->cohort.rest = SL_NODE_COMES_TO_REST;
        else
            sl_node_hold(a->node.rounds, a->saving.resumed);
        return 0;
    }
    sl_members_step(
        a, (sl_membership_event){.type = SL_MEMBERSHIP_READY}); /* nothing keeps the first round */
    if (a->node.own == NULL)
        sl_node_hold(a->node.rounds, a->saving.resumed + 1);
    return 0;
}

int sl_members_start_outside(sl_agent *a, sl_error *error) {
    const int result = open_membership(a, NULL, error);
    if (result != 0)
        return result;
    sl_members_alarm(a);
    a->cohort.rest = SL_NODE_RESTS;
    be(a, SL_IS_NEW);
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
        n->successor = SL_ANY_SUCCESSOR;
        n->absence.sought_s = sl_members_expects(a, n) ? a->side.now_s : 0;
    }
    return 0;
}

/* ---- what members say ---- */

/* A message is longer than a frame: it is cut. It is not said to an agent that is away: what it
 * says is said again, or is old. */
static void post(sl_agent *a, uint32_t to, const sl_membership_message *message) {
    sl_neighbour *n = sl_agent_neighbour(a, to);
    const size_t bytes = sl_letter_bytes(message);
    sl_letter_encode(message, a->cohort.bytes);
    for (size_t at = 0; n->link.agreed && at < bytes; at += SL_FRAME_TEXT_MAX) {
        const size_t left = bytes - at;
        const sl_frame frame = {
            .type = SL_FRAME_MEMBERSHIP,
            .part = (uint32_t)at,
            .step = (uint32_t)bytes,
            .payload_bytes = (uint32_t)(left < SL_FRAME_TEXT_MAX ? left : SL_FRAME_TEXT_MAX)};
        sl_neighbour_send(n, frame, a->cohort.bytes + at, true);
    }
}

/* Puts it together; true: it is whole now. */
static bool collect(const sl_agent *a, sl_neighbour *n, const sl_frame *frame,
                    const uint8_t *payload) {
    if (frame->part == 0) {
        n->letter.come = n->letter.size = 0;
        uint8_t *room =
            frame->step > 0 &&
                    frame->step <= sl_letter_bytes_max(sl_experiment_ranks(a->settings.experiment))
                ? realloc(n->letter.bytes, frame->step)
                : NULL;
        if (room == NULL)
            return false;
        n->letter.bytes = room;
        n->letter.size = frame->step;
    }
    if (frame->part != n->letter.come || frame->payload_bytes > n->letter.size - n->letter.come)
        return false;
    memcpy(n->letter.bytes + n->letter.come, payload, frame->payload_bytes);
    n->letter.come += frame->payload_bytes;
    return frame->payload_bytes > 0 && n->letter.come == n->letter.size;
}

void sl_members_alarm(sl_agent *a) {
    if (a->cohort.alarmed)
        return;
    a->cohort.alarmed = true;
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (!n->near && !n->link.agreed && sl_members_expects(a, n))
            n->absence.sought_s = a->side.now_s;
}

bool sl_members_expects(const sl_agent *a, const sl_neighbour *n) {
    return sl_first_view_has(a, n->rank) || n->process.incarnation != 0;
}

static void take_letter(sl_agent *a, const sl_neighbour *n) {
    sl_letter *letter = &a->cohort.letter;
    if (sl_letter_decode(letter, n->letter.bytes, n->letter.size) != NULL ||
        letter->message.from != n->rank || letter->message.incarnation != n->process.id)
        return;
    sl_members_alarm(a);
    sl_members_step(
        a, (sl_membership_event){.type = SL_MEMBERSHIP_MESSAGE, .message = &letter->message});
}

void sl_members_hear(sl_agent *a, sl_neighbour *n, const sl_frame *frame, const uint8_t *payload) {
    if (a->side.goes_on && collect(a, n, frame, payload) && a->cohort.membership != NULL)
        take_letter(a, n);
}

void sl_members_hear_early(sl_agent *a) {
    if (a->cohort.membership == NULL)
        return;
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (n->letter.size > 0 && n->letter.come == n->letter.size)
            take_letter(a, n);
}

/* ---- views ---- */

int sl_members_regroup(sl_agent *a, const sl_view *view, sl_grouping *out, sl_error *error) {
    uint32_t *ranks = calloc(view->count, sizeof *ranks);
    if (ranks == NULL)
        return sl_fail(error, SL_ENOMEM, "agent %u: out of memory for a view", a->side.rank);
    for (uint32_t i = 0; i < view->count; i++)
        ranks[i] = view->members[i].rank;
    const int result = sl_grouping_open(out, a->settings.experiment, a->settings.task.dimension,
                                        ranks, view->count, error);
    free(ranks);
    return result;
}

/* It begins anew, with the sponsor's model. */
static void take_model(sl_agent *a) {
    const size_t bytes = a->settings.task.dimension * sizeof(float);
    if (!sl_cohort_is_new(&a->cohort) && a->node.own == NULL)
        sl_node_forget(a->node.rounds);
    atomic_store(&a->saving.trains, true);
    a->side.vec->copy_in(sl_machine_model(&a->node), a->cohort.transfer.model, bytes);
    sl_state_transfer_end(a);
    a->cohort.rested = (sl_round){0}; /* of that model it has ended none */
    a->cohort.told = 0;
}

static int share_samples(const sl_agent *a, const sl_view *view, sl_error *error) {
    const sl_task *t = &a->settings.task;
    const uint32_t rank = a->side.rank, place = sl_view_place(view, rank);
    return t->members != NULL ? t->members(t->context, rank, place, view->count, error) : 0;
}

/* Notes which process may come in a neighbour's place: the newest view's, or any, if it has none.
 */
static void find_successors(sl_agent *a) {
    const sl_view *view = sl_membership_newest(a->cohort.membership);
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a) && a->cohort.alarmed; n++) {
        const uint32_t place = view != NULL ? sl_view_place(view, n->rank) : 0;
        n->successor = view == NULL || place == view->count ? SL_ANY_SUCCESSOR
                                                            : view->members[place].incarnation;
        if (n->link.agreed && sl_neighbour_has_other(n, n->process.id) && n->absence.sought_s == 0)
            n->absence.sought_s = a->side.now_s; /* the other one */
    }
}

/* A member that is not connected is looked for: also another process of a rank that has left
 * before, and one that this agent has never met. */
static void seek(const sl_agent *a, sl_neighbour *n) {
    n->process.parted = false;
    if (!n->absence.gone && n->absence.lost_s == 0 && n->absence.sought_s == 0)
        n->absence.sought_s = a->side.now_s;
}

/* The node has begun the view. */
static void turn_neighbours(sl_agent *a, const sl_view *view) {
    const uint32_t *peers, count = sl_machine_peers(&a->node, &peers);
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
        n->near = false;
        for (uint32_t k = 0; k < count; k++)
            n->near = n->near || peers[k] == n->rank;
        if (!n->link.agreed && sl_view_place(view, n->rank) < view->count)
            seek(a, n);
        if (n->process.ends == SL_ABORT_DROPS)
            n->process.cause[0] = '\0';
    }
    a->side.now.varies = sl_machine_varies(&a->node);
    sl_members_tell_broken(a, view);
}

/* Has the node's view these members? */
static bool is_same(const sl_agent *a, const sl_grouping *next) {
    uint32_t members = 0;
    for (uint32_t rank = 0; rank < a->side.ranks; rank++)
        members += sl_members_has(a, rank);
    bool same = members == next->count;
    for (uint32_t i = 0; i < next->count; i++)
        same = same && sl_members_has(a, next->ranks[i]);
    return same;
}

static void begin_view(sl_agent *a, const sl_view *view) {
    sl_cohort *g = &a->cohort;
    sl_grouping grouping = {0};
    sl_error error;
    if (sl_members_regroup(a, view, &grouping, &error) != 0 ||
        share_samples(a, view, &error) != 0) {
        sl_grouping_close(&grouping);
        sl_agent_fail(a, &error, error.text);
        return;
    }
    sl_grouping old = g->grouping; /* the node's, until it turns */
    const bool is_cut = is_same(a, &grouping) && view->broken_count == g->view.broken_count;
    g->grouping = grouping;
    const bool apart = a->node.own != NULL;
    const uint64_t rounds = a->settings.task.rounds, /* whoever comes has one to do at least */
        next = g->transfer.round < rounds ? g->transfer.round + 1 : rounds,
                   own = sl_cohort_is_outside(g) ? next : a->side.now.round;
    g->view = (sl_node_view){.round = apart ? own : view->round,
                             .exchange = apart ? view->number : view->exchange,
                             .members = {grouping.ranks, grouping.count},
                             .topology = grouping.topology,
                             .plan = &g->grouping.plan,
                             .broken = g->broken,
                             .broken_count = view->broken_count};
    for (uint32_t i = 0; i < view->broken_count; i++)
        g->broken[i] = view->broken[i];
    a->side.now.view = (uint32_t)view->number;
    g->cutting = SL_CUTTING_NOTHING;
    sl_members_tell_view(a, is_cut);
    sl_saving_turn(a, view->round);
    if (sl_cohort_is_outside(g))
        take_model(a);
    if (a->settings.observer.members != NULL)
        a->settings.observer.members(a->settings.observer.context, g->view.round, grouping.ranks,
                                     grouping.count);
    sl_agent_begin(a, &(sl_event){.type = SL_EVENT_VIEW, .view = &g->view});
    g->told_aside = false;
    be(a, SL_TAKES_PART);
    sl_grouping_close(&old);
}

/* Sums go along edges of the view. */
static void turn_calls(sl_agent *a) {
    const sl_node_view *view = &a->cohort.view;
    sl_tree tree = {0};
    sl_error error;
    const sl_algorithm *algorithm = sl_algorithm_of(&view->plan->config, &error);
    const sl_tree_members some = {view->members, view->broken, view->broken_count};
    int result = algorithm != NULL ? sl_tree_open(&tree, algorithm, &view->plan->config,
                                                  view->topology, &some, &error)
                                   : SL_EINVAL;
    if (result == 0)
        result = sl_calls_turn(&a->calls, &tree, &error);
    if (result != 0)
        sl_agent_fail(a, &error, error.text);
    sl_tree_close(&tree);
}

/* ---- steps ---- */

void sl_members_stay_out(sl_agent *a, const char *what) {
    const sl_cohort *g = &a->cohort;
    char dropped[SL_DROPPED_MAX];
    sl_members_name_dropping(a, dropped);
    sl_agent_fail_here(a, sl_cohort_is_aside(g) ? SL_EDIVERGED : SL_EPEER, "%s, and %s",
                       sl_cohort_is_new(g)     ? "this agent wants to join the others"
                       : sl_cohort_is_aside(g) ? "its loss, gradient or model is not finite"
                                               : dropped,
                       what);
}

/* What it has goes into nobody's model any more. */
static void go_out(sl_agent *a) {
    char dropped[SL_DROPPED_MAX];
    if (!sl_cohort_is_outside(&a->cohort))
        be(a, sl_cohort_is_aside(&a->cohort) ? SL_LEFT_OUT_ASIDE : SL_LEFT_OUT);
    a->times.progress_s = a->side.now_s;
    sl_members_name_dropping(a, dropped);
    sl_agent_notice(a, "warning: round %" PRIu64 ": %s; it returns", a->side.now.round, dropped);
    sl_cutting_begin(a);
}

static void begin(sl_agent *a, const sl_membership_update *u) {
    if (!sl_cohort_rests(&a->cohort)) /* it starts */
        return;
    if (u->round > a->settings.task.rounds && a->node.own == NULL) {
        sl_members_stay_out(a, "nobody of them had rounds left");
    } else if (u->view != NULL) {
        const sl_view view = *u->view; /* its lists live until the next view begins */
        if (a->node.own != NULL)
            sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_GATHER});
        if (a->node.own != NULL && sl_own_cut_view(a, &view, u->last)) {
            sl_agent_depart(a, true);
            return;
        }
        begin_view(a, &view);
        if (a->phase == PHASE_OVER)
            return;
        turn_neighbours(a, &view);
        if (a->calls.lasts)
            turn_calls(a);
    } else {
        sl_agent_begin(a, &(sl_event){.type = SL_EVENT_RELEASED});
    }
}

static void let_go(sl_agent *a, bool nobody_stays) {
    if (sl_cohort_is_aside(&a->cohort) && !a->cohort.wishes) {
        sl_members_stay_out(a, "they have not agreed on a view without it");
        return;
    }
    a->cohort.leaves = true;
    if (sl_cohort_rests(&a->cohort))
        sl_agent_depart(a, nobody_stays);
    else
        sl_cutting_begin(a); /* nobody lets it go: its round ends as it is */
}

static void obey(sl_agent *a, const sl_membership_update *u) {
    for (size_t i = 0; a->cohort.alarmed && i < u->message_count; i++)
        post(a, u->messages[i].to, &u->messages[i].message);
    switch (u->order) {
    case SL_ORDER_NONE:
        break;
    case SL_ORDER_BEGIN:
        begin(a, u);
        break;
    case SL_ORDER_LEAVE:
    case SL_ORDER_LEAVE_ALL:
        let_go(a, u->order == SL_ORDER_LEAVE_ALL);
        break;
    case SL_ORDER_ASK_AGAIN:
        sl_state_transfer_end(a);
        break;
    case SL_ORDER_RETURN:
        if (a->settings.meets)
            sl_members_stay_out(a, "its caller has another model");
        else
            go_out(a);
        break;
    case SL_ORDER_DIVERGED:
        sl_agent_fail_here(a, SL_EDIVERGED,
                           "loss, gradient or model is not finite, as on most of the members; "
                           "training diverged: lower optimizer.learning_rate, or check the data");
        break;
    }
    if (u->cut)
        sl_cutting_begin(a);
}

/* Of a view by which nobody is lost: members that it lacks have asked to leave. This agent may not
 * have been connected to them. */
static void note_left(sl_agent *a, const sl_decision *committed) {
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (sl_members_has(a, n->rank) &&
            sl_view_place(&committed->view, n->rank) == committed->view.count)
            n->absence.left = true;
}

void sl_members_step(sl_agent *a, sl_membership_event event) {
    sl_membership_update update;
    if (a->cohort.leaves)
        return;
    event.now_s = a->side.now_s;
    sl_membership_step(a->cohort.membership, &event, &update);
    find_successors(a);
    if (update.committed != NULL && !update.committed->cut)
        note_left(a, update.committed);
    if (update.committed != NULL)
        sl_agent_log(a, &(sl_log_entry){.kind = SL_LOG_COMMIT,
                                        .round = a->side.now.round,
                                        .after = update.committed->view.round - 1});
    obey(a, &update);
    sl_members_rest_if_wanted(a);
}

void sl_members_renew(sl_agent *a) {
    sl_members_alarm(a);
    sl_members_step(a, (sl_membership_event){.type = SL_MEMBERSHIP_RENEW,
                                             .last = a->saving.asked[SL_CUT_LEAVE] != 0});
}

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

bool sl_members_turn(const sl_agent *a) {
    const sl_view *newest = a->cohort.alarmed ? sl_membership_newest(a->cohort.membership) : NULL;
    return newest != NULL && (uint32_t)newest->number != a->side.now.view;
}

bool sl_members_is_behind(const sl_agent *a) {
    bool any = false;
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        any = any || is_ahead(a, n);
    return any && sl_members_turn(a);
}

bool sl_members_leave_one_out(const sl_agent *a) {
    const sl_view *newest = a->cohort.alarmed ? sl_membership_newest(a->cohort.membership) : NULL;
    bool any = false;
    for (uint32_t rank = 0; newest != NULL && rank < a->side.ranks; rank++)
        any = any || (sl_members_has(a, rank) && sl_view_place(newest, rank) == newest->count);
    return any;
}

void sl_members_step_aside(sl_agent *a) {
    a->cohort.rest = SL_NODE_RESTS;
    be(a, SL_STEPS_ASIDE);
    sl_members_alarm(a);
    sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_ASIDE});
    sl_members_step(a, (sl_membership_event){.type = SL_MEMBERSHIP_ASIDE});
}

/* ---- losses ---- */

/* Has it said that it ends, does its port refuse, or has another process come for its rank? */
static bool has_ended(const sl_neighbour *n) {
    const bool says_so = n->process.cause[0] != '\0' && n->process.ends == SL_ABORT_ENDS;
    return says_so || n->absence.refusals >= SL_REFUSALS || n->absence.superseded;
}

void sl_members_lose(sl_agent *a, sl_neighbour *n, const sl_error *why) {
    sl_neighbour_tell_dropped(n, why->text);
    sl_neighbour_drop(n, NULL);
    if (n->absence.gone || a->phase == PHASE_OVER)
        return;
    sl_stream_abandon(&n->stream);
    if (has_ended(n))
        sl_stream_take_back(&n->stream);
    n->absence.lost = *why;
    sl_members_note_gone(a, n);
    if (!sl_cohort_is_new(&a->cohort)) /* else it never had it */
        sl_members_tell_lost(a, n, why->text);
    sl_members_alarm(a);
    sl_members_step(a, (sl_membership_event){
                           .type = SL_MEMBERSHIP_LOST, .peer = n->rank, .ended = has_ended(n)});
}

void sl_members_convict(sl_agent *a) {
    sl_neighbour *n = a->cohort.culprit;
    if (n == NULL)
        return;
    a->cohort.culprit = NULL;
    n->process.convicted = true;
    sl_members_lose(a, n, &a->cohort.verdict);
}

void sl_members_note_ended(sl_agent *a, const sl_neighbour *n) {
    if (a->cohort.membership != NULL && n->absence.gone && has_ended(n) && a->phase != PHASE_OVER)
        sl_members_step(
            a, (sl_membership_event){.type = SL_MEMBERSHIP_LOST, .peer = n->rank, .ended = true});
}

void sl_members_reach(sl_agent *a, sl_neighbour *n) {
    if (a->cohort.membership == NULL || a->phase == PHASE_OVER)
        return;
    sl_state_transfer_break(a, n);
    if (a->cohort.alarmed)
        sl_members_step(a, (sl_membership_event){.type = SL_MEMBERSHIP_REACHED, .peer = n->rank});
}
