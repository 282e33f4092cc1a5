/* status.c - what any thread may ask of a session; see starling/session.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session/state.h"

bool sl_session_is_forked(const sl_session *s) {
    return s->pid != getpid();
}

int sl_session_check_process(const sl_session *s, const char *call, sl_error *error) {
    if (s == NULL)
        return sl_fail(error, SL_EINVAL,
                       "%s: there is no session: join comes first, and after leave or abort there "
                       "is none",
                       call);
    if (!sl_session_is_forked(s))
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "%s: process %ld was forked from process %ld, which joined: the session stayed "
                   "there",
                   call, (long)getpid(), (long)s->pid);
}

int sl_session_ready(sl_session *s) {
    if (s == NULL || sl_session_is_forked(s))
        return 0;
    pthread_mutex_lock(&s->shared.mutex);
    int ready = s->shared.handed || sl_session_has_ended(s);
    pthread_mutex_unlock(&s->shared.mutex);
    return ready;
}

_Static_assert(SL_SESSION_SAID_MAX == SL_AGENT_RELOAD_MAX, "an agent says as much");

/* *agent stays until the other function is called. SL_EINVAL: none runs. */
static int hold_agent(sl_session *s, const char *call, sl_agent **agent, sl_error *error) {
    const int result = sl_session_check_process(s, call, error);
    if (result != 0)
        return result;
    pthread_mutex_lock(&s->shared.mutex);
    s->process.uses += s->process.agent != NULL;
    *agent = s->process.agent;
    pthread_mutex_unlock(&s->shared.mutex);
    return *agent != NULL ? 0
                          : sl_fail(error, SL_EINVAL,
                                    "%s: no agent runs: start comes first, and a simulation, or a "
                                    "session that has ended, has none",
                                    call);
}

static void let_agent_go(sl_session *s) {
    pthread_mutex_lock(&s->shared.mutex);
    s->process.uses--;
    pthread_cond_broadcast(&s->shared.changed);
    pthread_mutex_unlock(&s->shared.mutex);
}

int sl_session_reload(sl_session *s, char said[SL_SESSION_SAID_MAX], sl_error *error) {
    char text[SL_SESSION_SAID_MAX];
    sl_agent *agent;
    int result = hold_agent(s, "reload", &agent, error);
    if (result != 0)
        return result;
    result = sl_agent_reload(agent, s->process.launch, said != NULL ? said : text, error);
    let_agent_go(s);
    return result;
}

/* Closes it, where there is one already, or keeps it. */
static int keep_monitor(sl_session *s, sl_monitor *monitor, sl_error *error) {
    pthread_mutex_lock(&s->shared.mutex);
    const bool first = s->process.monitor == NULL;
    if (first)
        s->process.monitor = monitor;
    pthread_mutex_unlock(&s->shared.mutex);
    if (first)
        return 0;
    sl_monitor_close(&monitor);
    return sl_fail(error, SL_EINVAL, "serve: this session serves already");
}

int sl_session_serve(sl_session *s, const char *place, int is_public, uint16_t *port,
                     sl_error *error) {
    sl_monitor_subject of = {0};
    sl_monitor *monitor = NULL;
    if (place == NULL)
        return sl_fail(error, SL_EINVAL, "serve: place is NULL; it is HOST:PORT");
    int result = hold_agent(s, "serve", &of.agent, error);
    if (result != 0)
        return result;
    of.experiment = s->experiment;
    of.run_id = sl_launch_run_id(s->process.launch);
    of.rank = s->rank;
    of.nodes = sl_session_nodes(s);
    const sl_monitor_place at = {.at = place,
                                 .key = "serve",
                                 .is_public = is_public != 0,
                                 .allow = "public",
                                 .is_any_port = true};
    result = sl_monitor_listen(&monitor, &of, &at, error);
    const uint16_t found = result == 0 ? sl_monitor_port(monitor) : 0;
    if (result == 0)
        result = keep_monitor(s, monitor, error);
    if (result == 0 && port != NULL)
        *port = found;
    let_agent_go(s);
    return result;
}

int sl_session_fd(sl_session *s) {
    return s == NULL || sl_session_is_forked(s) ? -1 : s->shared.fd;
}

static sl_session_state state_of(const sl_session *s) {
    if (sl_session_has_ended(s) && s->shared.error.code != 0)
        return SL_SESSION_FAILED;
    switch (s->shared.wish) {
    case WISH_LEAVE:
    case WISH_GONE:
        return SL_SESSION_LEFT;
    case WISH_ROUND:
        return SL_SESSION_ROUND;
    case WISH_NONE:
    case WISH_AVERAGE:
    case WISH_SUM:
    case WISH_SAVE:
        break;
    }
    return s->shared.model != NULL ? SL_SESSION_STARTED : SL_SESSION_JOINED;
}

void sl_session_name_wait(sl_session *s, char out[SL_SESSION_TEXT_MAX]) {
    out[0] = '\0';
    if (s->process.agent != NULL)
        snprintf(out, SL_SESSION_TEXT_MAX, "%s",
                 sl_agent_progress_read(s->process.agent).waits_for);
    const bool starts = s->process.runs && s->shared.driving == DRIVING && s->shared.model == NULL;
    if (out[0] == '\0' && starts) /* looks up names, meets at rank 0, opens, has not looked yet */
        snprintf(out, SL_SESSION_TEXT_MAX, "its start: %s", sl_launch_describe(s->process.launch));
}

const char *sl_session_name_wish(const sl_session *s) {
    switch (s->shared.wish) {
    case WISH_ROUND:
        return "a round";
    case WISH_AVERAGE:
        return "average";
    case WISH_SUM:
        return "sum";
    case WISH_SAVE:
        return "save";
    case WISH_LEAVE:
        return "leave";
    case WISH_NONE:
    case WISH_GONE:
        break;
    }
    return s->shared.model == NULL ? "start" : "a call";
}

/* Rounds of its slowest neighbour, behind its own, as the agent last looked. */
static uint64_t count_ahead(sl_agent *agent) {
    const uint64_t round = sl_agent_progress_read(agent).record.round.round + 1;
    uint64_t slowest = round;
    sl_agent_edge edge;
    for (uint32_t i = 0; sl_agent_edge_read(agent, i, &edge); i++)
        if (edge.agreed && edge.exchange < slowest)
            slowest = edge.exchange;
    return round - slowest;
}

/* The record of an agent, or of the simulation. */
static void take_record(sl_session *s, sl_session_report *out) {
    const sl_record record = s->process.agent != NULL
                                 ? sl_agent_progress_read(s->process.agent).record
                                 : s->shared.record;
    out->bytes_sent = record.bytes_sent;
    out->bytes_received = record.bytes_received;
    out->exchange_s = record.times.exchange;
    out->staleness = record.round.staleness;
    out->virtual_s = record.virtual_s;
    out->bytes_copied = s->shared.copied;
    if (s->process.agent != NULL)
        out->bytes_copied += sl_agent_progress_read(s->process.agent).counters.payload_bytes_copied;
}

static void fill(sl_session *s, sl_session_report *out) {
    out->state = state_of(s);
    out->rank = s->rank;
    out->nodes = sl_session_nodes(s);
    out->round = s->shared.round > 0 ? s->shared.round - 1 : 0;
    out->neighbour_distance = s->shared.record.round.neighbour_distance;
    out->push_sum_weight = s->shared.push_sum_weight;
    out->wait_s = s->shared.waited_s;
    out->epoch = s->shared.members.epoch;
    out->ahead = s->shared.ahead;
    if (s->process.agent != NULL && sl_experiment_is_asynchronous(s->experiment))
        out->ahead = count_ahead(s->process.agent);
    take_record(s, out);
    sl_session_name_wait(s, out->waits_for);
}

int sl_session_status(sl_session *s, sl_session_report *out, sl_error *error) {
    sl_session_report report = {.size = sizeof report};
    int result = sl_session_check_process(s, "status", error);
    if (result != 0)
        return result;
    if (out == NULL || out->size < sizeof out->size)
        return sl_fail(error, SL_EINVAL, "status: out is %s",
                       out == NULL ? "NULL" : "of size: 0; it must be sizeof *out");
    pthread_mutex_lock(&s->shared.mutex);
    fill(s, &report);
    pthread_mutex_unlock(&s->shared.mutex);
    const uint64_t size = out->size < sizeof report ? out->size : sizeof report;
    memcpy(out, &report, size);
    out->size = size;
    return 0;
}

uint64_t sl_session_members(sl_session *s, uint64_t *out, uint64_t max) {
    if (s == NULL || sl_session_is_forked(s))
        return 0;
    pthread_mutex_lock(&s->shared.mutex);
    const uint64_t count = s->shared.members.count;
    for (uint64_t i = 0; i < count && i < max; i++)
        out[i] = s->shared.members.ranks[i];
    pthread_mutex_unlock(&s->shared.mutex);
    return count;
}

/* Before an agent is there, and in a simulation, those of the topology. */
static uint64_t topology_edges(const sl_session *s, sl_session_edge *out, uint64_t max) {
    const uint32_t *peers;
    const uint32_t count = sl_topology_peers(s->experiment->topology, s->rank, &peers);
    for (uint32_t i = 0; i < count && i < max; i++)
        out[i] = (sl_session_edge){.rank = peers[i], .connected = s->options.simulation != NULL};
    return count;
}

uint64_t sl_session_edges(sl_session *s, sl_session_edge *out, uint64_t max) {
    if (s == NULL || sl_session_is_forked(s))
        return 0;
    pthread_mutex_lock(&s->shared.mutex);
    uint32_t count = 0;
    sl_agent_edge edge;
    for (; s->process.agent != NULL && sl_agent_edge_read(s->process.agent, count, &edge); count++)
        if (count < max)
            out[count] = (sl_session_edge){edge.rank, edge.agreed, edge.awaited};
    const bool asked = s->process.agent != NULL;
    pthread_mutex_unlock(&s->shared.mutex);
    return asked ? count : topology_edges(s, out, max);
}
