/* agent.c - one peer: drives a node with libevent's and libfabric's events; see starling/agent.h.
 *
 * The loop: take what the fabric has, step the node, send what may be sent; when nothing moved, one
 * blocking pass of the event loop (non-blocking where the provider says so). Gradients and
 * evaluations run on the worker. A part is encoded and summed once, right before its first send,
 * while it is in cache, and goes to all out-neighbours one after the other. However it ends, it
 * ends: every phase has a deadline, a failure is told to all neighbours, and nothing is waited for
 * without a limit.
 */
#include <assert.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/state.h"
#include "base/clock.h"

static const double farewell_s = 0.5; /* how long a failing agent stays to tell its neighbours */
static const double farewell_connecting_s = 1.5; /* the same where some are not connected yet */
enum { TICK_MS = 50, PASSES_BETWEEN_LOOPS = 16, LOOKS_BEFORE_SLEEP = 4 };

/* ---- ending ---- */

void sl_agent_fail(sl_agent *a, int code, const char *text, const char *cause) {
    if (a->phase == PHASE_OVER)
        return;
    a->phase = PHASE_OVER;
    sl_fail(&a->error, code, "%s", text);
    snprintf(a->cause, sizeof a->cause, "%.*s", (int)sizeof a->cause - 1, cause);
}

static void on_stop(void *context) {
    sl_agent *a = context;
    char cause[128];
    snprintf(cause, sizeof cause, "round %" PRIu64 ": agent %u was stopped on request",
             sl_node_round(a->node), a->settings.rank);
    sl_agent_fail(a, SL_ESTOPPED, cause, cause);
}

void sl_agent_stop(sl_agent *agent) {
    eventfd_write(agent->stop_descriptor, 1);
}

/* ---- rounds ---- */

static void start_publishing(sl_agent *a, const sl_outbound *message) {
    a->message = *message;
    a->receiver_count = message->to.count;
    for (uint32_t i = 0; i < message->to.count; i++) {
        a->receivers[i] = sl_neighbour_find(a, message->to.peers[i]);
        a->receivers[i]->next_part = 0;
    }
    a->encoded = 0;
    a->publishing = true;
    a->publish_s = sl_clock_seconds();
}

static void spend(sl_agent *a, double *time, double since_s) {
    double seconds = sl_clock_seconds() - since_s;
    *time += seconds;
    a->busy_since_gradient_s += seconds;
}

bool sl_agent_encode_next(sl_agent *a) {
    if (!sl_node_ready(a->node))
        return false;
    double before = sl_clock_seconds();
    uint32_t part = a->encoded++;
    sl_error error;
    int result = sl_node_payload(a->node, part, &a->payloads[part], &error);
    if (result != 0) {
        sl_agent_fail(a, result, error.text, error.text);
        return false;
    }
    a->payload_sums[part] =
        a->direct ? 0 : sl_checksum(a->payloads[part].data, a->payloads[part].bytes);
    a->payload_users[part] = a->receiver_count;
    spend(a, &a->record.times.encode, before);
    return true;
}

void sl_agent_part_left(sl_agent *a, uint32_t part) {
    assert(a->payload_users[part] > 0);
    if (--a->payload_users[part] == 0)
        sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_SENT, .part = part});
}

/* One part to each in turn, so that the second send finds it in cache. */
static bool send_parts(sl_agent *a) {
    bool any = false, progress = a->publishing && a->phase == PHASE_TRAINING;
    while (progress) {
        progress = false;
        for (uint32_t i = 0; i < a->receiver_count && a->publishing && a->phase == PHASE_TRAINING;
             i++)
            progress = sl_neighbour_send_part(a->receivers[i]) || progress;
        any = any || progress;
    }
    return any;
}

/* Nobody to send to in this phase: the parts are adapted, and have left, at once. */
static void publish_to_nobody(sl_agent *a) {
    while (a->publishing && a->receiver_count == 0 && a->encoded < a->message.parts &&
           a->phase == PHASE_TRAINING && sl_agent_encode_next(a))
        sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_SENT, .part = a->encoded - 1});
}

static void account_round(sl_agent *a, const sl_round *round, double now_s) {
    sl_times *t = &a->record.times;
    double waited = now_s - a->gradient_ended_s - a->busy_since_gradient_s;
    t->wait += waited > 0 ? waited : 0;
    t->exchange += a->exchange_ended_s - a->publish_s;
    t->total = now_s - a->began_s;
    sl_record_take_round(&a->record, round, a->header_bytes);
}

static void give_job(sl_agent *a, const sl_update *update) {
    const sl_record_config *config = &a->settings.experiment->record;
    sl_job job = {.x = sl_node_model(a->node),
                  .point = sl_node_point(a->node),
                  .g = sl_node_gradient_buffer(a->node),
                  .compute = update->compute,
                  .push_sum_weight = sl_node_push_sum_weight(a->node)};
    job.compute_round = update->round;
    if (update->round_done) {
        uint64_t round = update->finished_round.round;
        job.record = sl_record_due(config, round, a->settings.task.rounds);
        job.evaluate = sl_record_evaluates(
            config, sl_topology_nodes(a->settings.experiment->topology), a->settings.rank);
        job.report = a->record;
        job.parameters = sl_record_parameters_due(config, round);
        job.parameters_round = round;
    } else {
        job.parameters = sl_record_parameters_due(config, 0);
    }
    sl_worker_give(a->worker, &job);
}

static void release_buffers(const sl_update *update) {
    for (size_t i = 0; i < update->released_count; i++) {
        neighbour *n;
        memcpy(&n, update->released[i], sizeof n);
        sl_neighbour_consumed(n, update->released[i]);
    }
}

static void begin_goodbye(sl_agent *a) {
    a->phase = PHASE_GOODBYE;
    a->publishing = false;
    a->deadline_s = a->now_s + a->settings.experiment->transport.round_timeout_s;
}

void sl_agent_deliver(sl_agent *a, const sl_event *event) {
    if (a->phase == PHASE_OVER)
        return;
    sl_update update;
    sl_error error;
    double before = sl_clock_seconds();
    int result = sl_node_step(a->node, event, &update, &error);
    spend(a, &a->record.times.combine, before);
    a->progress_s = sl_clock_seconds();
    if (event->type == SL_EVENT_RECEIVED || event->type == SL_EVENT_SENT)
        a->exchange_ended_s = a->progress_s;
    release_buffers(&update);
    if (result != 0) {
        sl_agent_fail(a, result, error.text, error.text);
        return;
    }
    if (update.round_done) {
        account_round(a, &update.finished_round, a->progress_s);
    }
    if (update.round_done || update.publish)
        a->publishing = false;
    if (update.compute || update.finished)
        give_job(a, &update);
    if (update.publish)
        start_publishing(a, &update.message);
    if (update.finished)
        begin_goodbye(a);
}

static void on_worker(void *context) {
    sl_agent *a = context;
    sl_job_result result;
    if (!sl_worker_take(a->worker, &result))
        return;
    if (result.code != 0) {
        char text[128];
        snprintf(text, sizeof text, "round %" PRIu64 ": agent %u could not report its round: %s",
                 sl_node_round(a->node), a->settings.rank, sl_error_meaning(result.code));
        sl_agent_fail(a, result.code, text, text);
    } else if (result.computed) {
        a->record.times.gradient += result.gradient_seconds;
        a->gradient_ended_s = sl_clock_seconds();
        a->busy_since_gradient_s = 0;
        sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_GRADIENT, .loss = result.loss});
    }
}

static void on_notified(void *context) {
    sl_agent *a = context;
    eventfd_t ignored;
    eventfd_read(a->notify_fd, &ignored);
    sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_NOTIFIED});
}

/* A device that has failed signals nothing. */
static void check_device(sl_agent *a) {
    sl_error error;
    if (a->vec->async == NULL || a->vec->async->status(&error) == 0)
        return;
    sl_fail_node(&error, SL_EDEVICE, a->settings.rank, sl_node_round(a->node), "%s", error.text);
    sl_agent_fail(a, SL_EDEVICE, error.text, error.text);
}

/* ---- phases ---- */

static void begin_training(sl_agent *a) {
    for (uint32_t i = 0; i < a->neighbour_count; i++)
        if (!a->neighbours[i].agreed ||
            !a->neighbours[i]
                 .connected) /* our own HELLO goes out when connected; its may be faster */
            return;
    a->phase = PHASE_TRAINING;
    a->began_s = a->progress_s = sl_clock_seconds();
    sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_START});
}

static void say_goodbye(sl_agent *a) {
    bool all = !sl_worker_busy(a->worker);
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        neighbour *n = &a->neighbours[i];
        if (!n->bye_sent && n->link != NULL)
            n->bye_sent = sl_neighbour_send_control(n, SL_FRAME_BYE, NULL, 0);
        bool through =
            n->link == NULL || (n->bye_sent && n->bye_received && sl_link_sending(n->link) == 0);
        all = all && through;
    }
    if (all)
        a->phase = PHASE_OVER;
}

static void fail_connecting(sl_agent *a) {
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        neighbour *n = &a->neighbours[i];
        if (n->agreed)
            continue;
        char text[SL_FRAME_TEXT_MAX];
        snprintf(text, sizeof text,
                 "edge %u->%u, round 0: agent %u (%.200s:%u) did not come up within %g s "
                 "(transport.connect_timeout_s); is it running, with this roster?",
                 n->rank, a->settings.rank, n->rank, sl_roster_host(a->roster, n->rank),
                 sl_roster_port(a->roster, n->rank),
                 a->settings.experiment->transport.connect_timeout_s);
        sl_agent_fail(a, SL_EPEER, text, text);
        return;
    }
}

static void check_deadlines(sl_agent *a) {
    double now_s = a->now_s;
    double patience_s = a->settings.experiment->transport.round_timeout_s;
    if (a->phase == PHASE_CONNECTING && now_s > a->deadline_s)
        fail_connecting(a);
    else if (a->phase == PHASE_TRAINING && !sl_worker_busy(a->worker) &&
             now_s - a->progress_s > patience_s)
        sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_DEADLINE});
    else if (a->phase == PHASE_GOODBYE && now_s > a->deadline_s)
        a->phase =
            PHASE_OVER; /* our part is done; whoever never said goodbye is not worth an error */
}

static void on_tick(void *context) {
    sl_agent *a = context;
    a->tick_due = true;
}

/* Only after the fabric has been polled: what came while this process was held up counts as heard.
 */
static void tick(sl_agent *a) {
    a->tick_due = false;
    for (uint32_t i = 0; i < a->neighbour_count && a->phase != PHASE_OVER; i++)
        sl_neighbour_tick(&a->neighbours[i]);
    check_deadlines(a);
    check_device(a);
}

static void advance(sl_agent *a) {
    if (a->phase == PHASE_CONNECTING)
        begin_training(a);
    if (a->phase == PHASE_GOODBYE)
        say_goodbye(a);
}

/* True when something moved. */
static bool move(sl_agent *a) {
    a->retry_soon = false;
    a->now_s = sl_clock_seconds();
    int happened = sl_fabric_poll(a->fabric);
    if (a->tick_due)
        tick(a);
    advance(a);
    publish_to_nobody(a);
    return send_parts(a) || happened > 0;
}

/* Before sleeping, a few more looks, with the processor offered to whoever has work for it: a
 * neighbour on this host may be about to send, and waking up costs more than looking. Bounded, and
 * only while a round is waiting for data. */
static bool linger(sl_agent *a) {
    for (int look = 0;
         look < LOOKS_BEFORE_SLEEP && a->phase == PHASE_TRAINING && !sl_worker_busy(a->worker);
         look++) {
        sched_yield();
        if (move(a))
            return true;
    }
    return false;
}

static int run_loop(sl_agent *a) {
    sl_error error;
    int result = 0;
    for (unsigned pass = 0; a->phase != PHASE_OVER && result == 0; pass++) {
        bool moved = move(a) || linger(a);
        if (moved && pass % PASSES_BETWEEN_LOOPS != 0)
            continue;
        bool block = !moved && a->phase != PHASE_OVER && sl_fabric_may_block(a->fabric);
        result = sl_loop_pass(a->loop, block, a->retry_soon ? 1 : 0, &error);
    }
    if (result != 0)
        sl_agent_fail(a, result, error.text, error.text);
    return a->error.code;
}

int sl_agent_open_loop(sl_agent *a, sl_error *error) {
    int descriptors[2];
    sl_fabric_descriptors(a->fabric, descriptors);
    int result = sl_loop_open(&a->loop, error);
    for (int i = 0; i < 2 && result == 0; i++)
        result = sl_loop_watch(a->loop, descriptors[i], NULL, NULL, error);
    if (result == 0)
        result = sl_loop_watch(a->loop, sl_worker_descriptor(a->worker), on_worker, a, error);
    if (result == 0)
        result = sl_loop_watch(a->loop, a->stop_descriptor, on_stop, a, error);
    if (result == 0)
        result = sl_loop_watch(a->loop, a->notify_fd, on_notified, a, error);
    if (result == 0)
        result = sl_loop_tick(a->loop, TICK_MS, on_tick, a, error);
    return result;
}

/* Tells every neighbour why, and lingers so that what is on the way arrives before the connections
 * are cut. Whoever is not connected yet would otherwise look for this agent until its time is over:
 * a little longer, it is still connected, to be told. */
static void tell_everyone(sl_agent *a) {
    double until_s = sl_clock_seconds() + farewell_s;
    bool waiting = true;
    a->parting = true;
    for (uint32_t i = 0; i < a->neighbour_count; i++)
        if (!a->neighbours[i].agreed)
            until_s = sl_clock_seconds() + farewell_connecting_s;
    while (waiting && a->now_s < until_s) {
        a->now_s = sl_clock_seconds();
        sl_fabric_poll(a->fabric);
        waiting = false;
        for (uint32_t i = 0; i < a->neighbour_count; i++)
            waiting = sl_neighbour_part(&a->neighbours[i], a->cause) || waiting;
        if (waiting)
            usleep(2000);
    }
}

int sl_agent_run(sl_agent *a, const sl_roster *roster, sl_error *error) {
    uint32_t nodes = sl_topology_nodes(a->settings.experiment->topology);
    if (sl_roster_count(roster) != nodes)
        return sl_fail(error, SL_EINVAL,
                       "the roster names %u agents, the topology has %u nodes; they must be equal",
                       sl_roster_count(roster), nodes);
    a->roster = roster;
    a->now_s = sl_clock_seconds();
    a->deadline_s = a->now_s + a->settings.experiment->transport.connect_timeout_s;
    int result = run_loop(a);
    if (result != 0) {
        tell_everyone(a);
        sl_fail(error, result, "%s", a->error.text);
    }
    return result;
}

/* ---- what is told ---- */

uint16_t sl_agent_port(const sl_agent *agent) {
    return sl_fabric_port(agent->fabric);
}

sl_agent_counters sl_agent_counters_read(const sl_agent *a) {
    sl_agent_counters counters = a->counters;
    counters.frames_dropped = sl_node_dropped(a->node);
    counters.receive_buffer_bytes =
        (size_t)a->neighbour_count * a->receive_buffers * sl_node_part_bytes_max(a->node);
    counters.vector_bytes = sl_node_memory(a->node);
    return counters;
}
