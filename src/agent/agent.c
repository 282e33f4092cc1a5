/* agent.c - one peer: drives a node with libevent's and libfabric's events; see starling/agent.h.
 *
 * The loop: take what the fabric has, step the node, send what may be sent; when nothing moved, one blocking pass of the event loop
 * (non-blocking where the provider says so). Gradients and evaluations run on the worker. A part is encoded and summed once, right before its
 * first send, while it is in cache, and goes to all out-neighbours one after the other.
 * However it ends, it ends: every phase has a deadline, a failure is told to all neighbours, and nothing is waited for without a limit.
 */
#include <assert.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/state.h"
#include "clock.h"
#include "starling/device.h"

/* Receive buffers for data of all neighbours together stay below this where two chunks a neighbour allow it. */
static const size_t receive_bytes_max = 32u << 20;
static const double farewell_s = 0.5; /* how long a failing agent stays to tell its neighbours */
static const double farewell_connecting_s = 1.5; /* the same where some are not connected yet */
enum { TICK_MS = 50, CONTROL_BUFFERS = 8 /* receive buffers for what is not data */, PASSES_BETWEEN_LOOPS = 16, LOOKS_BEFORE_SLEEP = 4, REGIONS_MAX = 16 };

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
    snprintf(cause, sizeof cause, "round %" PRIu64 ": agent %u was stopped on request", sl_node_round(a->node),
             a->settings.rank);
    sl_agent_fail(a, SL_ESTOPPED, cause, cause);
}

void sl_agent_stop(sl_agent *agent) {
    eventfd_write(agent->stop_descriptor, 1);
}

/* ---- rounds ---- */

static void start_publishing(sl_agent *a) {
    sl_row out = sl_node_out(a->node);
    a->receiver_count = out.count;
    for (uint32_t i = 0; i < out.count; i++) {
        a->receivers[i] = sl_neighbour_find(a, out.peers[i]);
        a->receivers[i]->next_part = 0;
    }
    a->place = sl_node_place(a->node);
    a->parts = sl_node_parts(a->node);
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
    a->payload_sums[part] = a->direct ? 0 : sl_checksum(a->payloads[part].data, a->payloads[part].bytes);
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
        for (uint32_t i = 0; i < a->receiver_count && a->publishing && a->phase == PHASE_TRAINING; i++)
            progress = sl_neighbour_send_part(a->receivers[i]) || progress;
        any = any || progress;
    }
    return any;
}

/* Nobody to send to in this phase: the parts are adapted, and have left, at once. */
static void publish_to_nobody(sl_agent *a) {
    while (a->publishing && a->receiver_count == 0 && a->encoded < a->parts && a->phase == PHASE_TRAINING && sl_agent_encode_next(a))
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
    sl_job job = {.x = sl_node_model(a->node), .point = sl_node_point(a->node), .g = sl_node_gradient_buffer(a->node), .compute = update->compute,
                  .push_sum_weight = sl_node_push_sum_weight(a->node)};
    job.compute_round = update->round;
    if (update->round_done) {
        uint64_t round = update->finished_round.round;
        job.record = sl_record_due(config, round, a->settings.task.rounds);
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
        sl_neighbour_digested(n, update->released[i]);
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
        start_publishing(a);
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
        snprintf(text, sizeof text, "round %" PRIu64 ": agent %u could not report its round: %s", sl_node_round(a->node),
                 a->settings.rank, sl_error_meaning(result.code));
        sl_agent_fail(a, result.code, text, text);
    } else if (result.computed) {
        a->record.times.gradient += result.gradient_seconds;
        a->gradient_ended_s = sl_clock_seconds();
        a->busy_since_gradient_s = 0;
        sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_GRADIENT, .loss = result.loss});
    }
}

static void on_bell(void *context) {
    sl_agent *a = context;
    eventfd_t ignored;
    eventfd_read(a->bell, &ignored);
    sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_LANDED});
}

/* A device that has failed rings no bells. */
static void check_device(sl_agent *a) {
    sl_error error;
    if (a->vec->flight == NULL || a->vec->flight->status(&error) == 0)
        return;
    sl_fail_prefix(&error, SL_EDEVICE, "node %u, round %" PRIu64, a->settings.rank, sl_node_round(a->node));
    sl_agent_fail(a, SL_EDEVICE, error.text, error.text);
}

/* ---- phases ---- */

static void begin_training(sl_agent *a) {
    for (uint32_t i = 0; i < a->neighbour_count; i++)
        if (!a->neighbours[i].agreed || !a->neighbours[i].connected) /* our own HELLO goes out when connected; its may be faster */
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
        bool through = n->link == NULL || (n->bye_sent && n->bye_received && sl_link_sending(n->link) == 0);
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
        snprintf(text, sizeof text, "edge %u->%u, round 0: agent %u (%.200s:%u) did not come up within %g s "
                                    "(transport.connect_timeout_s); is it running, with this roster?",
                 n->rank, a->settings.rank, n->rank, sl_roster_host(a->roster, n->rank),
                 sl_roster_port(a->roster, n->rank), a->settings.experiment->transport.connect_timeout_s);
        sl_agent_fail(a, SL_EPEER, text, text);
        return;
    }
}

static void check_deadlines(sl_agent *a) {
    double now_s = a->now_s;
    double patience_s = a->settings.experiment->transport.round_timeout_s;
    if (a->phase == PHASE_CONNECTING && now_s > a->deadline_s)
        fail_connecting(a);
    else if (a->phase == PHASE_TRAINING && !sl_worker_busy(a->worker) && now_s - a->progress_s > patience_s)
        sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_DEADLINE});
    else if (a->phase == PHASE_GOODBYE && now_s > a->deadline_s)
        a->phase = PHASE_OVER; /* our part is done; whoever never said goodbye is not worth an error */
}

static void on_tick(void *context) {
    sl_agent *a = context;
    a->tick_due = true;
}

/* Only after the fabric has been polled: what came while this process was held up counts as heard. */
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

/* Before sleeping, a few more looks, with the processor offered to whoever has work for it: a neighbour on this host may be about to send,
 * and waking up costs more than looking. Bounded, and only while a round is waiting for data. */
static bool linger(sl_agent *a) {
    for (int look = 0; look < LOOKS_BEFORE_SLEEP && a->phase == PHASE_TRAINING && !sl_worker_busy(a->worker); look++) {
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

/* Tells every neighbour why, and lingers so that what is on the way arrives before the connections are cut. Whoever is not connected yet would otherwise
 * look for this agent until its time is over: a little longer, it is still connected, to be told. */
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
        return sl_fail(error, SL_EINVAL, "the roster names %u agents, the topology has %u nodes; they must be equal",
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

/* ---- opening and closing ---- */

/* Can payloads leave from and come to the device's memory? If not, why, in one line. An emulated device's memory is the host's, which any provider takes. */
static bool can_be_direct(const sl_experiment *e, const sl_fit *fit, char *reason, size_t bytes) {
    const sl_compressor_kind kind = fit->config.compressor.kind;
    sl_device_info gpu;
    if (!sl_device_describe(e->device, &gpu))
        snprintf(reason, bytes, "device %s is no GPU here", e->device);
    else if (kind != SL_COMPRESSOR_IDENTITY)
        snprintf(reason, bytes, "payloads of compressor \"%s\" are checked on the host", sl_compressor_name(kind));
    else
        return gpu.emulated || sl_fabric_offers_gpu(e->transport.provider, reason, bytes);
    return false;
}

int sl_agent_find_path(const sl_experiment *e, bool *direct, char note[SL_PATH_NOTE_MAX], sl_error *error) {
    const sl_gpu_direct wanted = e->transport.gpu_direct;
    char reason[SL_PATH_NOTE_MAX / 2];
    sl_fit fit;
    note[0] = '\0';
    *direct = false;
    if (wanted == SL_GPU_DIRECT_OFF || strcmp(e->device, "cpu") == 0)
        return 0;
    int result = sl_algorithm_fit(&fit, &e->algorithm, e->topology, e->optimizer.momentum > 0, 0, error);
    if (result != 0)
        return result;
    *direct = can_be_direct(e, &fit, reason, sizeof reason);
    if (!*direct && wanted == SL_GPU_DIRECT_ON)
        return sl_fail(error, SL_EINVAL, "transport.gpu_direct: \"on\" is refused: %s; \"auto\" or \"off\" goes through host memory", reason);
    if (wanted == SL_GPU_DIRECT_AUTO)
        snprintf(note, SL_PATH_NOTE_MAX, "transport.gpu_direct auto is %s%s", *direct ? "on" : "off: payloads go through host memory: ", *direct ? "" : reason);
    return 0;
}

static void fill_hello(sl_agent *a) {
    const sl_experiment *e = a->settings.experiment;
    a->hello = (sl_hello){
        .run_id = a->settings.run_id,
        .topology_hash = sl_topology_hash(e->topology),
        .layout_hash = a->settings.task.layout_hash,
        .data_hash = a->settings.task.data_hash,
        .dimension = a->settings.task.dimension,
        .rounds = a->settings.task.rounds,
        .chunk_bytes = e->transport.chunk_bytes,
        .nodes = sl_topology_nodes(e->topology),
        .section_count = SL_SECTION_COUNT,
        .direct = a->direct,
    };
    for (int i = 0; i < SL_SECTION_COUNT; i++)
        a->hello.sections[i] = sl_experiment_section_hash(e, (sl_section)i);
}

/* All neighbours' receive buffers together stay within bounds; the most that any rank may have is all others. */
static uint32_t choose_window(const sl_agent *a) {
    const sl_experiment *e = a->settings.experiment;
    const uint32_t *peers;
    uint32_t degree = sl_topology_peers(e->topology, a->settings.rank, &peers);
    const sl_algorithm *algorithm = sl_algorithm_find(e->algorithm.name, e->algorithm.variant, NULL);
    if (algorithm != NULL && algorithm->route == SL_ROUTE_SERVER)
        degree = sl_topology_nodes(e->topology) - 1;
    size_t fits = receive_bytes_max / ((degree ? degree : 1) * (size_t)e->transport.chunk_bytes);
    uint32_t window = e->transport.window_chunks;
    if (window > fits)
        window = (uint32_t)fits;
    return window < 2 ? 2 : window;
}

static int open_node(sl_agent *a, sl_error *error) {
    const sl_experiment *e = a->settings.experiment;
    const sl_task *task = &a->settings.task;
    int result = sl_algorithm_fit(&a->fit, &e->algorithm, e->topology, e->optimizer.momentum > 0, task->dimension, error);
    if (result != 0)
        return result;
    sl_node_settings settings = sl_node_settings_of(e, &a->fit, task->dimension, task->rounds);
    sl_mirror mirror;
    result = sl_device_open(&settings.vec, e->device, sl_experiment_device_bytes(e), error);
    if (result == 0)
        result = sl_mirror_open(&mirror, settings.vec, task, error);
    if (result != 0)
        return result;
    a->vec = settings.vec;
    settings.rank = a->settings.rank;
    settings.inbox_parts = a->window;
    settings.bell = a->bell;
    settings.direct = a->direct;
    settings.tensor_ends = task->tensor_ends;
    settings.tensor_count = task->tensor_count;
    settings.measure_every = sl_record_every(&e->record, task->rounds);
    result = sl_node_open(&a->node, &settings, error);
    if (result == 0)
        sl_mirror_initial(&mirror, a->settings.rank, sl_node_model(a->node));
    if (result == 0)
        result = a->vec->fence(error); /* it may run on another thread */
    sl_mirror_close(&mirror);
    return result;
}

static int open_neighbours(sl_agent *a, sl_error *error) {
    const uint32_t *peers;
    a->neighbour_count = sl_node_peers(a->node, &peers);
    uint32_t parts = sl_node_parts_max(a->node);
    a->neighbours = calloc(a->neighbour_count + 1u, sizeof *a->neighbours);
    a->receivers = calloc(a->neighbour_count + 1u, sizeof(neighbour *));
    a->payloads = calloc(parts, sizeof *a->payloads);
    a->payload_sums = calloc(parts, sizeof *a->payload_sums);
    a->payload_users = calloc(parts, sizeof *a->payload_users);
    if (!a->neighbours || !a->receivers || !a->payloads || !a->payload_sums || !a->payload_users)
        return sl_fail(error, SL_ENOMEM, "agent %u: out of memory for %u neighbours", a->settings.rank, a->neighbour_count);
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        a->neighbours[i].agent = a;
        a->neighbours[i].rank = peers[i];
    }
    return 0;
}

/* The CUDA device that payloads leave from and come to; -1: the host, or what is its memory. */
static int memory_of_payloads(const sl_agent *a) {
    return a->direct ? a->vec->cuda_index : -1;
}

static int open_fabric(sl_agent *a, sl_error *error) {
    sl_fabric_handlers handlers = *sl_neighbour_handlers();
    handlers.context = a;
    int result = sl_fabric_open(&a->fabric, a->settings.experiment->transport.provider, a->settings.host, a->settings.port,
                                memory_of_payloads(a) >= 0, &handlers, error);
    void *bases[REGIONS_MAX];
    size_t bytes[REGIONS_MAX];
    size_t count = sl_node_regions(a->node, bases, bytes, REGIONS_MAX);
    for (size_t i = 0; i < count && result == 0; i++)
        result = sl_fabric_register(a->fabric, bases[i], bytes[i], memory_of_payloads(a), error);
    return result;
}

/* For all receive buffers, where payloads come straight to the device. */
static int open_payload_memory(sl_agent *a, sl_error *error) {
    a->payload_stride = (sl_node_part_bytes_max(a->node) + SL_VEC_ALIGNMENT - 1) / SL_VEC_ALIGNMENT * SL_VEC_ALIGNMENT;
    size_t bytes = (size_t)a->neighbour_count * a->receive_buffers * a->payload_stride;
    if (!a->direct || bytes == 0)
        return 0;
    a->payload_memory = (uint8_t *)a->vec->allocate(bytes / sizeof(float));
    if (a->payload_memory == NULL)
        return sl_vec_no_memory(a->vec, error, "agent %u: receive buffers of %u neighbours", a->settings.rank, a->neighbour_count);
    int result = a->vec->fence(error); /* it is cleared before anything comes */
    return result != 0 ? result : sl_fabric_register(a->fabric, a->payload_memory, bytes, memory_of_payloads(a), error);
}

static int open_loop(sl_agent *a, sl_error *error) {
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
        result = sl_loop_watch(a->loop, a->bell, on_bell, a, error);
    if (result == 0)
        result = sl_loop_tick(a->loop, TICK_MS, on_tick, a, error);
    return result;
}

static int open_all(sl_agent *a, sl_error *error) {
    char note[SL_PATH_NOTE_MAX];
    int result = sl_agent_find_path(a->settings.experiment, &a->direct, note, error);
    if (result != 0)
        return result;
    a->header_bytes = a->direct ? SL_FRAME_DIRECT_AT : SL_FRAME_HEADER_BYTES;
    fill_hello(a);
    a->stop_descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    a->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (a->stop_descriptor < 0 || a->bell < 0)
        return sl_fail(error, SL_ENOMEM, "agent %u: no descriptor left", a->settings.rank);
    result = open_node(a, error);
    if (result == 0)
        result = open_neighbours(a, error);
    if (result == 0)
        result = open_fabric(a, error);
    if (result == 0)
        result = open_payload_memory(a, error);
    if (result == 0)
        result = sl_worker_open(&a->worker, a->vec, &a->settings.task, &a->settings.observer, a->settings.rank, error);
    if (result == 0)
        result = open_loop(a, error);
    return result;
}

int sl_agent_open(sl_agent **out, const sl_agent_settings *settings, sl_error *error) {
    sl_agent *a = calloc(1, sizeof *a);
    if (a == NULL)
        return sl_fail(error, SL_ENOMEM, "agent: out of memory");
    a->settings = *settings;
    a->stop_descriptor = a->bell = -1;
    a->record.rank = settings->rank;
    a->window = choose_window(a);
    a->receive_buffers = a->window + CONTROL_BUFFERS;
    int result = open_all(a, error);
    if (result != 0)
        sl_agent_close(&a);
    else
        *out = a;
    return result;
}

void sl_agent_close(sl_agent **agent) {
    sl_agent *a = *agent;
    if (a == NULL)
        return;
    *agent = NULL;
    /* A gradient that does not come back keeps its vectors: they are left behind with the thread that uses them. */
    if (!sl_worker_close(&a->worker, a->settings.experiment->transport.timeout_s))
        return;
    for (uint32_t i = 0; i < a->neighbour_count; i++)
        sl_link_close(&a->neighbours[i].link);
    if (a->fabric != NULL)
        sl_fabric_poll(a->fabric);
    sl_fabric_close(&a->fabric);
    if (a->payload_memory != NULL)
        a->vec->release((float *)a->payload_memory);
    sl_loop_close(&a->loop);
    sl_node_close(&a->node);
    if (a->stop_descriptor >= 0)
        close(a->stop_descriptor);
    if (a->bell >= 0)
        close(a->bell);
    free(a->neighbours);
    free(a->receivers);
    free(a->payloads);
    free(a->payload_sums);
    free(a->payload_users);
    free(a);
}

uint16_t sl_agent_port(const sl_agent *agent) {
    return sl_fabric_port(agent->fabric);
}

sl_agent_counters sl_agent_counters_read(const sl_agent *a) {
    sl_agent_counters counters = a->counters;
    counters.frames_dropped = sl_node_dropped(a->node);
    counters.receive_buffer_bytes = (size_t)a->neighbour_count * a->receive_buffers * sl_node_part_bytes_max(a->node);
    counters.vector_bytes = sl_node_memory(a->node);
    return counters;
}
