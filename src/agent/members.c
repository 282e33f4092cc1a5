/* members.c - see members.h. */
#include "agent/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/folding.h"
#include "agent/state.h"

static const double tick_s = 0.1;

static uint32_t ranks_of(const sl_agent *a) {
    return sl_experiment_ranks(a->settings.experiment);
}

bool sl_members_wanted(const sl_agent *a) {
    return a->settings.experiment->membership.on_loss == SL_ON_LOSS_CONTINUE;
}

/* ---- opening ---- */

int sl_members_open(sl_agent *a, sl_error *error) {
    sl_cohort *g = &a->cohort;
    const uint32_t nodes = ranks_of(a);
    if (!sl_members_wanted(a))
        return 0;
    g->voids = sl_algorithm_of(&a->settings.experiment->algorithm, NULL)->voids;
    g->early_max = a->neighbour_count * a->side.window;
    g->early = calloc(g->early_max + 1u, sizeof *g->early);
    g->bytes = malloc(sl_letter_bytes_max(nodes));
    if (g->early == NULL || g->bytes == NULL)
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
    free(g->early);
}

/* Twice what nodes can be apart: without a dead one's edges they can be further, and with each that
 * joins by one. */
static int find_slack(sl_agent *a, sl_error *error) {
    const sl_experiment *e = a->settings.experiment;
    uint64_t spread = 0;
    const int result = sl_algorithm_spread(&spread, &e->algorithm, e->topology, error);
    a->cohort.slack = (uint32_t)(2 * (spread + e->membership.joiners));
    return result;
}

/* first: NULL: it joins. */
static int open_membership(sl_agent *a, const sl_epoch *first, sl_error *error) {
    const sl_algorithm_config *config = &a->settings.experiment->algorithm;
    const sl_algorithm *algorithm = sl_algorithm_of(config, error);
    sl_membership_settings settings = {.rank = a->side.rank,
                                       .incarnation =
                                           first != NULL ? SL_FOUNDER : a->side.incarnation,
                                       .ranks_max = ranks_of(a),
                                       .grace_s = a->side.timeout_s,
                                       .first = first,
                                       .round = a->saving.resumed};
    if (algorithm == NULL)
        return SL_EINVAL;
    settings.period = (uint32_t)sl_algorithm_interval(algorithm, config);
    const int result = find_slack(a, error);
    settings.slack = a->cohort.slack;
    return result != 0 ? result : sl_membership_open(&a->cohort.membership, &settings, error);
}

/* All of a run that begins are members, as processes of one age. */
static int open_first(sl_agent *a, sl_member *all, sl_error *error) {
    const uint32_t nodes = sl_topology_nodes(a->settings.experiment->topology);
    for (uint32_t i = 0; i < nodes; i++)
        all[i] = (sl_member){i, SL_FOUNDER};
    const sl_epoch first = {.number = 1,
                            .round = a->saving.resumed + 1,
                            .exchange = sl_node_exchange(a->node),
                            .members = all,
                            .count = nodes};
    return open_membership(a, &first, error);
}

static void step(sl_agent *a, sl_membership_event event);

int sl_members_start(sl_agent *a, sl_error *error) {
    if (!sl_members_wanted(a))
        return 0;
    sl_member *all = calloc(ranks_of(a), sizeof *all);
    const int result = all != NULL
                           ? open_first(a, all, error)
                           : sl_fail(error, SL_ENOMEM, "agent %u: out of memory for %u members",
                                     a->side.rank, ranks_of(a));
    free(all);
    if (result != 0)
        return result;
    for (uint32_t i = 0; i < a->neighbour_count; i++)
        a->neighbours[i].member = true;
    step(a, (sl_membership_event){.type = SL_MEMBERSHIP_READY}); /* nothing keeps the first round */
    sl_node_hold(a->node, a->saving.resumed + 1);
    return 0;
}

int sl_members_start_outside(sl_agent *a, sl_error *error) {
    const int result = open_membership(a, NULL, error);
    if (result != 0)
        return result;
    sl_members_alarm(a);
    a->cohort.outside = a->cohort.rests = a->cohort.is_new = true;
    a->cohort.outside_s = a->side.now_s;
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        sl_neighbour *n = &a->neighbours[i];
        n->folded = true;
        n->heir = SL_ANY_HEIR;
        n->sought_s = sl_members_expects(a, n) ? a->side.now_s : 0;
    }
    return 0;
}

/* ---- what members say ---- */

void sl_members_alarm(sl_agent *a) {
    if (a->cohort.alarmed)
        return;
    a->cohort.alarmed = true;
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        sl_neighbour *n = &a->neighbours[i];
        if (!n->near && !n->agreed && sl_members_expects(a, n))
            n->sought_s = a->side.now_s;
    }
}

bool sl_members_expects(const sl_agent *a, const sl_neighbour *n) {
    return n->rank < sl_topology_nodes(a->settings.experiment->topology) || n->incarnation != 0;
}

void sl_members_hear(sl_agent *a, sl_neighbour *n, const sl_frame *frame, const uint8_t *payload) {
    sl_letter *letter = &a->cohort.letter;
    if (a->cohort.membership == NULL || !sl_letters_collect(a, n, frame, payload) ||
        sl_letter_decode(letter, n->letter, n->letter_bytes) != NULL ||
        letter->message.from != n->rank || letter->message.incarnation != n->process)
        return;
    sl_members_alarm(a);
    step(a, (sl_membership_event){.type = SL_MEMBERSHIP_MESSAGE, .message = &letter->message});
    if (sl_folding_watch(a, n))
        sl_members_reach(a, n);
}

/* ---- views ---- */

int sl_members_regroup(sl_agent *a, const sl_epoch *view, sl_grouping *out, sl_error *error) {
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
    if (!a->cohort.is_new)
        sl_node_forget(a->node);
    a->cohort.is_new = false;
    atomic_store(&a->saving.trains, true);
    a->side.vec->copy_in(sl_node_model(a->node), a->cohort.fetching.model, bytes);
    sl_fetching_end(a);
    sl_members_drop_early(a);
}

static int share_samples(const sl_agent *a, const sl_epoch *view, sl_error *error) {
    const sl_task *t = &a->settings.task;
    const uint32_t rank = a->side.rank, place = sl_epoch_place(view, rank);
    return t->members != NULL ? t->members(t->context, rank, place, view->count, error) : 0;
}

/* sides: parts of the network that have met. */
static void begin_view(sl_agent *a, const sl_epoch *view, uint32_t sides) {
    sl_cohort *g = &a->cohort;
    sl_grouping grouping = {0};
    sl_error error;
    sl_folding_lose_absent(a, view);
    if (sl_members_regroup(a, view, &grouping, &error) != 0 ||
        share_samples(a, view, &error) != 0) {
        sl_grouping_close(&grouping);
        sl_agent_fail(a, &error, error.text);
        return;
    }
    sl_grouping old = g->grouping; /* the node's, until it turns */
    g->grouping = grouping;
    g->view = (sl_view){view->round,
                        view->exchange,
                        {grouping.ranks, grouping.count},
                        grouping.topology,
                        &g->grouping.plan,
                        NULL,
                        0};
    g->before[g->passed++ % SL_EPOCHS_BEFORE] = g->hash;
    g->hash = sl_epoch_hash(view);
    g->number = view->number;
    if (sides > 1 && !g->outside)
        sl_members_tell_merge(a, view, sides);
    sl_members_tell_view(a);
    if (g->outside)
        take_model(a);
    if (a->settings.observer.members != NULL)
        a->settings.observer.members(a->settings.observer.context, view->round, grouping.ranks,
                                     grouping.count);
    sl_agent_begin(a, &(sl_event){.type = SL_EVENT_VIEW, .view = &g->view});
    g->outside = g->aside = g->told_aside = false;
    sl_grouping_close(&old);
}

/* Sums go along edges of the view. */
static void turn_calls(sl_agent *a) {
    const sl_view *view = &a->cohort.view;
    sl_tree tree = {0};
    sl_error error;
    const sl_algorithm *algorithm = sl_algorithm_of(&view->plan->config, &error);
    int result = algorithm != NULL ? sl_tree_open(&tree, algorithm, &view->plan->config,
                                                  view->topology, &view->members, &error)
                                   : SL_EINVAL;
    if (result == 0)
        result = sl_calls_turn(&a->calls, &tree, a->cohort.hash, &error);
    if (result != 0)
        sl_agent_fail(a, &error, error.text);
    sl_tree_close(&tree);
}

/* ---- steps ---- */

static void fail(sl_agent *a, int code, const char *why) {
    sl_error error;
    sl_fail_node(&error, code, a->side.rank, a->side.round, "%s", why);
    sl_agent_fail(a, &error, error.text);
}

void sl_members_end_followed(sl_agent *a) {
    fail(a, SL_EPEER,
         "the others went on without this agent, and another process has its rank now");
}

void sl_members_stay_out(sl_agent *a, const char *what) {
    const sl_cohort *g = &a->cohort;
    char dropped[SL_DROPPED_MAX];
    sl_error error;
    sl_members_name_dropping(a, dropped);
    sl_fail_node(&error, g->aside ? SL_EDIVERGED : SL_EPEER, a->side.rank, a->side.round,
                 "%s, and %s",
                 g->is_new  ? "this agent wants to join the others"
                 : g->aside ? "its loss, gradient or model is not finite"
                            : dropped,
                 what);
    sl_agent_fail(a, &error, error.text);
}

/* It has agreed with a side that has ended. Its own side is to go on without it. */
static void part_from_all(sl_agent *a) {
    sl_folding_lose_all(a);
    for (uint32_t i = 0; i < a->neighbour_count; i++)
        sl_neighbour_tell(&a->neighbours[i], "the run has ended elsewhere; it goes on alone");
}

/* What it has goes into nobody's model any more. */
static void go_out(sl_agent *a) {
    char dropped[SL_DROPPED_MAX];
    a->cohort.outside = true;
    a->cohort.outside_s = a->progress_s = a->side.now_s;
    sl_members_name_dropping(a, dropped);
    sl_agent_notice(a, "warning: round %" PRIu64 ": %s; it returns", a->side.round, dropped);
    sl_folding_lose_all(a);
}

static void release(sl_agent *a) {
    sl_agent_begin(a, &(sl_event){.type = SL_EVENT_RELEASED});
}

/* The others are through, or nearly: its last rounds need nobody's consent. */
static void end_alone(sl_agent *a) {
    a->cohort.alone = true;
    if (a->cohort.rests && !a->cohort.asks)
        release(a);
}

static void begin(sl_agent *a, const sl_membership_update *u) {
    if (!a->cohort.rests) /* it starts */
        return;
    if (u->round > a->settings.task.rounds && a->cohort.outside) {
        sl_members_stay_out(a, "nobody of them had rounds left");
    } else if (u->round > a->settings.task.rounds) {
        part_from_all(a);
        end_alone(a);
    } else if (u->view != NULL) {
        const sl_epoch view = *u->view; /* its lists live until the next epoch begins */
        begin_view(a, &view, u->sides);
        if (a->phase == PHASE_OVER)
            return;
        sl_folding_turn(a, &view);
        if (a->settings.meets)
            turn_calls(a);
        sl_folding_repeat(a);
        sl_members_deliver_early(a);
    } else {
        release(a);
    }
}

static void leave(sl_agent *a, bool nobody_stays) {
    sl_cohort *g = &a->cohort;
    g->leaves = g->alone = true;
    if (g->rests)
        sl_agent_depart(a, nobody_stays);
}

static void obey(sl_agent *a, const sl_membership_update *u) {
    const bool ends = u->dropped && !a->cohort.aside && sl_members_nearly_done(a);
    /* whoever ends with the others' last rounds does not say that it has no part in them */
    for (size_t i = 0; a->cohort.alarmed && !ends && i < u->message_count; i++)
        sl_letters_post(a, u->messages[i].to, &u->messages[i].message);
    if (u->diverged)
        fail(a, SL_EDIVERGED,
             "loss, gradient or model is not finite, as on most of the members; training diverged: "
             "lower optimizer.learning_rate, or check the data");
    else if (ends)
        end_alone(a);
    else if (u->dropped && a->settings.meets)
        sl_members_stay_out(a, "its caller has another model");
    else if (u->dropped)
        go_out(a);
    else if (u->ask_again)
        sl_fetching_end(a);
    else if (u->replaced)
        sl_members_end_followed(a);
    else if (u->left && a->cohort.aside && !a->cohort.wishes)
        sl_members_stay_out(a, "they have not agreed on an epoch without it");
    else if (u->left)
        leave(a, u->nobody_stays);
    else if (u->begin)
        begin(a, u);
}

static void step(sl_agent *a, sl_membership_event event) {
    sl_membership_update update;
    if (a->cohort.alone)
        return;
    event.now_s = a->side.now_s;
    sl_membership_step(a->cohort.membership, &event, &update);
    sl_folding_find_heirs(a);
    sl_members_tell_commit(a, update.committed);
    obey(a, &update);
}

uint64_t sl_members_newest(const sl_agent *a) {
    const sl_epoch *newest = sl_membership_epoch(a->cohort.membership);
    return newest != NULL ? newest->number : sl_membership_others(a->cohort.membership)->number;
}

/* It has said no more than that it goes on without this agent, which has ended the connection for
 * it, and connects anew: whether there is another epoch comes with the next one. */
static bool is_to_say_why(const sl_agent *a, const sl_neighbour *n) {
    return n->folds && n->hash == a->cohort.hash && n->sought_s > 0 && !sl_members_nearly_done(a);
}

/* Neighbours have come to an epoch that it has not heard of: it trains alone no further, even if
 * their connections have broken since. */
static bool is_behind(const sl_agent *a) {
    bool any = false;
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        const sl_neighbour *n = &a->neighbours[i];
        any = any ||
              (n->near && !n->gone && (n->number > sl_members_newest(a) || is_to_say_why(a, n)));
    }
    return any && !a->cohort.alone && !sl_membership_is_let_go(a->cohort.membership);
}

/* Does it exchange with nobody, as all of its edges are broken, or its neighbours lost? Where some
 * are not, these may wait for it. */
static bool is_bound_to_nobody(const sl_agent *a) {
    bool any = false, all = true;
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        const sl_neighbour *n = &a->neighbours[i];
        any = any || n->near;
        all = all && (!n->near || n->folded);
    }
    return any && all;
}

/* It trains in this agent's epoch, as far as it has said. */
static bool trains_too(const sl_agent *a, const sl_neighbour *n) {
    const sl_membership *m = a->cohort.membership;
    return n->agreed && !n->bye_received && n->hash == a->cohort.hash &&
           !sl_membership_is_aside(m, n->rank, n->since) &&
           a->side.now_s - n->exchange_s < SL_PATIENCE_S(a->side.timeout_s);
}

/* The next view begins after the round of whoever is furthest: it does not run away from those of
 * its epoch that it reaches, unless they stand still. */
static bool is_ahead(const sl_agent *a) {
    uint64_t furthest = 0;
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        const sl_neighbour *n = &a->neighbours[i];
        if (trains_too(a, n) && n->exchange > furthest)
            furthest = n->exchange;
    }
    return furthest > 0 && a->side.exchange > furthest + a->cohort.slack && !a->cohort.alone &&
           !a->cohort.wishes && !sl_members_turn(a) && is_bound_to_nobody(a);
}

void sl_members_join(sl_agent *a, uint32_t sponsor) {
    step(a, (sl_membership_event){.type = SL_MEMBERSHIP_JOIN, .peer = sponsor});
}

bool sl_members_go_on(sl_agent *a) {
    if (!a->cohort.asks || a->phase == PHASE_OVER)
        return false;
    if (is_behind(a)) { /* that neighbour may end without a word: the others know, too */
        sl_members_alarm(a);
        return false;
    }
    a->cohort.ahead = is_ahead(a);
    if (a->cohort.ahead)
        return false;
    a->cohort.asks = false;
    if (a->cohort.leaves)
        sl_agent_depart(a, false);
    else if (a->cohort.alone)
        release(a);
    step(a, (sl_membership_event){.type = SL_MEMBERSHIP_READY});
    return true;
}

bool sl_members_turn(const sl_agent *a) {
    const sl_cohort *g = &a->cohort;
    const sl_epoch *newest = g->alarmed ? sl_membership_epoch(g->membership) : NULL;
    return newest != NULL && newest->number > (g->number > 0 ? g->number : 1);
}

/* ---- leaving ---- */

bool sl_members_leave(sl_agent *a) {
    sl_cohort *g = &a->cohort;
    if (g->membership == NULL)
        return false;
    if (g->wishes || a->phase != PHASE_TRAINING) /* it ends anyway */
        return true;
    if (a->cohort.is_new) { /* nobody knows it */
        sl_agent_stop(a);
        return true;
    }
    g->wishes = true;
    sl_members_alarm(a);
    if (g->alone)
        leave(a, false);
    step(a, (sl_membership_event){.type = SL_MEMBERSHIP_LEAVE});
    return true;
}

void sl_members_step_aside(sl_agent *a) {
    a->cohort.aside = a->cohort.rests = true;
    sl_members_alarm(a);
    sl_folding_lose_all(a);
    sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_ASIDE});
    step(a, (sl_membership_event){.type = SL_MEMBERSHIP_ASIDE});
}

/* It says nothing more. What it has said goes into the model, if it goes by agreement. */
static void part(sl_agent *a, sl_neighbour *n) {
    sl_log_entry entry = {.kind = SL_LOG_LOST, .round = a->side.round, .peer = n->rank};
    snprintf(entry.why, sizeof entry.why, "round %" PRIu64 ": agent %u has left", entry.round,
             n->rank);
    sl_agent_log(a, &entry);
    sl_agent_notice(a, "%s", entry.why);
    n->gone = true;
    n->gone_in = sl_members_newest(a);
    n->sought_s = 0;
    if (!n->folded)
        sl_folding_lose(a, n);
    step(a, (sl_membership_event){.type = SL_MEMBERSHIP_LOST, .peer = n->rank});
}

static bool is_left_out(const sl_agent *a, const sl_neighbour *n) {
    const sl_epoch *newest = sl_membership_epoch(a->cohort.membership);
    return newest != NULL && sl_epoch_place(newest, n->rank) == newest->count;
}

/* Who left by agreement has sent all that is waited for before the view without it. */
static bool is_off(const sl_agent *a, const sl_neighbour *n) {
    return n->left == n->sent &&
           (!is_left_out(a, n) || !n->near || n->folded || sl_node_awaits(a->node, n->rank));
}

/* It may have told only others that it leaves, before this agent reached it. */
static bool leaves(const sl_agent *a, const sl_neighbour *n) {
    return sl_membership_leaves(a->cohort.membership, n->rank) || is_left_out(a, n);
}

/* Are all others gone, through, or `outside` like this agent? Nobody answers what it has to ask.
 * For who is outside only the dead are gone: others may let it in yet. */
static bool is_last(const sl_agent *a, bool outside) {
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        const sl_neighbour *n = &a->neighbours[i];
        const bool gone = outside ? sl_neighbour_is_dead(n) : n->gone;
        if (!gone && !n->bye_received && sl_members_expects(a, n) &&
            !(outside && sl_membership_is_out(a->cohort.membership, n->rank, 0)))
            return false;
    }
    return a->cohort.alarmed;
}

static void say_bye(sl_neighbour *n) {
    if (n->agreed && !n->bye_sent)
        n->bye_sent = sl_neighbour_send_control(n, SL_FRAME_BYE, NULL, 0);
}

void sl_members_see_off(sl_agent *a, sl_neighbour *n) {
    if (a->cohort.membership == NULL || !n->bye_received || a->phase != PHASE_TRAINING)
        return;
    if (!leaves(a, n)) {
        const bool waits = a->cohort.outside || a->cohort.aside;
        if (a->cohort.outside) /* and has nothing that it still needs */
            say_bye(n);
        if (waits && is_last(a, true))
            sl_members_stay_out(a, "nobody of them trains any more");
        else if (!waits && is_last(a, false))
            end_alone(a);
        return;
    }
    if (!n->gone && is_off(a, n))
        part(a, n);
    if (n->gone)
        say_bye(n);
}

void sl_members_tick(sl_agent *a) {
    if (a->cohort.membership == NULL || !a->cohort.alarmed || a->phase == PHASE_OVER ||
        a->side.now_s - a->cohort.ticked_s < tick_s)
        return;
    a->cohort.ticked_s = a->side.now_s;
    for (uint32_t i = 0; i < a->neighbour_count; i++)
        sl_members_see_off(a, &a->neighbours[i]);
    step(a, (sl_membership_event){.type = SL_MEMBERSHIP_TICK});
}

/* ---- losses ---- */

/* Is its loss in the newest epoch, or was it before that? */
bool sl_members_admit(const sl_agent *a, const sl_neighbour *n) {
    if (!n->gone || a->cohort.outside)
        return true;
    return is_left_out(a, n) || sl_members_newest(a) > n->gone_in;
}

bool sl_members_nearly_done(const sl_agent *a) {
    return a->phase != PHASE_TRAINING || a->side.round + a->cohort.slack >= a->settings.task.rounds;
}

void sl_members_lose(sl_agent *a, sl_neighbour *n, const sl_error *why) {
    sl_neighbour_tell_dropped(n, why->text);
    sl_neighbour_drop(n, NULL);
    if (n->gone || a->phase == PHASE_OVER)
        return;
    n->gone = true;
    n->lost = *why;
    n->gone_in = sl_members_newest(a);
    n->sought_s = 0;
    if (!a->cohort.is_new) /* else it never had it */
        sl_members_tell_lost(a, n, why->text);
    if (!n->folded)
        sl_folding_lose(a, n);
    sl_members_alarm(a);
    step(a, (sl_membership_event){.type = SL_MEMBERSHIP_LOST, .peer = n->rank});
}

void sl_members_reach(sl_agent *a, sl_neighbour *n) {
    if (a->cohort.membership == NULL || a->phase == PHASE_OVER)
        return;
    sl_neighbour_tell_turn(n);
    sl_fetching_break(a, n);
    n->sought_s = 0;
    if (!a->cohort.alarmed)
        return;
    n->gone = false;
    step(a, (sl_membership_event){
                .type = SL_MEMBERSHIP_REACHED, .peer = n->rank, .folded = n->near && n->folded});
}
