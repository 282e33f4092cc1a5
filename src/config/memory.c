/* memory.c - how much memory a run needs, and how much is available; see starling/experiment.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "arena/window.h"
#include "base/group.h"
#include "base/round_up.h"
#include "config/buffers.h"
#include "config/overlap.h"
#include "starling/device.h"

/* ---- available memory ---- */

/* Returns the number after `name` in a file, or 0. */
static double number_in(const char *path, const char *name) {
    char line[128];
    double number = 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && number == 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            sscanf(line + strlen(name), "%lf", &number);
    if (file != NULL)
        fclose(file);
    return number;
}

/* Returns the free memory or the control group's limit, whichever is lower; 0: unknown. */
static size_t available_bytes(void) {
    const double bytes = 1024 * number_in("/proc/meminfo", "MemAvailable:"),
                 bound = sl_group_bytes();
    return (size_t)(bound > 0 && (bytes == 0 || bound < bytes) ? bound : bytes);
}

/* Returns what may still be taken under a limit of which /proc/self/status says how much is used.
 * 0: no limit; a limit that is used up leaves 1. */
static size_t left_under(int resource, const char *used_name) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    const double used = 1024 * number_in("/proc/self/status", used_name);
    return (double)limit.rlim_cur > used + 1 ? limit.rlim_cur - (size_t)used : 1;
}

/* Returns what one process may still take, beside what this one has; 0: no limit. */
static size_t process_limit(void) {
    const size_t space = left_under(RLIMIT_AS, "VmSize:"),
                 data = left_under(RLIMIT_DATA, "VmData:");
    return space == 0 || (data > 0 && data < space) ? data : space;
}

/* ---- needed memory ---- */

/* May agents seal frames? Those of `starling run`, which makes a key where nothing is said, are on
 * loopback. */
static bool may_seal(const sl_security_config *c) {
    if (sl_security_is_unsaid(c))
        return c->seal == SL_SEAL_ON;
    return sl_security_mode_of(c) != SL_SECURITY_NONE &&
           (c->seal == SL_SEAL_ON || c->seal == SL_SEAL_AUTO);
}

static size_t message_bytes(const sl_compressor_config *c, size_t dimension) {
    return c->kind == SL_COMPRESSOR_IDENTITY ? 0
                                             : (size_t)ceil(sl_compressor_bits(c, dimension) / 8);
}

/* Returns the bytes of one encoded message, of the longest phase or edge, and of the buffers of all
 * connections. */
static size_t buffer_bytes(const sl_experiment *e, const sl_plan *plan, size_t dimension,
                           uint32_t rank) {
    size_t message = message_bytes(&plan->config.compressor, dimension);
    for (uint32_t i = 0; i < plan->phase_count; i++) {
        const size_t early = message_bytes(&plan->phases[i], dimension);
        message = early > message ? early : message;
    }
    /* what comes, and copies of what may have to be sent again: of two messages at most */
    const size_t two = 2 * (dimension * sizeof(float) / e->transport.chunk_bytes + 1),
                 window = sl_receive_window(e, rank, false), used = window < two ? window : two,
                 buffers = 2 * used + SL_CONTROL_BUFFERS;
    const uint32_t degree = sl_receive_degree(e, rank);
    if (sl_algorithm_has_budget(&plan->config)) /* and an encoder of each edge */
        message = (1 + degree) * dimension * sizeof(float);
    const size_t sealed = may_seal(&e->security) ? (degree + 1) * SL_SEALED_BUFFERS : 0;
    return message + (degree * buffers + sealed) * e->transport.chunk_bytes;
}

/* The topology once all have joined; NULL: nobody does. */
static sl_topology *grown(const sl_experiment *e) {
    const uint32_t ranks = sl_experiment_ranks(e);
    uint32_t *all = e->membership.joiners > 0 ? malloc(ranks * sizeof *all) : NULL;
    sl_topology *among = NULL;
    sl_regrouping how;
    for (uint32_t i = 0; all != NULL && i < ranks; i++)
        all[i] = i;
    if (all != NULL)
        sl_topology_among(&among, &how, e->topology, all, ranks, NULL);
    free(all);
    return among;
}

/* Of its vectors, at most. */
static size_t vector_bytes(const sl_node_settings *settings, const sl_topology *grown) {
    sl_node_settings later = *settings;
    later.topology = grown;
    const size_t first = settings->rank < sl_topology_nodes(settings->topology)
                             ? sl_node_vector_bytes(settings)
                             : 0,
                 last = grown != NULL ? sl_node_vector_bytes(&later) : 0;
    return first > last ? first : last;
}

/* What a node at its own times keeps beside its vectors. */
typedef struct kept {
    size_t vectors; /* what it may have to take back, or serves */
    size_t host;    /* messages, until they have left, or until their turn */
} kept;

/* What leaves from a device's vectors leaves through the host. */
static kept kept_bytes(const sl_experiment *e, const sl_plan *plan, size_t dimension, uint32_t rank,
                       bool on_device) {
    const sl_algorithm *a = sl_algorithm_of(&e->algorithm, NULL);
    const sl_algorithm_config *c = &e->algorithm;
    const size_t model = dimension * sizeof(float),
                 encoded = message_bytes(&plan->config.compressor, dimension),
                 message = encoded > 0 ? encoded : model, leaves = on_device ? message : encoded;
    const uint64_t lag = c->staleness > c->overlap_rounds ? c->staleness : c->overlap_rounds;
    if (a == NULL || a->async == NULL)
        return (kept){0, 0};
    switch (a->async->pattern) {
    case SL_PATTERN_PAIRS:
        return (kept){model, 2 * leaves};
    case SL_PATTERN_VERSIONS:
        return (kept){0, (lag + 2) * sl_receive_degree(e, rank) * model + 2 * leaves};
    case SL_PATTERN_COMMITS:
        break;
    }
    const bool keeps = a->async->in_turn || a->async->together != NULL;
    const bool serves = c->server == SL_SERVER_SHARDED || rank == (uint32_t)c->server;
    return (kept){((c->local_steps > 1) + serves) * model,
                  2 * leaves + serves * keeps * sl_experiment_ranks(e) * message};
}

/* Where neighbours may read an agent's model it moves (node.h), between whole pages. */
static size_t rooms_bytes(const sl_experiment *e, const sl_node_settings *settings) {
    const size_t bytes = settings->dimension * sizeof(float);
    return e->transport.memory == SL_MEMORY_AUTO && sl_buckets_of(e) == SL_OVERLAP_NONE &&
                   sl_node_moves(settings)
               ? SL_NODE_ROOMS * sl_round_up(bytes, sl_window_unit()) - bytes
               : 0;
}

uint64_t sl_experiment_descriptors(const sl_experiment *e) {
    uint32_t degree = 0;
    for (uint32_t rank = 0; rank < sl_experiment_ranks(e); rank++) {
        const uint32_t of_rank = sl_receive_degree(e, rank);
        degree = of_rank > degree ? of_rank : degree;
    }
    return (uint64_t)SL_DESCRIPTORS_OF_NEIGHBOUR * degree + SL_DESCRIPTORS_OF_FILES +
           SL_DESCRIPTORS_OWN;
}

void sl_experiment_memory(sl_run_memory *out, const sl_experiment *e, const sl_plan *plan,
                          size_t dimension, size_t task_bytes) {
    const uint32_t nodes = sl_experiment_ranks(e);
    sl_topology *all = grown(e);
    const bool on_device = sl_device_describe(e->device, &(sl_device_info){0});
    const sl_algorithm *algorithm = sl_algorithm_of(&e->algorithm, NULL);
    const size_t model = dimension * sizeof(float);
    sl_run_memory m = {.task = task_bytes, .available = available_bytes(), .on_device = on_device};
    sl_node_settings settings = sl_experiment_node(e, plan, NULL, dimension, 1);
    const size_t average = e->final_average ? model : 0;
    /* who returns has taken another's model, and may have given its own before */
    const size_t returns = e->membership.on_loss == SL_ON_LOSS_CONTINUE ? 2 * model : 0;
    size_t all_vectors = 0, all_messages = 0;
    size_t copied = 0; /* of a node for its checkpoint: all but the gradient */
    for (settings.rank = 0; settings.rank < nodes; settings.rank++) {
        const kept own = kept_bytes(e, plan, dimension, settings.rank, on_device);
        const size_t vectors = vector_bytes(&settings, all) + own.vectors,
                     buffers = buffer_bytes(e, plan, dimension, settings.rank),
                     copy = e->checkpoint.every > 0 ? vectors - model : 0,
                     agent = (on_device ? model : vectors + rooms_bytes(e, &settings)) + own.host +
                             copy + buffers + 2 * average + returns + task_bytes;
        copied = copy > copied ? copy : copied;
        m.vectors = vectors > m.vectors ? vectors : m.vectors;
        m.buffers = buffers > m.buffers ? buffers : m.buffers;
        m.agent = agent > m.agent ? agent : m.agent;
        m.agents += agent;
        all_vectors += vectors;
        all_messages += own.host;
    }
    /* The simulator's nodes share a gradient where the algorithm does not keep it, and nobody waits
     * for all gradients. */
    const bool apart = sl_experiment_recovers(e);
    if (algorithm != NULL && algorithm->async == NULL && !algorithm->keeps_gradient &&
        sl_buckets_of(e) == SL_OVERLAP_NONE && !apart)
        all_vectors -= (nodes - 1) * model;
    /* those set aside, beside those that take their place */
    all_vectors += apart ? nodes / 2 * m.vectors : 0;
    m.simulator =
        (on_device ? nodes * model : all_vectors) + all_messages + copied + average + task_bytes;
    sl_topology_close(&all);
    m.limit = process_limit();
    m.limit += m.limit > 0 ? task_bytes : 0;
    *out = m;
}
