/* reading.c - the experiment of a session, and its end; see state.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/state.h"
#include "world/loop.h"

static void log_lines(const sl_session_options *o, const char *lines) {
    char line[SL_ERROR_TEXT_MAX];
    while (o->log != NULL && *lines != '\0') {
        const size_t length = strcspn(lines, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, lines);
        o->log(o->context, line);
        lines += length + (lines[length] == '\n');
    }
}

static int check_overlap(const sl_algorithm_config *c, const sl_session_options *o,
                         sl_error *error) {
    if (!o->overlap || strcmp(c->name, "d-psgd") == 0)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "options.overlap: algorithm '%s' sends vectors of its own, and cannot send from "
                   "x; only d-psgd can: leave it 0, and call mix",
                   c->name);
}

static int check_nodes(const sl_experiment *e, int64_t nodes, sl_error *error) {
    if (nodes <= 0 || nodes == sl_topology_nodes(e->topology))
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "%lld peers, but the topology has %u nodes; they must be equal",
                   (long long)nodes, sl_topology_nodes(e->topology));
}

static const uint64_t measure_every = 10; /* rounds */

int sl_session_read(sl_experiment **out, const char *experiment, const sl_session_options *o,
                    bool simulates, sl_error *error) {
    if (experiment == NULL)
        return sl_fail(error, SL_EINVAL, "experiment: is NULL; it must be a path, or JSON");
    const sl_session_reading how = {.overrides = o->overrides,
                                    .override_count = o->override_count,
                                    .overlap = o->overlap,
                                    .key = o->key,
                                    .records = o->out != NULL,
                                    .simulates = simulates,
                                    .nodes = o->nodes > 0 ? (uint32_t)o->nodes : sl_launch_count()};
    int result = sl_experiment_load_session(out, experiment, &how, error);
    if (result != 0)
        return result;
    if ((*out)->record.every == 0)
        (*out)->record.every = measure_every;
    result = check_nodes(*out, o->nodes, error);
    if (result == 0)
        result = check_overlap(&(*out)->algorithm, o, error);
    if (result != 0) {
        sl_experiment_close(out);
        return result;
    }
    char weights[SL_PLAN_TEXT_MAX];
    sl_experiment_say_weights(*out, weights, sizeof weights);
    log_lines(o, (*out)->warnings);
    log_lines(o, weights);
    return 0;
}

uint32_t sl_session_nodes(const sl_session *s) {
    return sl_topology_nodes(s->experiment->topology);
}

int sl_session_count_members(sl_session *s, uint32_t ranks, sl_error *error) {
    const uint32_t nodes = sl_session_nodes(s);
    s->shared.members.ranks = calloc(ranks, sizeof *s->shared.members.ranks);
    if (s->shared.members.ranks == NULL)
        return sl_fail(error, SL_ENOMEM, "join: out of memory for %u peers", ranks);
    for (uint32_t i = 0; i < nodes; i++)
        s->shared.members.ranks[i] = i;
    s->shared.members.count = nodes;
    s->shared.members.epoch = 1;
    return 0;
}

void sl_session_free(sl_session *s) {
    sl_session_close_rooms(s);
    sl_session_close_memory(s);
    if (s->options.simulation == NULL)
        sl_experiment_close(&s->experiment);
    sl_credentials_close(&s->process.credentials);
    sl_layout_close(&s->layout);
    free(s->shared.members.ranks);
    free(s->memory.places);
    free(s->caller.left);
    free(s->shared.parts.missing);
    free(s->caller.blocks.ends);
    free(s->caller.blocks.sums);
    sl_signal_close(s->shared.fd);
    pthread_cond_destroy(&s->shared.changed);
    pthread_mutex_destroy(&s->shared.mutex);
    free(s);
}
