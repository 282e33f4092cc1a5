/* sim.c - the simulator: lock-step rounds of all nodes over links that take no time; see
 * starling/sim.h.
 *
 * In each round every node computes in rank order; what it publishes is copied once into a message
 * that all its out-neighbours read in place, as payloads on the wire would be. Nodes, algorithms
 * and sums are the agents' own, so the numbers are the agents' too. Memory: the nodes' vectors and
 * one message a node: for adapt-then-combine x, gradient and message, 3 n d floats. Vectors of a
 * device are copied to the host where they are recorded.
 */
#include "sim/simulator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/identity.h"
#include "checkpoint/cut_file.h"
#include "starling/device.h"
#include "starling/sim.h"
#include "wire/frame.h"

/* Is a checkpoint of the round that begins asked for? */
static void look_who_asks(simulator *s, uint64_t round) {
    const volatile int *asked = s->checkpoints != NULL ? s->checkpoints->asked : NULL;
    if (asked == NULL || *asked == s->asked)
        return;
    s->asked = *asked;
    s->asked_for = round;
}

static sl_node *largest_node(const simulator *s) {
    sl_node *largest = NULL;
    for (uint32_t i = 0; i < s->nodes; i++) {
        sl_node *n = s->peers[i].node;
        if (n != NULL && (largest == NULL || sl_node_memory(n) > sl_node_memory(largest)))
            largest = n;
    }
    return largest;
}

/* On the saver's thread, as the next one. */
static void on_notice(void *context, const char *text) {
    const simulator *s = context;
    if (s->observer->notice != NULL)
        s->observer->notice(s->observer->context, text);
}

static void on_written(void *context, uint64_t round, uint32_t rank, const char *why) {
    sl_log_entry entry = {.kind = SL_LOG_CHECKPOINT, .rank = rank, .round = round};
    snprintf(entry.why, sizeof entry.why, "%s", why != NULL ? why : "");
    sl_sim_log(context, &entry);
}

/* Before the saver removes newer files. */
static int log_beginning(const simulator *s, sl_error *error) {
    if (s->observer->log == NULL)
        return 0;
    sl_log_entry start = {.kind = SL_LOG_START,
                          .rank = SL_LOG_ALL,
                          .round = s->resumed + 1,
                          .rounds = s->task->rounds,
                          .run_id = s->checkpoints->run_id};
    sl_log_entry resume = {.kind = SL_LOG_RESUME, .rank = SL_LOG_ALL, .round = s->resumed};
    const int result = sl_identity_draw(&start.incarnation, error);
    if (result != 0)
        return result;
    char *text = sl_experiment_settings(s->experiment);
    if (text == NULL)
        return sl_fail(error, SL_ENOMEM, "simulator: out of memory");
    sl_sim_log(s, &start);
    if (s->resumed > 0) {
        resume.passed_over_count = sl_cut_newer(resume.passed_over, SL_LOG_PASSED_MAX,
                                                s->checkpoints->folder, 0, s->nodes, s->resumed);
        sl_sim_log(s, &resume);
    }
    sl_sim_log(s, &(sl_log_entry){.kind = SL_LOG_SETTINGS,
                                  .rank = SL_LOG_ALL,
                                  .round = start.round,
                                  .settings = text});
    free(text);
    return 0;
}

static int open_saver(simulator *s, sl_error *error) {
    const sl_saver_settings settings = {.folder = s->checkpoints->folder,
                                        .owner = s->owner,
                                        .to = s->nodes,
                                        .keep = s->experiment->checkpoint.keep,
                                        .resumed = s->resumed,
                                        .vec = s->vec,
                                        .notice = on_notice,
                                        .written = on_written,
                                        .context = s};
    const bool saves = s->experiment->checkpoint.every > 0 || sl_sim_end_after(s) > 0;
    return saves && !sl_experiment_is_asynchronous(s->experiment)
               ? sl_saver_open(&s->saver, &settings, &(sl_machine){.rounds = largest_node(s)},
                               error)
               : 0;
}

/* Of a run that is repeated, who was a member. */
static int load_nodes(simulator *s, sl_error *error) {
    sl_checkpoint_view view = {0};
    int result = sl_sim_repeats(s)
                     ? sl_checkpoint_view_at(&view, s->checkpoints->folder, s->resumed, error)
                     : 0;
    for (uint32_t i = 0; i < s->nodes && result == 0; i++) {
        peer *p = &s->peers[i];
        sl_piece totals[SL_RECORD_PIECES];
        if (!sl_checkpoint_view_has(&view, i))
            sl_node_close(&p->node);
        if (p->node == NULL)
            continue;
        sl_record_pieces(&p->record, totals);
        result = sl_cut_load(s->checkpoints->folder, (sl_checkpoint_file){s->resumed, i}, &s->owner,
                             &(sl_machine){.rounds = p->node}, view.number > 0, s->vec,
                             &(sl_image_extras){totals, SL_RECORD_PIECES}, error);
    }
    return result;
}

/* Their states are with whoever drives the simulator. */
static int show_nodes(simulator *s, sl_error *error) {
    const sl_checkpoints *c = s->checkpoints;
    int result = 0;
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        result =
            c->opened(c->context, i,
                      &(sl_machine){.rounds = s->peers[i].node, .own = s->peers[i].async}, error);
    return result;
}

static int open_checkpoints(simulator *s, sl_error *error) {
    if (sl_experiment_is_asynchronous(s->experiment))
        return s->checkpoints->opened != NULL ? show_nodes(s, error) : 0;
    if (s->experiment->faults.count > 0 && (s->checkpoints->resume || sl_sim_end_after(s) > 0))
        return sl_fail(error, SL_EINVAL,
                       "faults: a run with faults cannot go on from a checkpoint, or end with one");
    s->resumed = s->checkpoints->resume ? s->checkpoints->round : 0;
    if (s->checkpoints->opened != NULL)
        return show_nodes(s, error);
    int result =
        sl_checkpoint_owner_of(&s->owner, s->experiment, s->task, s->checkpoints->run_id, error);
    return result == 0 && s->resumed > 0 ? load_nodes(s, error) : result;
}

/* Who is lost hears nothing. */
static bool hears(const simulator *s, uint32_t rank, const sl_event *part) {
    return s->peers[rank].node != NULL && s->peers[rank].view == s->peers[part->peer].view &&
           !(sl_sim_repeats(s) && sl_sim_misses(s, rank, part));
}

static int publish_part(simulator *s, uint32_t rank, const sl_outbound *sent, uint32_t part,
                        sl_error *error) {
    peer *p = &s->peers[rank];
    double before = sl_clock_seconds();
    sl_payload payload;
    int result = sl_node_payload(p->node, part, &payload, error);
    if (result != 0)
        return sl_sim_ends_alone(s, rank, result) ? 0 : result;
    message *m = sl_sim_take_message(s); /* the sender reads it until all deliveries are made */
    if (m == NULL)
        return sl_fail(error, SL_ENOMEM, "simulator: out of memory for the messages of %u nodes",
                       s->nodes);
    memcpy(m->data, payload.data, payload.bytes);
    p->record.times.encode += sl_clock_seconds() - before;
    if (s->timeline != NULL)
        sl_timeline_part(s->timeline, payload.bytes + SL_FRAME_HEADER_BYTES);
    for (uint32_t i = 0; i < sent->to.count && result == 0; i++) {
        sl_event event = {.type = SL_EVENT_RECEIVED,
                          .peer = rank,
                          .exchange = sent->exchange,
                          .step = sent->step,
                          .part = part,
                          .scalar = sl_node_scalar(p->node, part),
                          .payload = {m->data, payload.bytes},
                          .silent = sent->silent,
                          .token = m};
        if (!hears(s, sent->to.peers[i], &event))
            continue;
        m->readers++;
        result = sl_sim_deliver(s, sent->to.peers[i], &event, error);
    }
    sl_sim_let_go(s, m);
    if (result != 0)
        return result;
    const bool stays = sl_sim_repeats(s) && sl_sim_keeps_back(s, rank, sent, part);
    const sl_event event = {.type = stays ? SL_EVENT_NOTIFIED : SL_EVENT_SENT, .part = part};
    return sl_sim_deliver(s, rank, &event, error); /* either way, it looks at what has come */
}

static bool overlaps(const simulator *s) {
    return s->sending.leaves.count > 0;
}

/* Of the message under way, all whose gradient is there. */
static int publish_parts(simulator *s, uint32_t rank, sl_error *error) {
    peer *p = &s->peers[rank];
    int result = 0;
    while (p->encoded < p->sending.parts && p->node != NULL && result == 0 &&
           sl_node_may_encode(p->node))
        result = publish_part(s, rank, &p->sending, p->encoded++, error);
    return result;
}

static int publish_if_asked(simulator *s, uint32_t rank, sl_error *error) {
    peer *p = &s->peers[rank];
    if (p->pending.publish) {
        const sl_outbound *sent = &p->pending.message;
        p->pending.publish = false;
        p->sending = *sent;
        p->encoded = 0;
        s->published++;
        if (s->timeline != NULL)
            sl_timeline_send(s->timeline, rank, sent->exchange, sent->step, sent->overlaps,
                             sent->to.peers, sent->to.count);
    }
    return publish_parts(s, rank, error);
}

static void compute(simulator *s, uint32_t rank) {
    peer *p = &s->peers[rank];
    p->pending.compute = false;
    if (s->observer->round != NULL)
        s->observer->round(s->observer->context, rank, p->pending.round);
    double before = sl_clock_seconds();
    p->loss = sl_host_task_gradient(&s->host, rank, p->pending.round, sl_node_point(p->node),
                                    sl_node_gradient_buffer(p->node));
    p->record.times.gradient += sl_clock_seconds() - before;
    if (sl_faults_spoil(&s->experiment->faults, p->pending.round, rank))
        p->loss = NAN;
    if (s->task->lend != NULL)
        sl_node_lend(p->node, s->task->lend(s->task->context, rank));
}

static int take(simulator *s, uint32_t rank, const sl_event *event, sl_error *error) {
    const int result = sl_sim_deliver(s, rank, event, error);
    return result == 0 ? publish_if_asked(s, rank, error) : result;
}

/* Tensor by tensor, as if it had been computed so, and as a worker tells it (world/job.h). */
static int take_ranges(simulator *s, uint32_t rank, sl_error *error) {
    const peer *p = &s->peers[rank];
    const size_t d = s->task->dimension;
    sl_event event = {.type = SL_EVENT_FINAL, .loss = p->loss, .from = d};
    int result = take(s, rank, &event, error);
    size_t told = d;
    for (size_t t = s->task->tensor_count; t > 1 && p->node != NULL && result == 0; t--) {
        event.from = s->task->tensor_ends[t - 2];
        const size_t border = sl_ranges_border(&s->sending.leaves, event.from, d);
        if (border != told)
            result = take(s, rank, &event, error);
        told = border;
    }
    return result;
}

static int take_gradient(simulator *s, uint32_t rank, bool in_ranges, sl_error *error) {
    const peer *p = &s->peers[rank];
    int result = in_ranges ? take_ranges(s, rank, error) : 0;
    if (p->node == NULL || result != 0)
        return result;
    return take(s, rank, &(sl_event){.type = SL_EVENT_GRADIENT, .loss = p->loss}, error);
}

/* Node by node; or all gradients first, as nobody shall hear of one that is not finite. */
static int train_nodes(simulator *s, uint64_t round, sl_error *error) {
    const bool apart = sl_experiment_recovers(s->experiment);
    int result = 0;
    for (uint32_t i = 0; i < s->nodes && apart; i++)
        if (s->peers[i].node != NULL)
            compute(s, i);
    if (apart)
        result = sl_sim_set_aside(s, round, error);
    for (uint32_t i = 0; i < s->nodes && result == 0; i++) {
        if (s->peers[i].node == NULL)
            continue;
        if (!apart)
            compute(s, i);
        result = take_gradient(s, i, overlaps(s) && !apart, error);
    }
    return result;
}

static bool has_ended(const simulator *s, uint64_t round) {
    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->peers[i].node != NULL && s->peers[i].pending.finished_round.round < round)
            return false;
    return true;
}

/* Step after step, until every node waits for a gradient or has ended. */
static int publish_steps(simulator *s, sl_error *error) {
    int result = 0;
    uint64_t before;
    bool any;
    do {
        before = s->published;
        any = false;
        for (uint32_t i = 0; i < s->nodes && result == 0; i++)
            result = publish_if_asked(s, i, error);
        if (result == 0 && s->published == before && sl_sim_repeats(s))
            result = sl_sim_cut(s, &any, error);
    } while (result == 0 && (any || s->published != before));
    return result;
}

/* An exchange that does not need the round's gradient is over before the first one is computed:
 * then each node is done with its gradient at once. */
static int run_round(simulator *s, uint64_t round, sl_error *error) {
    int result = publish_steps(s, error);
    for (uint32_t i = 0; i < s->nodes && result == 0 && s->task->ready != NULL; i++)
        if (s->peers[i].node != NULL)
            s->task->ready(s->task->context, i, round, sl_node_point(s->peers[i].node),
                           sl_node_push_sum_weight(s->peers[i].node));
    if (result == 0)
        result = train_nodes(s, round, error);
    if (result == 0)
        result = publish_steps(s, error);
    if (result == 0 && sl_sim_repeats(s))
        result = sl_sim_close_lost(s, round, error);
    if (result == 0 && !has_ended(s, round))
        result = sl_fail(error, SL_EPROTO, "round %llu: every node waits for another",
                         (unsigned long long)round);
    return result;
}

static int report_parameters(simulator *s, uint64_t round) {
    if (!s->observer->parameters || !sl_record_parameters_due(&s->experiment->record, round))
        return 0;
    int result = 0;
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        if (s->peers[i].node != NULL)
            result = s->observer->parameters(s->observer->context, round, i,
                                             sl_host_task_view(&s->host, sl_sim_model(s, i)),
                                             sl_sim_push_sum_weight(s, i));
    return result;
}

static int report_round(simulator *s, uint64_t round) {
    int result = report_parameters(s, round);
    if (!s->observer->record || !sl_record_due(&s->experiment->record, round, s->task->rounds))
        return result;
    const uint32_t nodes = sl_topology_nodes(s->experiment->topology);
    for (uint32_t i = 0; i < s->nodes && result == 0; i++) {
        peer *p = &s->peers[i];
        if (p->node == NULL)
            continue;
        const float *x = sl_sim_recorded_model(s, i);
        p->record.evaluation = sl_record_evaluates(&s->experiment->record, nodes, i)
                                   ? s->task->evaluate(s->task->context, x)
                                   : (sl_evaluation){NAN, NAN};
        p->record.times.total = sl_clock_seconds() - s->began;
        result = s->observer->record(s->observer->context, &p->record, x);
    }
    return result;
}

/* A node that is done with its gradient when it has published need not keep it while the others
 * compute theirs. Of buckets all but the first are published later. */
static int share_gradient(simulator *s, const sl_algorithm *algorithm, sl_error *error) {
    if (algorithm->keeps_gradient || s->sending.buckets.count > 0 || s->task->lend != NULL ||
        sl_experiment_recovers(s->experiment) || sl_sim_repeats(s))
        return 0;
    s->gradient = s->vec->allocate(s->task->dimension);
    return s->gradient != NULL
               ? 0
               : sl_vec_no_memory(s->vec, error, "simulator: a gradient of %zu parameters",
                                  s->task->dimension);
}

static int open_copies(simulator *s, sl_error *error) {
    if (s->vec->on_host || !s->observer->record)
        return 0;
    s->copies = malloc(s->nodes * s->task->dimension * sizeof *s->copies);
    return s->copies != NULL ? 0
                             : sl_fail(error, SL_ENOMEM,
                                       "simulator: out of host memory for the models of %u nodes "
                                       "with %zu parameters each",
                                       s->nodes, s->task->dimension);
}

static bool loses(const simulator *s) {
    return s->experiment->faults.count > 0 || sl_sim_repeats(s);
}

static int open_nodes(simulator *s, sl_error *error) {
    s->peers = calloc(s->nodes, sizeof *s->peers);
    if (s->peers == NULL)
        return sl_fail(error, SL_ENOMEM, "simulator: out of memory for %u nodes", s->nodes);
    int result = 0;
    for (uint32_t i = 0; i < s->nodes && result == 0; i++) {
        s->peers[i].record.rank = i;
        if (i >= sl_topology_nodes(s->experiment->topology)) /* it may join */
            continue;
        result = sl_sim_open_node(s, i, NULL, error);
        if (result == 0 && s->resumed == 0)
            sl_host_task_initial(&s->host, i, sl_sim_model(s, i));
    }
    if (result == 0)
        s->message_bytes = sl_machine_part_bytes_max(
            &(sl_machine){.rounds = s->peers[0].node, .own = s->peers[0].async});
    if (loses(s)) /* a view may begin with dense messages */
        s->message_bytes = s->experiment->transport.chunk_bytes;
    return result;
}

static void close_nodes(simulator *s) {
    sl_saver_close(&s->saver);
    for (uint32_t i = 0; s->peers != NULL && i < s->nodes; i++)
        sl_sim_close_node(&s->peers[i]);
    free(s->peers);
    sl_sending_close(&s->sending);
    sl_scene_close(&s->scene);
    if (s->gradient != NULL)
        s->vec->release(s->gradient);
    free(s->copies);
    sl_host_task_close(&s->host);
    while (s->made_messages != NULL) {
        message *m = s->made_messages;
        s->made_messages = m->next_made;
        s->vec->release_host(m->data);
        free(m);
    }
}

/* All nodes have ended the round. */
static int end_round(simulator *s, uint64_t round, sl_error *error) {
    int result = 0;
    char text[SL_DOUBT_TEXT_MAX];
    for (uint32_t i = 0; i < s->nodes; i++) {
        sl_record *record = &s->peers[i].record;
        if (s->peers[i].node == NULL)
            continue;
        sl_record_take_round(record, &s->peers[i].pending.finished_round, SL_FRAME_HEADER_BYTES);
        if (sl_record_doubts(record, text))
            on_notice(s, text);
    }
    if (s->timeline != NULL)
        sl_timeline_end_round(s->timeline);
    if (s->experiment->final_average && round == s->task->rounds)
        result = sl_sim_average(s, error);
    return result != 0 ? result : report_round(s, round);
}

/* Its checkpoint is there, or the run has failed. */
static int leave(simulator *s, uint64_t round, sl_error *error) {
    int result = sl_saver_wait(s->saver, error);
    return result != 0
               ? result
               : sl_fail(error, SL_ESAVED, "round %llu: ended on request, after a checkpoint",
                         (unsigned long long)round);
}

/* ---- the run ---- */

static int run_rounds(simulator *s, const volatile int *stop, sl_error *error) {
    int result = s->resumed > 0 ? 0 : report_parameters(s, 0);
    s->began = sl_clock_seconds() - s->peers[0].record.times.total;
    if (loses(s))
        sl_sim_tell_members(s, s->resumed + 1);
    sl_sim_hold_before(s, s->resumed + 1);
    if (result == 0 && sl_sim_repeats(s))
        result = sl_sim_cut(s, &(bool){false}, error);
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        if (s->peers[i].node != NULL)
            result = sl_sim_deliver(s, i, &(sl_event){.type = SL_EVENT_START}, error);
    if (result == 0 && s->resumed > 0)
        result = end_round(s, s->resumed, error);
    for (uint64_t round = s->resumed + 1; round <= s->task->rounds && result == 0; round++) {
        if (stop != NULL && *stop)
            return sl_fail(error, SL_ESTOPPED, "stopped on request in round %llu",
                           (unsigned long long)round);
        if (s->experiment->faults.count == 0) /* such a run does not go on */
            look_who_asks(s, round);
        result = sl_sim_change_members(s, round, error);
        sl_sim_hold_before(s, round + 1);
        if (result == 0)
            result = run_round(s, round, error);
        if (result == 0)
            result = end_round(s, round, error);
        if (result == 0 && round == sl_sim_end_after(s))
            return leave(s, round, error);
    }
    return result;
}

/* An observer that ends the run only says its code. */
static void log_end(const simulator *s, int result, const sl_error *why) {
    sl_error how = *why;
    if (how.code != result)
        sl_fail(&how, result, "%s", sl_error_meaning(result));
    uint64_t last = 0;
    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->peers[i].pending.finished_round.round > last)
            last = s->peers[i].pending.finished_round.round;
    sl_log_entry end = sl_log_end(last, &how);
    end.rank = SL_LOG_ALL;
    sl_sim_log(s, &end);
}

static int run(simulator *s, const volatile int *stop, sl_error *error) {
    if (!sl_experiment_is_asynchronous(s->experiment))
        return run_rounds(s, stop, error);
    return sl_sim_repeats(s) ? sl_sim_run_repeated(s, stop, error)
                             : sl_sim_run_clocked(s, stop, error);
}

static int train(simulator *s, const volatile int *stop, sl_error *error) {
    sl_error why = {0};
    if (s->checkpoints == NULL || s->checkpoints->opened != NULL)
        return run(s, stop, error);
    int result = log_beginning(s, &why);
    if (result == 0)
        result = open_saver(s, &why);
    if (result == 0)
        result = run(s, stop, &why);
    log_end(s, result, &why);
    if (why.code != 0 && error != NULL)
        *error = why;
    return result;
}

/* What no run of nodes at their own times does. */
static int check_clocked(simulator *s, sl_error *error) {
    const bool resumes = s->checkpoints != NULL && s->checkpoints->resume;
    s->resumed = resumes ? s->checkpoints->round : 0;
    if (resumes && s->checkpoints->opened == NULL)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.name: \"%s\" lets nodes go at their own times here, and such a "
                       "run cannot go on from a state yet",
                       s->experiment->algorithm.name);
    if (s->checkpoints != NULL && s->experiment->checkpoint.every > 0 && !sl_sim_repeats(s))
        on_notice(s, "warning: checkpoint.every has no effect here: the simulator saves no nodes "
                     "that go at their own times");
    return 0;
}

/* What only nodes that share rounds have: messages that serve other links, too. */
static int open_rounds(simulator *s, const sl_algorithm *algorithm, bool recorded,
                       sl_error *error) {
    int result = recorded ? sl_timeline_open(&s->timeline, s->nodes, error) : 0;
    if (result == 0)
        result = sl_experiment_sending(&s->sending, s->experiment, &s->plan, s->task, error);
    return result == 0 ? share_gradient(s, algorithm, error) : result;
}

int sl_sim_run(const sl_experiment *experiment, const sl_task *task, const sl_observer *observer,
               const sl_checkpoints *checkpoints, sl_timeline **timeline, const volatile int *stop,
               sl_error *error) {
    const sl_algorithm *algorithm = sl_algorithm_of(&experiment->algorithm, error);
    if (algorithm == NULL)
        return SL_EINVAL;
    simulator s = {
        .experiment = experiment,
        .task = task,
        .observer = observer,
        .checkpoints = checkpoints,
        .nodes = sl_experiment_simulated(experiment),
    };
    if (sl_sim_repeats(&s))
        s.nodes = sl_experiment_ranks(experiment);
    int result = sl_task_check(task, error);
    if (result == 0)
        result = sl_device_open(&s.vec, experiment->device, sl_experiment_device_bytes(experiment),
                                error);
    if (result == 0)
        result = sl_host_task_open(&s.host, s.vec, task, error);
    if (result == 0)
        result = open_copies(&s, error);
    if (result == 0)
        result = sl_experiment_plan(&s.plan, experiment, task, error);
    if (result == 0)
        result = algorithm->async != NULL ? check_clocked(&s, error)
                                          : open_rounds(&s, algorithm, timeline != NULL, error);
    if (result == 0 && loses(&s))
        result = sl_scene_open(&s.scene, experiment, task->dimension, error);
    if (result == 0)
        result = open_nodes(&s, error);
    if (result == 0 && checkpoints != NULL)
        result = open_checkpoints(&s, error);
    if (result == 0)
        result = train(&s, stop, error);
    close_nodes(&s);
    if (timeline != NULL)
        *timeline = s.timeline;
    return result;
}
