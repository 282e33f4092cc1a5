/* progress.c - what threads other than the loop's see of an agent, and ask of it; see
 * starling/agent.h. */
#include <stdio.h>
#include <sys/eventfd.h>

#include "agent/state.h"

void sl_agent_stop(sl_agent *agent) {
    eventfd_write(agent->stop_descriptor, 1);
}

void sl_agent_end(sl_agent *a, const sl_error *why) {
    pthread_mutex_lock(&a->mutex);
    if (a->end.code == 0)
        a->end = *why;
    pthread_mutex_unlock(&a->mutex);
    sl_agent_stop(a);
}

sl_error sl_agent_end_asked(sl_agent *a) {
    pthread_mutex_lock(&a->mutex);
    sl_error error = a->end;
    pthread_mutex_unlock(&a->mutex);
    if (error.code == 0)
        sl_fail_node(&error, SL_ESTOPPED, a->side.rank, a->side.round, "stopped on request");
    return error;
}

void sl_agent_look(sl_agent *a) {
    sl_error wait;
    char call[SL_AGENT_WAIT_MAX];
    uint32_t peer;
    const bool waits = a->phase == PHASE_TRAINING && !sl_worker_busy(a->worker) &&
                       sl_node_name_wait(a->node, &wait) != 0;
    const bool calls = sl_calls_name_wait(&a->calls, call, sizeof call, &peer);
    pthread_mutex_lock(&a->mutex);
    a->progress.record = a->record;
    snprintf(a->progress.waits_for, sizeof a->progress.waits_for, "%.*s", SL_AGENT_WAIT_MAX - 1,
             calls   ? call
             : waits ? wait.text
                     : "");
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        a->edges[i].agreed = a->neighbours[i].agreed;
        a->edges[i].awaited = waits && sl_node_awaits(a->node, a->neighbours[i].rank);
    }
    pthread_mutex_unlock(&a->mutex);
}

sl_agent_progress sl_agent_progress_read(sl_agent *a) {
    pthread_mutex_lock(&a->mutex);
    sl_agent_progress progress = a->progress;
    pthread_mutex_unlock(&a->mutex);
    return progress;
}

bool sl_agent_edge_read(sl_agent *a, uint32_t index, sl_agent_edge *out) {
    if (index >= a->neighbour_count)
        return false;
    pthread_mutex_lock(&a->mutex);
    *out = a->edges[index];
    pthread_mutex_unlock(&a->mutex);
    return true;
}
