/* opening.c - what an agent is made of: the node, its neighbours, the fabric, memory that payloads
 * come to, the worker, the loop; see starling/agent.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "arena/window.h"
#include "base/identity.h"
#include "base/round_up.h"
#include "config/buffers.h"
#include "config/security.h"
#include "launch/resolver.h"
#include "starling/device.h"

enum { REGIONS_MAX = 16, SETTINGS_MAX = SL_HELLO_TEXT_MAX / 4 };

/* Can payloads leave from and come to the device's memory? If not, why, in one line. An emulated
 * device's memory is the host's, which any provider takes. */
static bool can_be_direct(const sl_experiment *e, char *reason, size_t bytes) {
    const sl_compressor_kind kind = sl_algorithm_compressor(&e->algorithm);
    sl_device_info gpu;
    if (!sl_device_describe(e->device, &gpu))
        snprintf(reason, bytes, "device %s is no GPU here", e->device);
    else if (kind != SL_COMPRESSOR_IDENTITY)
        snprintf(reason, bytes, "payloads of compressor \"%s\" are checked on the host",
                 sl_compressor_name(kind));
    else if (sl_experiment_is_asynchronous(e))
        snprintf(reason, bytes, "those of algorithm %s, at nodes' own times, do",
                 e->algorithm.name);
    else
        return gpu.emulated || sl_fabric_offers(e->transport.provider, true, reason, bytes) == 0;
    return false;
}

int sl_agent_find_path(const sl_experiment *e, bool *direct, char note[SL_PATH_NOTE_MAX],
                       sl_error *error) {
    const sl_gpu_direct wanted = e->transport.gpu_direct;
    char reason[SL_PATH_NOTE_MAX / 2];
    note[0] = '\0';
    *direct = false;
    const int offered = sl_fabric_offers(e->transport.provider, false, reason, sizeof reason);
    if (offered != 0)
        return sl_fail(error, offered,
                       "transport.provider: %s; \"tcp\" works everywhere, \"verbs\" needs an RDMA "
                       "device; `fi_info -t FI_EP_MSG` lists what this host has",
                       reason);
    if (wanted == SL_GPU_DIRECT_OFF || strcmp(e->device, "cpu") == 0)
        return 0;
    *direct = can_be_direct(e, reason, sizeof reason);
    if (!*direct && wanted == SL_GPU_DIRECT_ON)
        return sl_fail(error, SL_EINVAL,
                       "transport.gpu_direct: \"on\" is refused: %s; \"auto\" or \"off\" goes "
                       "through host memory",
                       reason);
    if (wanted == SL_GPU_DIRECT_AUTO)
        snprintf(note, SL_PATH_NOTE_MAX, "transport.gpu_direct auto is %s%s",
                 *direct ? "on" : "off: payloads go through host memory: ", *direct ? "" : reason);
    return 0;
}

static size_t words_bytes(const sl_hello *hello) {
    return hello->settings_bytes + hello->layout_bytes + 1;
}

/* As it is sent, with the settings, if they have no more than their part of the room, and with as
 * much of the layout as there is room for. */
static int write_hello(sl_agent *a, sl_error *error) {
    sl_hello *hello = &a->side.hello;
    const char *layout = a->settings.task.layout != NULL ? a->settings.task.layout : "";
    char *settings = sl_experiment_differences(a->settings.experiment);
    const size_t bytes = settings != NULL ? strlen(settings) : 0;
    hello->settings_bytes = bytes <= SETTINGS_MAX ? bytes : 0;
    hello->layout_bytes = strnlen(layout, SL_HELLO_TEXT_MAX - hello->settings_bytes);
    a->side.words = settings != NULL ? calloc(1, words_bytes(hello)) : NULL;
    if (a->side.words == NULL) {
        free(settings);
        return sl_fail(error, SL_ENOMEM, "agent %u: out of memory", a->settings.rank);
    }
    hello->settings = a->side.words;
    hello->layout = a->side.words + hello->settings_bytes;
    memcpy(a->side.words, settings, hello->settings_bytes);
    memcpy(a->side.words + hello->settings_bytes, layout, hello->layout_bytes);
    free(settings);
    return 0;
}

static int fill_hello(sl_agent *a, sl_error *error) {
    const sl_experiment *e = a->settings.experiment;
    const sl_checkpoints *c = a->settings.checkpoints;
    a->side.hello = (sl_hello){
        .run_id = a->settings.run_id,
        .seed = e->seed,
        .resumed = a->settings.joins         ? SL_HELLO_JOINS
                   : c == NULL || !c->resume ? 0
                   : c->round > 0            ? c->round
                                             : SL_HELLO_AGREES,
        .topology_hash = sl_topology_hash(e->topology),
        .layout_hash = a->settings.task.layout_hash,
        .data_hash = a->settings.task.data_hash,
        .dimension = a->settings.task.dimension,
        .rounds = a->settings.task.rounds,
        .chunk_bytes = e->transport.chunk_bytes,
        .nodes = sl_topology_nodes(e->topology),
        .section_count = SL_SECTION_COUNT,
        .direct = a->side.direct,
        .goes_on = a->side.goes_on,
    };
    for (int i = 0; i < SL_SECTION_COUNT; i++) {
        a->side.hello.sections[i] = sl_experiment_section_hash(e, (sl_section)i);
        if (a->side.hello.sections[i] == 0)
            return sl_fail(error, SL_ENOMEM, "agent %u: out of memory", a->settings.rank);
    }
    return write_hello(a, error);
}

/* What the experiment is among those that go on together. */
static int regroup_first(sl_agent *a, sl_error *error) {
    if (a->cohort.resumed.number == 0)
        return 0;
    const sl_view first = sl_first_view_members(a, a->cohort.room);
    sl_grouping_close(&a->cohort.grouping);
    return sl_members_regroup(a, &first, &a->cohort.grouping, error);
}

/* A rank beyond the first topology has one with those that begin the run, until a view. */
static int give_place(sl_agent *a, sl_node_settings *settings, sl_error *error) {
    const uint32_t nodes = sl_topology_nodes(a->settings.experiment->topology);
    const sl_view with = {.members = a->cohort.room, .count = nodes + 1};
    if (a->settings.rank < nodes)
        return 0;
    for (uint32_t i = 0; i <= nodes; i++)
        a->cohort.room[i].rank = i < nodes ? i : a->settings.rank;
    const int result = sl_members_regroup(a, &with, &a->cohort.grouping, error);
    settings->topology = a->cohort.grouping.topology;
    return result;
}

static int open_node(sl_agent *a, sl_error *error) {
    const sl_experiment *e = a->settings.experiment;
    const sl_task *task = &a->settings.task;
    int result = 0;
    if (a->settings.plan != NULL)
        a->plan = *a->settings.plan;
    else
        result = sl_experiment_plan(&a->plan, e, task, error);
    if (result != 0)
        return result;
    result = sl_experiment_sending(&a->sending, e, &a->plan, task, error);
    if (result != 0)
        return result;
    sl_node_settings settings =
        sl_experiment_node(e, &a->plan, &a->sending, task->dimension, task->rounds);
    sl_host_task host;
    char device[SL_DEVICE_NAME_MAX];
    sl_device_place(device, e->device, a->settings.place);
    result = sl_device_open(&settings.vec, device, sl_experiment_device_bytes(e), error);
    if (result == 0)
        result = sl_host_task_open(&host, settings.vec, task, error);
    if (result != 0)
        return result;
    a->side.vec = settings.vec;
    result = give_place(a, &settings, error);
    if (result != 0)
        return result;
    settings.rank = a->settings.rank;
    settings.epoch_rounds = task->epoch_rounds;
    settings.samples = task->samples != NULL ? task->samples(task->context, settings.rank) : 1;
    settings.inbox_parts = a->side.limits.window;
    settings.receive_rows = true; /* a neighbour's pool */
    settings.notify_fd = a->notify_fd;
    settings.direct = a->side.direct;
    settings.way_out = (sl_way_out){sl_agent_publish, a};
    settings.lends = task->lend != NULL;
    settings.turns = a->side.goes_on;
    settings.tensor_ends = task->tensor_ends;
    settings.tensor_count = task->tensor_count;
    settings.tensor_rows = task->tensor_rows;
    settings.measure_every = sl_record_every(&e->record, task->rounds);
    result = sl_machine_open(&a->node, &settings, error);
    a->side.now.varies = result == 0 && sl_machine_varies(&a->node);
    a->side.has_rooms = a->node.rounds != NULL && settings.vec->on_host && sl_node_moves(&settings);
    a->calls.lasts = a->settings.meets || e->final_average || a->node.own != NULL;
    if (result == 0 && !a->settings.meets)
        sl_host_task_initial(&host, a->settings.rank, sl_machine_model(&a->node));
    if (result == 0 && a->node.own != NULL && (a->settings.meets || a->settings.joins))
        sl_async_await_model(a->node.own);
    if (result == 0)
        result = a->side.vec->fence(error); /* it may run on another thread */
    sl_host_task_close(&host);
    return result;
}

/* With the node's neighbours, or with all members of the view that it goes on from. */
static int open_neighbours(sl_agent *a, sl_error *error) {
    a->side.limits.part_bytes_max = sl_machine_part_bytes_max(&a->node);
    const uint32_t *peers;
    const uint32_t near = sl_machine_peers(&a->node, &peers);
    const uint32_t count = a->side.goes_on ? sl_experiment_ranks(a->settings.experiment) - 1 : near;
    a->neighbours = calloc(count + 1u, sizeof *a->neighbours);
    a->receivers = calloc(count + 1u, sizeof(sl_neighbour *));
    a->shown.edges = calloc(count + 1u, sizeof *a->shown.edges);
    a->shown.lost = calloc(count + 1u, sizeof *a->shown.lost);
    if (a->neighbours == NULL || a->receivers == NULL || a->shown.edges == NULL ||
        a->shown.lost == NULL)
        return sl_fail(error, SL_ENOMEM, "agent %u: out of memory for %u neighbours",
                       a->settings.rank, count);
    a->neighbour_count = count;
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        const uint32_t rank = count == near ? peers[i] : i + (i >= a->side.rank);
        a->neighbours[i] = (sl_neighbour){.side = &a->side, .index = i, .rank = rank};
        if (!sl_members_expects(a, &a->neighbours[i]))
            a->neighbours[i].successor = SL_ANY_SUCCESSOR;
        for (uint32_t k = 0; k < near; k++)
            a->neighbours[i].near = a->neighbours[i].near || peers[k] == rank;
        if (a->cohort.resumed.number > 0) /* its node has no peers of that view yet */
            a->neighbours[i].near = sl_first_view_has(a, rank);
    }
    a->unverified = (sl_unverified_list){.side = &a->side,
                                         .handlers = &sl_contacts_visitors,
                                         .refusals = {.notice = a->settings.observer.notice,
                                                      .context = a->settings.observer.context,
                                                      .counts = a->record.refused}};
    return 0;
}

static int find_own_address(const sl_agent *a, struct sockaddr_storage *out, sl_error *error) {
    sl_lookup own = {0};
    snprintf(own.host, sizeof own.host, "%s", a->settings.host);
    int result = sl_lookup_all(
        &own, 1, &(sl_lookup_wait){.timeout_s = a->side.limits.connect_timeout_s, .stop_fd = -1},
        error);
    if (result == 0)
        result = sl_address_check_trust(&own.address, own.host, a->settings.rank,
                                        sl_security_goes_out(&a->settings.experiment->security) ||
                                            a->settings.credentials != NULL,
                                        error);
    if (result != 0)
        return result;
    *out = own.address;
    sl_address_set_port(out, a->settings.port);
    return 0;
}

/* The CUDA device that payloads leave from and come to; -1: the host, or what is its memory. */
static int memory_of_payloads(const sl_agent *a) {
    return a->side.direct ? a->side.vec->cuda_index : -1;
}

/* What auto stands for, and whether off is allowed, follows from where it listens: all agents of a
 * roster do on this host's loopback, or none. */
static int find_seal(const sl_agent *a, bool on_loopback, bool *seals, sl_error *error) {
    const sl_security_seal seal = a->settings.experiment->security.seal;
    const bool proves = a->settings.credentials != NULL;
    *seals = proves && (seal == SL_SEAL_ON || (seal == SL_SEAL_AUTO && !on_loopback));
    if (seal == SL_SEAL_ON && !proves)
        return sl_fail(error, SL_EINVAL,
                       "security.seal: \"on\" needs a key, and agent %u has none; `starling keys "
                       "make -o run.key` makes one, for \"security\": {\"key\": \"run.key\"}",
                       a->settings.rank);
    if (seal == SL_SEAL_OFF && proves && !on_loopback)
        return sl_fail(error, SL_EINVAL,
                       "security.seal: agent %u would listen on %s, beyond loopback, where \"off\" "
                       "is refused: \"on\" (or \"auto\") encrypts what is sent; "
                       "\"handshake-only\" sends data that anybody on the way can read and alter",
                       a->settings.rank, a->settings.host);
    return 0;
}

static int open_guard(sl_agent *a, const struct sockaddr_storage *address, sl_error *error) {
    const sl_security_config *c = &a->settings.experiment->security;
    const sl_credentials *credentials = a->settings.credentials;
    if (credentials == NULL && sl_security_mode_of(c) != SL_SECURITY_NONE)
        return sl_fail(error, SL_EINVAL, "agent %u: has no credentials, which security.mode needs",
                       a->settings.rank);
    bool seals;
    int result = sl_security_check_provider(c, a->settings.experiment->transport.provider,
                                            credentials != NULL, error);
    if (result == 0)
        result = find_seal(a, sl_address_is_loopback(address), &seals, error);
    if (result != 0)
        return result;
    if (seals && a->side.direct)
        return sl_fail(error, SL_EINVAL,
                       "security.seal: what goes from GPU memory to GPU memory "
                       "(transport.gpu_direct) cannot be sealed; say \"handshake-only\", or set "
                       "transport.gpu_direct \"off\"");
    sl_guard_open(&a->side.guard, credentials, seals);
    return 0;
}

static int open_fabric(sl_agent *a, sl_error *error) {
    sl_fabric_settings settings = {.provider = a->settings.experiment->transport.provider,
                                   .gpu = memory_of_payloads(a) >= 0,
                                   .reserve = SL_DESCRIPTORS_OF_NEIGHBOUR * a->neighbour_count +
                                              SL_DESCRIPTORS_OF_FILES,
                                   .context = a,
                                   .requested = sl_contacts_requested};
    int result = find_own_address(a, &settings.address, error);
    if (result == 0)
        result = open_guard(a, &settings.address, error);
    settings.gate = sl_gate_of(a);
    if (result == 0)
        result = sl_fabric_open(&a->side.fabric, &settings, error);
    return result != 0 ? result
                       : sl_fabric_register(a->side.fabric, a->side.words,
                                            words_bytes(&a->side.hello), -1, error);
}

/* For all receive buffers, where payloads come straight to the device. */
static int open_payload_memory(sl_agent *a, sl_error *error) {
    a->side.limits.payload_stride =
        sl_round_up(sl_machine_part_bytes_max(&a->node), SL_VEC_ALIGNMENT);
    size_t bytes =
        (size_t)a->neighbour_count * a->side.limits.receive_buffers * a->side.limits.payload_stride;
    if (!a->side.direct || bytes == 0)
        return 0;
    a->side.payload_memory = (uint8_t *)a->side.vec->allocate(bytes / sizeof(float));
    if (a->side.payload_memory == NULL)
        return sl_vec_no_memory(a->side.vec, error, "agent %u: receive buffers of %u neighbours",
                                a->settings.rank, a->neighbour_count);
    int result = a->side.vec->fence(error); /* it is cleared before anything comes */
    return result != 0 ? result
                       : sl_fabric_register(a->side.fabric, a->side.payload_memory, bytes,
                                            memory_of_payloads(a), error);
}

/* Each neighbour may have some, and so may one visitor, for its HELLO. */
static int open_envelopes(sl_agent *a, sl_error *error) {
    const sl_guard *guard = &a->side.guard;
    const uint32_t owners = guard->credentials != NULL ? a->neighbour_count + 1 : 0;
    size_t bytes = SL_HELLO_TEXT_MAX;
    if (guard->seals && bytes < a->side.limits.part_bytes_max)
        bytes = a->side.limits.part_bytes_max;
    return sl_sealed_buffers_open(&a->side.guard.envelopes, a->side.fabric, owners, bytes, error);
}

static size_t room_bytes(const sl_agent *a) {
    return sl_round_up(a->settings.task.dimension * sizeof(float), sl_window_unit());
}

/* What neighbours of this host read where it is: copies of parts, rooms of the model, parts of sums
 * (reduce.h), and the model that is given to one that joins. Pages are taken when they are used. */
static void open_arena(sl_agent *a, size_t copies_bytes) {
    const bool adds = a->calls.lasts || a->settings.checkpoints != NULL;
    const size_t vectors = SL_NODE_ROOMS * a->side.has_rooms + a->side.goes_on,
                 bytes = copies_bytes + vectors * room_bytes(a) + adds * sl_reduce_bytes(&a->side);
    sl_error why;
    if (a->side.reads && sl_arena_open(&a->side.arena, bytes, &why) != 0)
        sl_agent_notice(a, "transport.memory: %s; what this agent sends goes through connections",
                        why.text);
    a->side.has_rooms = a->side.has_rooms && a->side.arena != NULL;
    if (!a->side.has_rooms)
        return;
    a->side.room_bytes = room_bytes(a);
    a->side.rooms = sl_side_share(&a->side, SL_NODE_ROOMS * a->side.room_bytes);
    sl_node_take_rooms(a->node.rounds, a->side.rooms, a->side.room_bytes / sizeof(float));
}

/* Parts that neighbours may not have; where they can, they read them there. With GPU-direct, parts
 * are not copied: links between GPUs answer soon. */
static int open_copies(sl_agent *a, sl_error *error) {
    const uint32_t copies = a->side.direct ? 0 : a->neighbour_count * a->side.limits.window;
    const size_t part_bytes = a->side.limits.part_bytes_max;
    a->side.reads = copies > 0 && a->settings.experiment->transport.memory == SL_MEMORY_AUTO;
    a->side.reads_in_place = a->side.vec->on_host && sl_agent_comes_plain(a);
    const size_t bytes = sl_copies_bytes(copies, part_bytes);
    open_arena(a, bytes);
    return sl_copies_open(&a->side.copies, copies, part_bytes, sl_side_share(&a->side, bytes),
                          error);
}

/* All that payloads leave from. */
static int register_memory(sl_agent *a, sl_error *error) {
    void *bases[REGIONS_MAX] = {a->side.copies.memory};
    size_t bytes[REGIONS_MAX] = {a->side.arena != NULL ? sl_arena_bytes(a->side.arena)
                                                       : a->side.copies.memory_bytes};
    const size_t own = bases[0] != NULL,
                 count = own +
                         sl_machine_regions(&a->node, bases + own, bytes + own, REGIONS_MAX - own);
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = sl_fabric_register(a->side.fabric, bases[i], bytes[i],
                                    i < own ? -1 : memory_of_payloads(a), error);
    return result;
}

/* What is sent from, and what neighbours receive into. */
static int open_pools(sl_agent *a, sl_error *error) {
    const sl_task *lender = a->settings.task.vouch != NULL ? &a->settings.task : NULL;
    const bool sums =
        !a->side.direct &&
        (lender != NULL || (a->settings.experiment->transport.checksums && !a->side.guard.seals));
    int result = sl_outbox_open(&a->outbox, a->node.rounds, a->side.direct, sums, error);
    a->outbox.lender = lender;
    if (result == 0)
        result = open_payload_memory(a, error);
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a) && result == 0; n++)
        result = sl_neighbour_open(n, error);
    if (result == 0)
        result = open_envelopes(a, error);
    if (result == 0)
        result = open_copies(a, error);
    if (result == 0)
        result = register_memory(a, error);
    if (result == 0)
        sl_agent_open_published(a);
    return result;
}

/* Not at all, unless settings.meets, or agents agree on a checkpoint, or average their models at
 * the end. */
static int open_calls(sl_agent *a, sl_error *error) {
    const sl_experiment *e = a->settings.experiment;
    if (!a->calls.lasts && a->saving.agreement == SL_AGREED)
        return 0;
    const sl_algorithm *algorithm = sl_algorithm_of(&a->plan.config, error);
    const sl_grouping *g = &a->cohort.grouping;
    const bool some = a->cohort.resumed.number > 0;
    const sl_tree_members members = {.members = {g->ranks, g->count}};
    sl_tree tree;
    int result = algorithm == NULL ? SL_EINVAL
                                   : sl_tree_open(&tree, algorithm, &a->plan.config,
                                                  some ? g->topology : e->topology,
                                                  some ? &members : NULL, error);
    if (result != 0)
        return result;
    a->calls.attendance.is_new = a->settings.joins;
    result = sl_calls_open(&a->calls, &tree, &a->side, &a->node, a->neighbours, a->neighbour_count,
                           error);
    sl_tree_close(&tree);
    return result;
}

static int find_path(sl_agent *a, sl_error *error) {
    char note[SL_PATH_NOTE_MAX];
    const int result = sl_agent_find_path(a->settings.experiment, &a->side.direct, note, error);
    a->side.limits.header_bytes = a->side.direct ? SL_FRAME_DIRECT_AT : SL_FRAME_HEADER_BYTES;
    return result;
}

static int open_signals(sl_agent *a, sl_error *error) {
    a->stop_descriptor = sl_signal_open();
    a->notify_fd = sl_signal_open();
    return a->stop_descriptor >= 0 && a->notify_fd >= 0
               ? 0
               : sl_fail(error, SL_ENOMEM, "agent %u: no descriptor left", a->settings.rank);
}

static int open_worker(sl_agent *a, sl_error *error) {
    return sl_worker_open(&a->worker, a->side.vec, &a->settings.task, &a->settings.observer,
                          a->settings.rank, a->sending.leaves.count > 0 ? &a->sending.leaves : NULL,
                          error);
}

static int open_all(sl_agent *a, sl_error *error) {
    static int (*const steps[])(sl_agent *, sl_error *) = {
        find_path,          fill_hello,        sl_trust_open,   open_signals,      sl_members_room,
        sl_first_view_find, open_node,         regroup_first,   open_neighbours,   open_fabric,
        open_pools,         sl_saving_open,    sl_members_open, sl_averaging_open, open_calls,
        open_worker,        sl_agent_open_loop};
    int result = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && result == 0; i++)
        result = steps[i](a, error);
    return result;
}

/* Can it join a run that trains? */
static int check_joining(const sl_agent_settings *s, sl_error *error) {
    const uint32_t nodes = sl_topology_nodes(s->experiment->topology),
                   joiners = s->experiment->membership.joiners;
    if (s->rank >= nodes + joiners)
        return sl_fail(error, SL_EINVAL,
                       "rank %u: the topology has %u nodes, and membership.joiners is %u; the run "
                       "has ranks 0 to %u",
                       s->rank, nodes, joiners, nodes + joiners - 1);
    if (s->rank >= nodes && !s->joins)
        return sl_fail(error, SL_EINVAL,
                       "rank %u: the %u nodes of the topology begin the run; further ranks join "
                       "it (--join)",
                       s->rank, nodes);
    if (s->joins && s->meets && s->experiment->algorithm.overlap_rounds > 0)
        return sl_fail(error, SL_EINVAL,
                       "agent %u cannot join: algorithm.overlap_rounds lets nobody join a loop yet",
                       s->rank);
    if (!s->joins || s->experiment->membership.on_loss == SL_ON_LOSS_CONTINUE)
        return 0;
    return sl_fail(
        error, SL_EINVAL,
        "agent %u cannot join: membership.on_loss is \"stop\", so that the run ended when "
        "its rank was lost; a run with \"continue\" can be joined",
        s->rank);
}

/* Neighbours are on other machines, as far as is known before there is a roster. */
static bool is_distant(const char *host) {
    return strncmp(host, "127.", 4) != 0 && strcmp(host, "::1") != 0 &&
           strcmp(host, "localhost") != 0;
}

int sl_agent_open(sl_agent **out, const sl_agent_settings *settings, sl_error *error) {
    int result = sl_task_check(&settings->task, error);
    if (result == 0)
        result = check_joining(settings, error);
    if (result != 0)
        return result;
    sl_agent *a = calloc(1, sizeof *a);
    if (a == NULL)
        return sl_fail(error, SL_ENOMEM, "agent: out of memory");
    a->settings = *settings;
    pthread_mutex_init(&a->shown.mutex, NULL);
    a->stop_descriptor = a->notify_fd = -1;
    a->record.rank = a->side.rank = settings->rank;
    a->record.evaluation = (sl_evaluation){NAN, NAN};
    a->shown.distance = a->shown.progress.distance = NAN;
    a->shown.contraction = a->shown.progress.contraction = NAN;
    a->side.handlers = &sl_contacts_neighbours;
    a->side.meets = settings->meets;
    a->side.limits.timeout_s = settings->experiment->transport.timeout_s;
    a->side.limits.connect_timeout_s = settings->experiment->transport.connect_timeout_s;
    a->side.limits.reconnect_s = settings->experiment->transport.reconnect_s;
    a->side.goes_on = settings->experiment->membership.on_loss == SL_ON_LOSS_CONTINUE;
    if (a->side.goes_on)
        a->side.limits.timeout_s = settings->experiment->membership.grace_s;
    a->side.joins = settings->joins;
    a->side.now.view = !settings->joins;
    a->side.shares = settings->experiment->data.on_change == SL_ON_CHANGE_SHARE;
    a->side.ranks = sl_experiment_ranks(settings->experiment);
    a->side.limits.window =
        sl_receive_window(a->settings.experiment, a->settings.rank, is_distant(settings->host));
    a->side.limits.told_every = (sl_host_window(a->settings.experiment, a->settings.rank) + 1) / 2;
    a->side.limits.receive_buffers = a->side.limits.window + SL_CONTROL_BUFFERS;
    result = sl_identity_draw(&a->side.incarnation, error);
    if (result == 0)
        result = open_all(a, error);
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
    a->phase = PHASE_OVER; /* nobody is welcome any more: connections are refused */
    a->parting = false;
    /* A gradient that does not come back keeps its vectors: they are left behind with the thread
     * that uses them. */
    if (!sl_worker_close(&a->worker, a->settings.experiment->transport.timeout_s))
        return;
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        sl_connection_close(&n->link.connection);
    sl_unverified_close(&a->unverified);
    if (a->side.fabric != NULL)
        sl_fabric_poll(a->side.fabric);
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        sl_neighbour_close(n);
    sl_fabric_close(&a->side.fabric);
    sl_guard_close(&a->side.guard);
    sl_trust_close(a);
    sl_saving_close(a);
    sl_copies_close(&a->side.copies);
    sl_arena_close(&a->side.published);
    sl_calls_close(&a->calls);
    sl_averaging_close(a);
    if (a->side.payload_memory != NULL)
        a->side.vec->release((float *)a->side.payload_memory);
    sl_loop_close(&a->loop);
    sl_machine_close(&a->node);
    sl_sending_close(&a->sending);
    sl_state_transfer_close(a);
    sl_arena_close(&a->side.arena); /* the node's model may be there, sums and a model for others */
    sl_members_close(a);            /* whose topology the node had */
    sl_signal_close(a->stop_descriptor);
    sl_signal_close(a->notify_fd);
    free(a->neighbours);
    free(a->receivers);
    free(a->side.words);
    free(a->shown.edges);
    free(a->shown.lost);
    pthread_mutex_destroy(&a->shown.mutex);
    sl_outbox_close(&a->outbox);
    free(a);
}
