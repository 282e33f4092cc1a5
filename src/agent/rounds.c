/* rounds.c - drives the node: its events in, its updates out; see state.h.
 *
 * Gradients and evaluations run on the worker. A part goes to all out-neighbours one after the
 * other while it is in cache.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/lending.h"
#include "agent/state.h"
#include "base/clock.h"
#include "wire/checksum.h"

/* Between them comes word of what came, which then need not be copied. A look costs a few calls. */
enum { PARTS_BETWEEN_LOOKS = 4, PARTS_OF_A_ROOM = 15 };

/* A neighbour may give up first: what this agent knows of why they did not meet is said too. */
static void add_refusals(sl_agent *a) {
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
        const size_t used = strlen(a->error.text);
        if (!n->link.agreed && n->dialing.refusal[0] != '\0' &&
            strstr(a->error.text, n->dialing.refusal) == NULL)
            snprintf(a->error.text + used, sizeof a->error.text - used, "; to agent %u: %s",
                     n->rank, n->dialing.refusal);
    }
}

void sl_agent_fail(sl_agent *a, const sl_error *error, const char *cause) {
    if (a->phase == PHASE_OVER)
        return;
    a->error = *error;
    if (a->phase == PHASE_CONNECTING || sl_cohort_is_new(&a->cohort))
        add_refusals(a);
    a->phase = PHASE_OVER;
    sl_calls_fail(&a->calls, &a->error);
    snprintf(a->cause, sizeof a->cause, "%.*s", (int)sizeof a->cause - 1, cause);
}

void sl_agent_fail_here(sl_agent *a, int code, const char *format, ...) {
    char why[SL_ERROR_TEXT_MAX];
    sl_error error;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    sl_fail_node(&error, code, a->side.rank, a->side.now.round, "%s", why);
    sl_agent_fail(a, &error, error.text);
}

sl_neighbour *sl_agent_neighbour(sl_agent *a, uint32_t rank) {
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (n->rank == rank)
            return n;
    return NULL;
}

/* Until now. */
static void spend(sl_agent *a, sl_span_kind kind, double now_s, double seconds) {
    sl_times *times = &a->record.times;
    *(kind == SL_SPAN_ENCODE ? &times->encode : &times->combine) += seconds;
    a->times.busy_since_gradient_s += seconds;
    sl_tracing_work(a, kind, now_s, seconds);
}

/* Whose message the error is about, where the run can go on without it. */
static sl_neighbour *find_culprit(sl_agent *a, int result, const sl_error *error) {
    const bool is_verdict = (result == SL_EPROTO || result == SL_EDIVERGED) && error->peer >= 0;
    return is_verdict && a->cohort.membership != NULL && a->phase == PHASE_TRAINING
               ? sl_agent_neighbour(a, (uint32_t)error->peer)
               : NULL;
}

/* What the node has, was sent or would send is of no use, or it has failed. */
static void refuse(sl_agent *a, int result, double loss, const sl_error *error) {
    sl_neighbour *culprit = find_culprit(a, result, error);
    if (culprit != NULL) {
        a->cohort.culprit = culprit;
        a->cohort.verdict = *error;
    }
    if (culprit != NULL && result == SL_EPROTO)
        return;
    if (result != SL_EDIVERGED || a->node.own != NULL ||
        !sl_node_is_spoiled(a->node.rounds, loss)) {
        sl_agent_fail(a, error, error->text);
        return;
    }
    a->cohort.refused = *error;
    a->outbox.open = false;
}

/* ---- sending ---- */

static void start_publishing(sl_agent *a, const sl_outbound *message) {
    a->receiver_count = message->to.count;
    for (uint32_t i = 0; i < message->to.count; i++) {
        a->receivers[i] = sl_agent_neighbour(a, message->to.peers[i]);
        a->receivers[i]->first = a->receivers[i]->stream.numbered.data;
        a->receivers[i]->row = 1;
        a->receivers[i]->mutual = message->mutual;
        sl_tracing_send(a, a->receivers[i], message->exchange);
    }
    sl_outbox_begin(&a->outbox, message, &a->side.copies, a->side.now.view);
    if (a->times.exchange_began_s == 0)
        a->times.exchange_began_s = sl_clock_seconds();
}

static bool may_send(const sl_agent *a) {
    return a->outbox.open && !a->outbox.recalled && a->phase == PHASE_TRAINING;
}

/* What may have to be sent again is noted, or copied. */
static void keep_part(sl_agent *a, uint32_t part, bool copy) {
    sl_copies *copies = &a->side.copies;
    uint32_t place = SL_COPY_NONE;
    for (uint32_t i = 0; i < a->receiver_count; i++) {
        sl_neighbour *n = a->receivers[i];
        const uint64_t number = sl_neighbour_frame_of(n, part);
        if (number >= n->stream.numbered.data || sl_neighbour_part_came(n, part) ||
            sl_neighbour_part_is_copied(n, part))
            continue;
        const sl_frame frame = sl_outbox_frame(&a->outbox, part, part + 1);
        if (place == SL_COPY_NONE)
            place = sl_copies_add(copies, &frame, a->outbox.payloads[part].data,
                                  a->outbox.message.stays == SL_STAY_ANSWER);
        sl_stream_use_copy(&n->stream, number, place);
    }
    if (copy && place != SL_COPY_NONE)
        sl_copies_make(copies, place);
}

/* Has all that has begun to leave done so, what is sent again, too? */
static bool have_left(const sl_agent *a) {
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (!sl_neighbour_has_left(n))
            return false;
    return true;
}

/* Where there is a copy for the receiver, nothing leaves from the node's memory. */
static bool has_left_for_all(const sl_agent *a, uint32_t part, bool *came) {
    *came = true;
    for (uint32_t i = 0; i < a->receiver_count; i++) {
        const sl_neighbour *n = a->receivers[i];
        const bool copied = sl_neighbour_part_is_copied(n, part);
        if (!copied && !sl_neighbour_part_left(n, part))
            return false;
        *came = *came && (copied || sl_neighbour_part_came(n, part));
    }
    return true;
}

/* May the node overwrite this part? It has left for all receivers. Where it did not come to some of
 * them, it may have to be sent again: from a copy, which is made when the node stops for it. What
 * comes meanwhile often says that the part has come. Of a message that stays for a step, the copies
 * are made when the node stops for the last part of the next one; of one that is answered, none. */
static bool is_gone(sl_agent *a, uint32_t part, bool copy) {
    const sl_outbound *m = &a->outbox.message;
    sl_copies *copies = &a->side.copies;
    bool came;
    if (!has_left_for_all(a, part, &came))
        return false;
    const bool frees =
        part + 1 == m->parts && sl_copies_lack_others(copies, m->exchange, m->step); /* before */
    const bool must_copy = frees || !(came || m->stays != SL_STAY_NONE);
    if ((came && !frees) || copies->count == 0)
        return came;
    if (must_copy && (!copy || !sl_node_awaits_sent(a->node.rounds) || (frees && !have_left(a))))
        return false;
    if (frees)
        sl_copies_make_others(copies, m->exchange, m->step);
    keep_part(a, part, m->stays == SL_STAY_NONE);
    return true;
}

/* Of a node at its own times: the neighbour has what it was to be told of. Once there is a cut, it
 * may have dropped that: its account says so. */
static bool tell_acknowledged(sl_agent *a) {
    const sl_await tells = a->tells.node;
    if (tells.neighbour == NULL || a->cohort.cutting != SL_CUTTING_NOTHING ||
        tells.neighbour->stream.acknowledged.data <= tells.number)
        return false;
    a->tells.node.neighbour = NULL;
    sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_ACKNOWLEDGED, .peer = tells.neighbour->rank});
    return true;
}

bool sl_agent_settle(sl_agent *a, bool copy) {
    bool any = tell_acknowledged(a);
    while (may_send(a) && a->outbox.gone < a->outbox.encoded &&
           is_gone(a, a->outbox.gone, copy && !any)) {
        any = true;
        sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_SENT, .part = a->outbox.gone++});
    }
    return any;
}

/* Nobody to send to in this step: the parts are adapted, and have left, at once. */
static void publish_to_nobody(sl_agent *a) {
    while (may_send(a) && a->receiver_count == 0 && a->outbox.encoded < a->outbox.message.parts) {
        sl_error error;
        int encoded = sl_outbox_encode(&a->outbox, a->outbox.encoded, &error);
        if (encoded < 0)
            refuse(a, encoded, 0, &error);
        if (encoded <= 0)
            return;
        sl_agent_settle(a, false);
    }
}

/* One part to each in turn, so that the second send finds it in cache. */
static bool send_to_each(sl_agent *a) {
    bool any = false;
    for (uint32_t i = 0; i < a->receiver_count && may_send(a); i++) {
        sl_error error;
        int sent = sl_neighbour_send_part(a->receivers[i], &a->outbox, &error);
        if (sent < 0)
            refuse(a, sent, 0, &error);
        any = any || sent > 0;
    }
    return any;
}

/* ---- sending, of a node at its own times ---- */

/* May each of them be sent a part now? */
static bool find_receivers(sl_agent *a, const sl_row *to) {
    a->outbox.held = false;
    a->receiver_count = to->count;
    for (uint32_t i = 0; i < to->count; i++) {
        a->receivers[i] = sl_agent_neighbour(a, to->peers[i]);
        a->outbox.held = a->outbox.held || !sl_neighbour_takes_data(a->receivers[i]);
    }
    return !a->outbox.held;
}

/* How many of them read copies where they are? */
static uint32_t count_lent(const sl_agent *a) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->receiver_count; i++)
        count += a->receivers[i]->process.lends;
    return count;
}

/* What does not stay until it is answered leaves as a copy. */
static uint32_t copy_of(sl_agent *a, const sl_async_part *part, const sl_frame *frame) {
    sl_copies *copies = &a->side.copies;
    if ((part->stays && count_lent(a) == 0) || frame->payload_bytes == 0 || a->receiver_count == 0)
        return SL_COPY_NONE;
    const uint32_t place = sl_copies_add(copies, frame, part->payload.data, false);
    sl_copies_make(copies, place);
    return place;
}

static void send_account(sl_agent *a, const sl_async_part *part, uint32_t to) {
    const sl_frame frame = {
        .type = SL_FRAME_ACCOUNT, .exchange = part->number, .step = part->step, .part = part->part};
    sl_neighbour *n = sl_agent_neighbour(a, to);
    if (n != NULL)
        sl_neighbour_send(n, frame, NULL, false);
}

void sl_agent_take_account(sl_agent *a, const sl_neighbour *from, const sl_frame *frame) {
    if (a->node.own != NULL)
        sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_RECEIVED,
                                        .peer = from->rank,
                                        .exchange = frame->exchange,
                                        .step = frame->step,
                                        .part = frame->part,
                                        .silent = true});
}

static void send_part(sl_agent *a, const sl_async_part *part) {
    const bool sums =
        a->outbox.sums && part->payload.bytes > 0 && count_lent(a) < a->receiver_count;
    const sl_frame frame = {.type = SL_FRAME_DATA,
                            .view = a->side.now.view,
                            .exchange = part->number,
                            .step = part->step,
                            .part = part->part,
                            .silent = part->silent,
                            .unsummed = !a->outbox.sums,
                            .asks = part->tells,
                            .scalar = part->scalar,
                            .payload_bytes = (uint32_t)part->payload.bytes,
                            .payload_sum =
                                sums ? sl_checksum(part->payload.data, part->payload.bytes) : 0};
    const uint32_t place = copy_of(a, part, &frame);
    for (uint32_t i = 0; i < a->receiver_count; i++) {
        sl_neighbour *n = a->receivers[i];
        sl_tracing_send(a, n, part->number);
        if (part->tells)
            a->tells.node = (sl_await){n, n->stream.numbered.data};
        if (!sl_neighbour_post(n, &frame, part->payload.data, place))
            a->side.now.out_of_memory = true;
    }
}

static bool encode_next(sl_agent *a, sl_async_part *part, sl_row *to) {
    const double before_s = sl_clock_seconds();
    sl_error error;
    const int next = sl_async_next(a->node.own, part, to, &error);
    const double now_s = sl_clock_seconds();
    if (next < 0)
        sl_agent_fail(a, &error, error.text);
    else if (next > 0)
        spend(a, SL_SPAN_ENCODE, now_s, now_s - before_s);
    return next > 0;
}

/* A part has left when all its receivers' streams have it. */
static bool send_at_own_time(sl_agent *a) {
    sl_async_part part;
    sl_row to;
    bool any = false;
    a->outbox.held = false;
    while (a->node.own != NULL && a->phase == PHASE_TRAINING &&
           a->cohort.cutting != SL_CUTTING_WAITS && encode_next(a, &part, &to) &&
           (part.accounts || find_receivers(a, &to))) {
        if (part.accounts)
            send_account(a, &part, to.peers[0]);
        else
            send_part(a, &part);
        sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_SENT, .part = part.part});
        any = true;
    }
    return any;
}

bool sl_agent_turn(sl_agent *a) {
    bool any = false;
    while (a->node.own != NULL && a->phase == PHASE_TRAINING && sl_async_turns(a->node.own)) {
        sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_TURN});
        any = true;
    }
    return any;
}

/* The next senders to this agent need not hold back any more. */
static void tell_open(sl_agent *a) {
    sl_row from;
    if (!a->side.now.varies || a->phase != PHASE_TRAINING)
        return;
    const uint64_t exchange = sl_node_open_exchange(a->node.rounds, &from);
    for (uint32_t i = 0; i < from.count; i++)
        sl_neighbour_tell_open(sl_agent_neighbour(a, from.peers[i]), exchange);
}

bool sl_agent_recall(sl_agent *a) {
    if (a->phase != PHASE_TRAINING)
        return true;
    a->outbox.recalled = true;
    if (!have_left(a))
        return false;
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        sl_stream_void(&n->stream, 1u << SL_FRAME_DATA | 1u << SL_FRAME_DIRECT);
    a->outbox.open = false;
    return true;
}

/* A device that has encoded a message has read what came before: that goes back first, and the
 * message's header tells. */
static void give_back_read(sl_agent *a) {
    if (may_send(a) && a->outbox.encoded == 0 && !a->side.vec->on_host &&
        sl_node_ready(a->node.rounds))
        sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_NOTIFIED});
}

bool sl_agent_send_parts(sl_agent *a) {
    bool any = false;
    give_back_read(a);
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        any = sl_neighbour_flush(n) || any; /* what found no room, or did not come */
    publish_to_nobody(a);
    any = send_at_own_time(a) || any;
    const uint32_t most = a->outbox.room == SL_COPY_NONE ? PARTS_BETWEEN_LOOKS : PARTS_OF_A_ROOM,
                   until = a->outbox.encoded + most;
    for (uint32_t i = 0; i < most && a->outbox.encoded < until && send_to_each(a); i++)
        any = true;
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        sl_neighbour_tell_counts(n); /* after data, which says it too */
    tell_open(a);                    /* likewise */
    if (a->outbox.encode_seconds > 0)
        spend(a, SL_SPAN_ENCODE, sl_clock_seconds(), a->outbox.encode_seconds);
    a->outbox.encode_seconds = 0;
    sl_tracing_sent(a);
    return any;
}

/* ---- what the node says ---- */

static void account_round(sl_agent *a, const sl_round *round, double now_s) {
    sl_times *t = &a->record.times;
    /* A round that was loaded had its gradient in another process. */
    const double since_s = a->times.gradient_ended_s > 0 ? a->times.gradient_ended_s : now_s;
    const double waited = now_s - since_s - a->times.busy_since_gradient_s;
    t->wait += waited > 0 ? waited : 0;
    if (a->times.exchange_began_s != 0 && a->times.exchange_ended_s > a->times.exchange_began_s)
        t->exchange += a->times.exchange_ended_s - a->times.exchange_began_s;
    a->times.exchange_began_s = 0;
    t->total = now_s - a->times.began_s;
    sl_tracing_round(a, round->round, now_s);
    sl_record_take_round(&a->record, round, a->side.limits.header_bytes);
    sl_agent_measured(a, round);
    char doubt[SL_DOUBT_TEXT_MAX];
    if (sl_record_doubts(&a->record, doubt))
        sl_agent_notice(a, "%s", doubt);
}

static void give_job(sl_agent *a, const sl_update *update) {
    const sl_record_config *config = &a->settings.experiment->record;
    /* The model of a node at its own times may change while the job runs. */
    sl_job job = {.x = a->node.own != NULL && !update->finished
                           ? (float *)sl_machine_point(&a->node)
                           : sl_machine_model(&a->node),
                  .point = sl_machine_point(&a->node),
                  .g = sl_machine_gradient(&a->node),
                  .compute = update->compute,
                  .returns = sl_cohort_is_outside(&a->cohort) && update->compute,
                  .push_sum_weight = sl_machine_push_sum_weight(&a->node)};
    job.compute_round = update->round;
    if (update->round_done) {
        uint64_t round = update->finished_round.round;
        a->cohort.told = round;
        job.record = sl_record_due(config, round, a->settings.task.rounds);
        job.evaluate = sl_record_evaluates(
            config, sl_topology_nodes(a->settings.experiment->topology), a->settings.rank);
        job.report = a->record;
        job.parameters = sl_record_parameters_due(config, round);
        job.parameters_round = round;
    } else if (update->round == 1) {
        job.parameters = sl_record_parameters_due(config, 0);
    }
    sl_worker_give(a->worker, &job);
}

static void begin_goodbye(sl_agent *a) {
    a->phase = PHASE_GOODBYE;
    a->outbox.open = false;
    a->times.deadline_s = a->side.now_s + a->settings.experiment->transport.round_timeout_s;
}

/* False: the run ends. */
static bool step_node(sl_agent *a, const sl_event *event, sl_update *update) {
    sl_error error;
    double before = sl_clock_seconds();
    sl_event timed = *event;
    timed.now_ns = (uint64_t)(1e9 * before);
    int result = sl_machine_step(&a->node, &timed, update, &error);
    a->times.progress_s = sl_clock_seconds();
    spend(a, SL_SPAN_COMBINE, a->times.progress_s, a->times.progress_s - before);
    if (event->type == SL_EVENT_RECEIVED || event->type == SL_EVENT_SENT)
        a->times.exchange_ended_s = a->times.progress_s;
    if (event->type == SL_EVENT_RECEIVED && event->token != NULL)
        sl_tracing_receive(a, sl_pool_owner(((sl_buffer *)event->token)->pool), event);
    for (size_t i = 0; i < update->released_count; i++)
        if (update->released[i] != NULL)
            sl_neighbour_consumed(update->released[i]);
    for (size_t i = 0; i < update->act_count; i++)
        sl_agent_act(a, &update->acts[i]);
    a->side.now.round = sl_machine_round(&a->node);
    a->side.now.exchange = sl_machine_exchange(&a->node);
    if (result != 0)
        refuse(a, result, event->loss, &error);
    return result == 0;
}

static void perform(sl_agent *a, const sl_update *update, bool leaves) {
    if (update->round_done || update->publish)
        a->outbox.open = false;
    if (update->compute || leaves)
        give_job(a, update);
    if (update->publish)
        start_publishing(a, &update->message);
    if (leaves)
        begin_goodbye(a);
}

void sl_agent_finish(sl_agent *a) {
    give_job(a,
             &(sl_update){.round_done = true, .finished = true, .finished_round = a->record.round});
    begin_goodbye(a);
}

static void take_update(sl_agent *a, sl_update *update) {
    const bool leaves = update->round_done && sl_saving_end_round(a, &update->finished_round);
    if (update->round_done) {
        a->cohort.rested = update->finished_round;
        sl_state_transfer_offer(a, update->finished_round.round);
        a->cohort.tally = a->record;
        account_round(a, &update->finished_round, a->times.progress_s);
    }
    if (leaves)
        update->compute = update->publish = false;
    if (update->finished && !leaves) {
        a->outbox.open = false;
        if (!sl_averaging_begin(a))
            sl_agent_finish(a);
        return;
    }
    const bool rests = update->round_done && !update->compute && !leaves;
    if (!rests) {
        perform(a, update, leaves);
        return;
    }
    a->outbox.open = false;
    a->cohort.rest = SL_NODE_HAS_ENDED;
}

void sl_agent_deliver(sl_agent *a, const sl_event *event) {
    sl_update update;
    if (a->phase != PHASE_OVER && !sl_agent_has_left(a) && step_node(a, event, &update))
        take_update(a, &update);
}

void sl_agent_begin(sl_agent *a, const sl_event *event) {
    sl_update update;
    if (a->phase == PHASE_OVER || !step_node(a, event, &update))
        return;
    a->cohort.rest = SL_NODE_RUNS; /* a view may begin that was not asked for */
    if (a->node.own != NULL) {
        take_update(a, &update);
        return;
    }
    sl_node_hold(a->node.rounds, sl_machine_round(&a->node));
    update.round_done =
        !sl_cohort_is_outside(&a->cohort); /* what is recorded with the next gradient */
    update.finished_round = a->cohort.rested;
    perform(a, &update, false);
}

bool sl_agent_computes_apart(const sl_agent *a) {
    return a->node.own != NULL && sl_worker_busy(a->worker);
}

void sl_agent_depart(sl_agent *a, bool with_all) {
    sl_saving_leave(a, &a->cohort.tally, with_all);
    a->averaging.stage = SL_AVERAGING_NONE; /* who leaves may have come to it */
    if (sl_agent_computes_apart(a)) {       /* the worker has no place for another job */
        a->cohort.leaves = true;
        a->cohort.rest = SL_NODE_HAS_ENDED;
        return;
    }
    const sl_round *rested = &a->cohort.rested;
    const sl_update update = {.round_done = rested->round != a->cohort.told,
                              .finished = rested->round == a->settings.task.rounds,
                              .finished_round = *rested};
    a->cohort.rest = SL_NODE_RUNS;
    perform(a, &update, true);
}

/* ---- worker and device ---- */

static void take_gradient(sl_agent *a, const sl_job_result *result) {
    a->record.times.gradient += result->gradient_seconds;
    a->times.gradient_ended_s = sl_clock_seconds();
    a->times.busy_since_gradient_s = 0;
    sl_tracing_gradient(a, a->times.gradient_ended_s, result->gradient_seconds);
    sl_error error;
    if (a->settings.task.lend != NULL && sl_agent_lend(a, &error) != 0)
        sl_agent_fail(a, &error, error.text);
    if (a->side.has_rooms)
        sl_node_free_rooms(a->node.rounds, sl_agent_free_rooms(a));
    const sl_event_type type = result->from > 0 ? SL_EVENT_FINAL : SL_EVENT_GRADIENT;
    sl_agent_deliver(a, &(sl_event){.type = type, .loss = result->loss, .from = result->from});
}

void sl_agent_on_worker(void *context) {
    sl_agent *a = context;
    sl_job_result result;
    if (!sl_worker_take(a->worker, &result))
        return;
    if (result.evaluated)
        a->record.evaluation = result.evaluation;
    if (result.code != 0) {
        sl_agent_fail_here(a, result.code, "the round could not be reported: %s",
                           sl_error_meaning(result.code));
    } else if (a->calls.ending) {
        begin_goodbye(a);
    } else if (result.initialized) {
        a->initialized = true;
    } else if (result.computed) {
        take_gradient(a, &result);
    } else {
        a->cohort.tells_aside = false;
    }
}

void sl_agent_on_call(void *context) {
    sl_agent *a = context;
    sl_error error;
    if (sl_calls_receive(&a->calls, &error) != 0)
        sl_agent_fail(a, &error, error.text);
}

void sl_agent_on_notified(void *context) {
    sl_agent *a = context;
    sl_signal_take(a->notify_fd);
    sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_NOTIFIED});
}
