/* node.c - the round machine; see starling/node.h.
 *
 * A round is a gradient and, unless it is a local one, an exchange. The route lists the exchange's
 * steps (route.h). A step is a message that goes out (outgoing.c) and messages that come in
 * (incoming.c); it is over when all its parts have left and have been combined.
 *
 * Invariants: encoded >= sent; no queue holds a part of a past step; the model changes only
 * between GRADIENT and the end of the round.
 */
#include "starling/node.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/incoming.h"
#include "node/outgoing.h"
#include "vec/asked.h"

static const double divergence_factor = 1e6;

/* Is this exchange, or else the next one, the first of a later view, which all algorithms of its
 * kind begin alike? */
static bool restates(const sl_node *n) {
    const uint64_t next = n->state.exchange + !(n->round.exchanging || n->life.exchanged);
    return sl_algorithm_restates(n->algorithm) && n->state.first_exchange > 1 &&
           n->state.first_exchange == next;
}

/* Does this round's exchange begin with the round, beside its gradient? */
static bool overlaps(const sl_node *n) {
    const sl_algorithm *a = n->algorithm;
    return a->publishes_old_model && !restates(n) && (a->waits == NULL || !a->waits(&n->state));
}

/* ---- steps ---- */

static bool is_due(const sl_node *n) {
    const uint64_t every = n->settings.measure_every, round = n->state.round;
    return every != 0 && (round % every == 0 || round == n->settings.rounds);
}

static void begin_step(sl_node *n) {
    const sl_exchange_step *step = &n->step.what;
    n->state.in = step->in;
    n->state.self_weight = step->self_weight;
    n->state.slot = step->in.count > 0 ? sl_route_slot(&n->view.route, step->in.peers[0])
                                       : n->view.route.peer_count;
    n->step.outgoing =
        sl_codecs_find(&n->view.codecs, step->published.count, step, n->state.exchange);
    if (step->compressor != NULL)
        n->state.compressor = step->compressor;
    const bool plain = !n->state.alone && sl_outgoing_is_plain_gossip(n);
    n->round.measure = plain && step->stage == sl_algorithm_stage(n->algorithm, 0) && is_due(n);
    n->step.norm_limit = plain && n->settings.vec->on_host ? n->settings.norm_limit : 0;
    n->step.adapts = sl_outgoing_adapts(n);
    n->state.sum = plain ? sl_rooms_find(n) : NULL;
    n->step.awaits_gradient = !n->settings.vec->on_host && !sl_node_is_final(n, step->published);
    sl_incoming_begin(n);
    if (!n->step.adapts && !n->step.awaits_gradient)
        sl_node_sweep(n, step->stage->prepare, step->prepared);
    if (step->stage->meet != NULL && step->published.count > 0)
        step->stage->meet(&n->state);
    if (step->begins && step->stage->speaks != NULL)
        n->state.silent = !step->stage->speaks(&n->state);
}

/* A step with nobody else. */
static void leave_out_others(sl_exchange_step *step) {
    step->in = step->out = (sl_row){0};
    step->self_weight = 1;
}

static bool has_stage(const sl_node *n, const sl_stage *stage) {
    const bool fits = !sl_algorithm_restates(n->algorithm) || stage->restates == restates(n);
    return fits && (stage->wanted == NULL || stage->wanted(&n->state));
}

/* From step *number on, the first that this exchange has. */
static bool find_step(sl_node *n, uint32_t *number, sl_exchange_step *out) {
    bool found;
    while ((found = sl_route_step(&n->view.route, n->state.exchange, *number, out)) &&
           !has_stage(n, out->stage))
        (*number)++;
    if (found && n->state.alone)
        leave_out_others(out);
    else if (found)
        sl_fold_apply(&n->view.fold, &n->view.route, out);
    return found;
}

/* From step `number` on; after the last one, the exchange is over. */
static int go_to_step(sl_node *n, uint32_t number, sl_update *update, sl_error *error) {
    sl_exchange_step step;
    /* What is over, if the step was its last. */
    const sl_stage *before = number > 0 ? n->step.what.stage : NULL;
    sl_rooms_move(n);
    const bool found = find_step(n, &number, &step);
    n->step.number = number;
    if (before != NULL && before->over != NULL && (!found || step.stage != before))
        before->over(&n->state);
    if (!found) {
        n->round.exchanging = false;
        n->life.exchanged = 1;
        return 0;
    }
    if (before != NULL && number > 0 && n->step.outgoing != NULL)
        n->round.measured += sl_codec_parts(n->step.outgoing->codec);
    n->step = (sl_step_state){.number = number, .what = step};
    begin_step(n);
    if (n->step.outgoing == NULL)
        return 0;
    int result = sl_outgoing_begin(n, error);
    n->step.message.overlaps = overlaps(n);
    update->publish = !n->state.alone;
    update->message = n->step.message;
    return result;
}

static void count_exchange(sl_node *n) {
    n->state.exchange++;
    n->state.heard =
        sl_route_heard(&n->view.route, n->state.exchange - n->state.first_exchange + 1);
    n->state.compressor =
        sl_plan_compressor(n->settings.plan, n->settings.epoch_rounds, n->state.exchange);
}

/* What is left of an exchange, with nobody. */
static int end_alone(sl_node *n, sl_error *error) {
    sl_update nobodys = {0};
    int result = 0;
    while (result == 0 && n->round.exchanging) {
        result = sl_outgoing_end(n, error);
        if (result == 0)
            result = sl_incoming_combine(n, true, error);
        if (result == 0)
            result = go_to_step(n, n->step.number + 1, &nobodys, error);
    }
    return result;
}

static int begin_exchange(sl_node *n, sl_update *update, sl_error *error) {
    n->round.begun = true;
    count_exchange(n);
    if (n->view.is_cut && sl_algorithm_voids(n->algorithm))
        return 0;
    n->round.exchanging = true;
    n->state.alone = n->view.is_cut;
    sl_voiding_keep(n);
    sl_measure_begin(&n->view.measured);
    const int result = go_to_step(n, 0, update, error);
    return result == 0 && n->view.is_cut ? end_alone(n, error) : result;
}

/* A loaded node whose pieces hold this exchange, too: what the round's end reads beside them. */
static void take_exchange(sl_node *n) {
    sl_exchange_step step;
    count_exchange(n);
    for (uint32_t number = 0; find_step(n, &number, &step); number++) {
        n->state.in = step.in;
        n->state.self_weight = step.self_weight;
    }
}

static bool step_is_over(const sl_node *n) {
    return sl_incoming_is_complete(n) && n->step.sent == n->step.message.parts;
}

/* ---- rounds ---- */

static bool has_exchange(const sl_node *n) {
    if (n->algorithm->due != NULL)
        return n->algorithm->due(&n->state);
    return sl_algorithm_exchanges(n->algorithm, n->state.config, n->state.round);
}

static int begin_round(sl_node *n, sl_update *update, sl_error *error) {
    n->state.round++;
    n->state.last_sgd = n->state.sgd;
    n->state.sgd = sl_optimizer_at(n->settings.optimizer, n->state.round, n->settings.rounds);
    n->round = (sl_round_state){
        .statistics = {.round = n->state.round, .learning_rate = n->state.sgd.learning_rate}};
    update->compute = true;
    update->round = n->state.round;
    if (n->life.exchanged)
        take_exchange(n);
    return has_exchange(n) && overlaps(n) && !n->life.exchanged ? begin_exchange(n, update, error)
                                                                : 0;
}

/* That much of the gradient becomes the direction of SGD's step. */
static void take_direction(sl_node *n, size_t from, size_t end) {
    if (n->state.sgd.learning_rate != 0)
        sl_direction_take(&n->direction, n->state.g, sl_node_point(n), from, end);
}

static void end_updates(sl_node *n) {
    const sl_range all = {0, n->settings.dimension};
    const bool anew = n->life.exchanged && restates(n);
    if (n->algorithm->averages_gradient && n->life.exchanged)
        take_direction(n, 0, n->settings.dimension);
    sl_node_sweep(n,
                  anew                ? sl_restate
                  : n->life.exchanged ? n->algorithm->settle
                                      : n->algorithm->local,
                  all);
    if (anew)
        sl_node_begin_anew(n);
    else if (n->life.exchanged && n->algorithm->finish != NULL)
        n->algorithm->finish(&n->state);
}

/* Has an operation of the device failed? Blocks in the last round only. */
static int ask_device(const sl_node *n, bool last, sl_error *error) {
    return sl_vec_ask(n->settings.vec, last, n->settings.rank, n->state.round, error);
}

static bool is_held(const sl_node *n) {
    return n->life.held_after > 0 && n->state.round >= n->life.held_after;
}

/* Tells the driver of the round that has ended, and goes on to the next. */
static int report_round(sl_node *n, sl_update *update, sl_error *error) {
    update->round_done = true;
    update->finished_round = n->life.ended;
    n->life.finished = update->finished = n->life.ended.round == n->settings.rounds;
    n->round.gradient_ready = false;
    return n->life.finished || is_held(n) ? 0 : begin_round(n, update, error);
}

static int end_round(sl_node *n, sl_update *update, sl_error *error) {
    int result = ask_device(n, n->state.round == n->settings.rounds, error);
    if (result != 0)
        return result;
    const bool last = n->state.round == n->settings.rounds;
    double distance = NAN;
    if ((last || is_due(n)) &&
        !sl_measure_read(&n->view.measured, n->state.x, n->settings.dimension, &distance))
        return sl_node_spoil(n, "the model holds a number that is not finite", error);
    n->round.statistics.neighbour_distance =
        n->round.measure && n->life.exchanged ? sqrt(distance) : NAN;
    n->round.statistics.push_sum_weight = sl_node_push_sum_weight(n);
    n->round.statistics.doubtful = n->state.doubtful;
    n->state.doubtful = 0;
    n->round.measure = false;
    n->life.exchanged = 0;
    n->life.ended = n->round.statistics;
    n->life.ended_exchange = n->state.exchange;
    return report_round(n, update, error);
}

/* Combines what has come, and goes from step to step and round to round as far as that leads. */
static int advance(sl_node *n, sl_update *update, sl_error *error) {
    int result = 0;
    if (n->life.spoiled)
        return 0;
    while (result == 0 && n->round.exchanging) {
        result = sl_incoming_combine(n, false, error);
        if (result != 0 || !step_is_over(n))
            return result;
        result = go_to_step(n, n->step.number + 1, update, error);
    }
    if (result != 0 || !n->round.gradient_ready)
        return result;
    end_updates(n);
    return end_round(n, update, error);
}

/* On the host, what leaves is looked at, or a compressor does; but not by one that draws. */
static bool shows_late(const sl_node *n) {
    return !n->settings.vec->on_host ||
           sl_compressor_reads_drawn(n->settings.plan->config.compressor.kind);
}

static int accept_loss(sl_node *n, double loss, sl_error *error) {
    int asked = ask_device(n, false, error);
    if (asked != 0)
        return asked; /* and the loss means nothing */
    if (n->life.loss_limit <= 0 && isfinite(loss))
        n->life.loss_limit = divergence_factor * (1 + fabs(loss));
    char what[96];
    snprintf(what, sizeof what, "the loss is %g", loss);
    if (!(loss <= n->life.loss_limit))
        return sl_node_diverged(n, what, error);
    n->round.statistics.loss = n->state.loss = loss;
    return 0;
}

/* A step of the gradient is taken where it is there. */
static int accept_range(sl_node *n, size_t from, sl_error *error) {
    const size_t end = n->round.final > 0 ? n->round.final : n->settings.dimension;
    n->round.final = from;
    if (n->settings.turns && shows_late(n) && sl_node_has_spoiled_gradient(n))
        return sl_node_diverged(n, "the gradient holds a number that is not finite", error);
    if (from == 0)
        sl_direction_clip(&n->direction, n->state.g);
    if (!n->algorithm->averages_gradient)
        take_direction(n, from, end);
    return 0;
}

/* May the exchange begin before all of the gradient is there? A view begins in one way. */
static bool begins_early(const sl_node *n) {
    sl_exchange_step first = {0};
    sl_route_step(&n->view.route, n->state.exchange + 1, 0, &first);
    const bool as_it_leaves =
        first.stage->prepare == NULL || (first.prepared.from == first.published.from &&
                                         first.prepared.count == first.published.count);
    return n->settings.leaves != NULL && !restates(n) && !n->view.is_cut && as_it_leaves;
}

static int begin_due_exchange(sl_node *n, sl_update *update, sl_error *error) {
    const bool begins = has_exchange(n) && !overlaps(n) && !n->round.begun;
    return begins && (n->round.final == 0 || begins_early(n)) ? begin_exchange(n, update, error)
                                                              : 0;
}

/* Of a gradient that is there from this element on. */
static int accept_gradient(sl_node *n, double loss, size_t from, sl_update *update,
                           sl_error *error) {
    if (n->life.spoiled)
        return 0;
    int result = accept_loss(n, loss, error);
    if (result == 0)
        result = accept_range(n, from, error);
    if (result != 0)
        return result;
    n->round.gradient_ready = from == 0;
    if (from == 0 && n->algorithm->take_gradient != NULL && !(restates(n) && has_exchange(n)))
        n->algorithm->take_gradient(&n->state);
    const bool is_cut = from == 0 && n->round.exchanging && n->state.alone;
    return is_cut ? end_alone(n, error) : begin_due_exchange(n, update, error);
}

static int name_peer_down(const sl_node *n, uint32_t peer, sl_error *error) {
    if (n->life.finished)
        return 0;
    return sl_fail_edge(error, SL_EPEER, peer, n->settings.rank, n->state.round,
                        "the neighbour is gone");
}

int sl_node_name_wait(const sl_node *n, sl_error *error) {
    int result = sl_incoming_name_missing(n, error);
    return result != 0 || !n->round.exchanging
               ? result
               : sl_fail_node(error, SL_EPEER, n->settings.rank, n->state.round,
                              "%u of %u parts have left", n->step.sent, n->step.message.parts);
}

/* SL_NODE_LATE */
static int name_late(const sl_node *n, sl_error *error) {
    if (sl_node_name_wait(n, error) == 0)
        return sl_fail_node(error, SL_EPEER, n->settings.rank, n->state.round,
                            "it did not end in time");
    const size_t used = strlen(error->text);
    snprintf(error->text + used, sizeof error->text - used, " in time");
    return error->code;
}

/* All pieces of a finished round are here; the rest of the state follows from them. */
static int go_on(sl_node *n, sl_update *update, sl_error *error) {
    n->state.round = n->life.ended.round;
    n->state.sgd = sl_optimizer_at(n->settings.optimizer, n->life.ended.round, n->settings.rounds);
    n->state.sgd.learning_rate =
        (float)n->life.ended.learning_rate; /* settings may be others now */
    n->life.ended.push_sum_weight = sl_node_push_sum_weight(n);
    return report_round(n, update, error);
}

static int start(sl_node *n, sl_update *update, sl_error *error) {
    assert(n->state.round == 0 && n->life.ended.round <= n->settings.rounds);
    if (n->life.ended.round > 0)
        return go_on(n, update, error);
    if (n->algorithm->start != NULL)
        n->algorithm->start(&n->state, n->settings.dimension);
    return begin_round(n, update, error);
}

/* ---- other members ---- */

static int release(sl_node *n, sl_update *update, sl_error *error) {
    assert(is_held(n) && !n->life.finished && n->life.ended.round == n->state.round);
    n->life.held_after = 0;
    return begin_round(n, update, error);
}

/* Rounds that others have done count as done: it begins its life. */
static void pass_over(sl_node *n, const sl_node_view *view) {
    const uint64_t before = view->round - 1;
    n->state.round = n->life.ended.round = n->life.held_after = before;
    n->state.exchange = n->life.ended_exchange = view->exchange;
    n->state.sgd = sl_optimizer_at(n->settings.optimizer, before, n->settings.rounds);
}

/* What it gave to others, and they to it, is unknown after a cut: push-sum begins anew. */
static int take_view(sl_node *n, const sl_node_view *view, sl_update *update, sl_error *error) {
    const bool joins = n->state.round == 0 && n->life.ended.round == 0,
               anew = sl_algorithm_begins_anew(n->algorithm),
               begins = joins || (n->view.is_cut && n->algorithm->matrix == SL_MATRIX_COLUMN);
    int result = sl_node_turn(n, view, error);
    if (result != 0)
        return result;
    if (n->state.round == 0)
        pass_over(n, view);
    if (begins)
        n->state.push_sum_weight = 1;
    if (anew)
        sl_node_begin_anew(n);
    else if (begins && n->algorithm->start != NULL)
        n->algorithm->start(&n->state, n->settings.dimension);
    assert(n->state.round + 1 == view->round);
    /* The view's exchange may follow from what came. */
    n->state.exchange = n->life.ended_exchange = view->exchange;
    if (n->algorithm->restart != NULL)
        n->algorithm->restart(&n->state, n->settings.dimension);
    return release(n, update, error);
}

static void give_back_all(sl_node *n) {
    for (uint32_t i = 0; i < n->inbox.peer_count; i++)
        sl_inbox_empty(&n->inbox, &n->inbox.queues[i]);
}

static int cut_exchange(sl_node *n, sl_error *error) {
    int result = sl_incoming_combine(n, true, error);
    give_back_all(n);
    if (result == 0 && n->round.final == 0)
        result = sl_outgoing_end(n, error);
    if (result != 0)
        return result;
    n->step.sent = n->step.encoded;
    sl_incoming_leave(n);
    n->round.measure = false;
    n->state.alone = true;
    leave_out_others(&n->step.what);
    n->state.in = n->step.what.in;
    n->state.self_weight = n->step.what.self_weight;
    return n->round.final == 0 ? end_alone(n, error) : 0;
}

static int cut(sl_node *n, sl_error *error) {
    if (n->life.finished || n->view.is_cut)
        return 0;
    n->view.is_cut = true;
    if (n->round.exchanging && !n->life.spoiled && !sl_algorithm_voids(n->algorithm))
        return cut_exchange(n, error);
    give_back_all(n);
    if (n->round.exchanging && !n->life.spoiled)
        sl_voiding_undo(n);
    return 0;
}

/* What is published may be read still: what is written next goes elsewhere. */
static void give_up(sl_node *n) {
    sl_rooms_move(n);
    n->round.exchanging = n->round.gradient_ready = false;
    give_back_all(n);
}

static void renew(sl_node *n, uint32_t peer) {
    const uint32_t slot = sl_route_slot(&n->view.route, peer);
    assert(n->state.round == 0);
    if (slot < n->inbox.peer_count)
        sl_inbox_empty(&n->inbox, &n->inbox.queues[slot]);
}

/* What came is read by a device at some time. It is asked where that is known to be worth it: with
 * each batch that is combined, and not with each frame. */
static bool gives_back(const sl_node *n, const sl_event *event) {
    return n->settings.notify_fd == 0 ||
           (event->type != SL_EVENT_RECEIVED && event->type != SL_EVENT_SENT);
}

int sl_node_step(sl_node *n, const sl_event *event, sl_update *update, sl_error *error) {
    *update = (sl_update){0};
    n->inbox.released_count = 0;
    n->state.exchange = sl_node_exchange(n);
    int result = 0;
    switch (event->type) {
    case SL_EVENT_START:
        result = start(n, update, error);
        break;
    case SL_EVENT_FINAL:
    case SL_EVENT_GRADIENT:
        assert(!n->round.gradient_ready && (event->from > 0) == (event->type == SL_EVENT_FINAL));
        result = accept_gradient(n, event->loss, event->from, update, error);
        break;
    case SL_EVENT_RECEIVED:
        result = sl_incoming_receive(n, event, error);
        break;
    case SL_EVENT_SENT:
        assert(event->part == n->step.sent && n->step.sent < n->step.encoded);
        n->step.sent++;
        break;
    case SL_EVENT_NOTIFIED:
        n->step.awaits_encoder = false;
        break;
    case SL_EVENT_CUT:
        result = cut(n, error);
        break;
    case SL_EVENT_ASIDE:
        give_up(n);
        break;
    case SL_EVENT_RELEASED:
        result = release(n, update, error);
        break;
    case SL_EVENT_VIEW:
        result = take_view(n, event->view, update, error);
        break;
    case SL_EVENT_RENEWED:
        renew(n, event->peer);
        break;
    case SL_EVENT_PEER_DOWN:
        result = name_peer_down(n, event->peer, error);
        break;
    case SL_EVENT_DEADLINE:
        result = name_late(n, error);
        break;
    case SL_EVENT_ACKNOWLEDGED:
    case SL_EVENT_TURN:
    case SL_EVENT_GATHER:
    case SL_EVENT_REST:
        break;
    }
    if (result == 0 && n->state.round > 0 && !n->life.finished)
        result = advance(n, update, error);
    if (result == 0 && gives_back(n, event))
        sl_incoming_collect(n);
    update->released = n->inbox.released;
    update->released_count = n->inbox.released_count;
    return result;
}

float *sl_node_model(sl_node *n) {
    return n->state.x;
}

const float *sl_node_point(const sl_node *n) {
    return n->algorithm->point != NULL ? n->algorithm->point(&n->state) : n->state.x;
}

float *sl_node_gradient_buffer(sl_node *n) {
    return n->state.g;
}

void sl_node_lend(sl_node *n, const float *vector) {
    assert(n->settings.lends || vector == NULL);
    n->state.lent = vector;
}

uint64_t sl_node_round(const sl_node *n) {
    return n->state.round;
}

void sl_node_hold(sl_node *n, uint64_t round) {
    assert(round == 0 || round >= n->state.round);
    n->life.held_after = round;
}

bool sl_node_rests(const sl_node *n) {
    return n->state.round > 0 && !n->round.exchanging && !n->round.gradient_ready;
}

bool sl_node_varies(const sl_node *n) {
    return sl_route_varies(&n->view.route);
}

uint64_t sl_node_open_exchange(const sl_node *n, sl_row *from) {
    sl_exchange_step step = {0};
    const uint64_t exchange = sl_node_exchange(n) + !n->round.exchanging;
    sl_route_step(&n->view.route, exchange, 0, &step);
    *from = step.in;
    return exchange;
}
