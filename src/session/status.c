/* status.c - what any thread may ask of a session; see starling/session.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session/state.h"

static bool is_forked(const sl_session *s) {
    return s->process != getpid();
}

int sl_session_ready(sl_session *s) {
    if (is_forked(s))
        return 0;
    pthread_mutex_lock(&s->mutex);
    int ready = s->handed || s->ended;
    pthread_mutex_unlock(&s->mutex);
    return ready;
}

int sl_session_fd(sl_session *s) {
    return is_forked(s) ? -1 : s->fd;
}

static sl_session_state state_of(const sl_session *s) {
    if (s->ended && s->error.code != 0)
        return SL_SESSION_FAILED;
    switch (s->wish) {
    case WISH_LEAVE:
    case WISH_GONE:
        return SL_SESSION_LEFT;
    case WISH_ROUND:
        return SL_SESSION_ROUND;
    case WISH_NONE:
    case WISH_AVERAGE:
        break;
    }
    return s->model != NULL ? SL_SESSION_STARTED : SL_SESSION_JOINED;
}

/* The record of an agent, or of the simulation; whom the agent waits for. */
static void take_record(sl_session *s, sl_session_report *out) {
    sl_record record = s->record;
    if (s->agent != NULL) {
        sl_agent_progress progress = sl_agent_progress_read(s->agent);
        record = progress.record;
        snprintf(out->waits_for, sizeof out->waits_for, "%s", progress.waits_for);
    }
    out->bytes_sent = record.bytes_sent;
    out->bytes_received = record.bytes_received;
    out->exchange_s = record.times.exchange;
}

static void fill(sl_session *s, sl_session_report *out) {
    out->state = state_of(s);
    out->rank = s->rank;
    out->nodes = s->nodes;
    out->round = s->round > 0 ? s->round - 1 : 0;
    out->neighbour_distance = s->measured;
    out->push_sum_weight = s->push_sum_weight;
    out->wait_s = s->waited_s;
    take_record(s, out);
}

int sl_session_status(sl_session *s, sl_session_report *out, sl_error *error) {
    sl_session_report report = {.size = sizeof report};
    if (is_forked(s))
        return sl_fail(error, SL_EINVAL,
                       "status: this process was forked from the one that joined");
    pthread_mutex_lock(&s->mutex);
    fill(s, &report);
    pthread_mutex_unlock(&s->mutex);
    const uint64_t size = out->size < sizeof report ? out->size : sizeof report;
    memcpy(out, &report, size);
    out->size = size;
    return 0;
}

/* Before an agent is there, and in a simulation, those of the topology. */
static uint64_t topology_edges(const sl_session *s, sl_session_edge *out, uint64_t max) {
    const uint32_t *peers;
    const uint32_t count = sl_topology_peers(s->experiment->topology, s->rank, &peers);
    for (uint32_t i = 0; i < count && i < max; i++)
        out[i] = (sl_session_edge){.rank = peers[i], .connected = s->simulation != NULL};
    return count;
}

uint64_t sl_session_edges(sl_session *s, sl_session_edge *out, uint64_t max) {
    if (is_forked(s))
        return 0;
    pthread_mutex_lock(&s->mutex);
    uint32_t count = 0;
    sl_agent_edge edge;
    for (; s->agent != NULL && sl_agent_edge_read(s->agent, count, &edge); count++)
        if (count < max)
            out[count] = (sl_session_edge){edge.rank, edge.agreed, edge.awaited};
    const bool asked = s->agent != NULL;
    pthread_mutex_unlock(&s->mutex);
    return asked ? count : topology_edges(s, out, max);
}
