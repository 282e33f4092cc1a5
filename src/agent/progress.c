/* progress.c - what threads other than the loop's see of an agent, and ask of it; see
 * starling/agent.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/state.h"
#include "base/clock.h"

void sl_agent_notice(sl_agent *a, const char *format, ...) {
    char text[SL_ERROR_TEXT_MAX];
    if (a->settings.observer.notice == NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    a->settings.observer.notice(a->settings.observer.context, text);
}

static void wish(sl_agent *agent, unsigned bit) {
    atomic_fetch_or(&agent->saving.wishes, bit);
    sl_signal_give(agent->stop_descriptor);
}

void sl_agent_stop(sl_agent *agent) {
    wish(agent, SL_WISH_STOP);
}

void sl_agent_checkpoint(sl_agent *agent, bool leave) {
    if (!leave && !atomic_load(&agent->saving.trains))
        return; /* who still looks for addresses would take it for a request to stop */
    wish(agent, 1u << (leave ? SL_CUT_LEAVE : SL_CUT_GO_ON));
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

static void name_absent(const sl_agent *a, char out[SL_AGENT_WAIT_MAX]) {
    size_t used = 0;
    for (uint32_t i = 0; i < a->neighbour_count && used < SL_AGENT_WAIT_MAX; i++)
        if (!a->neighbours[i].agreed)
            used +=
                (size_t)snprintf(out + used, SL_AGENT_WAIT_MAX - used, "%s%u",
                                 used > 0 ? ", " : "agents to come up: ", a->neighbours[i].rank);
}

/* Whom, in words; empty: nobody. */
static void name_wait(const sl_agent *a, bool round, char out[SL_AGENT_WAIT_MAX]) {
    uint32_t peer;
    sl_error wait;
    out[0] = '\0';
    if (a->phase == PHASE_CONNECTING)
        name_absent(a, out);
    else if (!sl_calls_name_wait(&a->calls, out, SL_AGENT_WAIT_MAX, &peer) && round &&
             sl_node_name_wait(a->node, &wait) != 0)
        snprintf(out, SL_AGENT_WAIT_MAX, "%.*s", SL_AGENT_WAIT_MAX - 1, wait.text);
}

const char *sl_agent_doing_name(sl_agent_doing doing) {
    switch (doing) {
    case SL_AGENT_CONNECTS:
        return "connects";
    case SL_AGENT_COMPUTES:
        return "computes";
    case SL_AGENT_EXCHANGES:
        return "exchanges";
    case SL_AGENT_ENDS:
        break;
    }
    return "ends";
}

static sl_agent_doing doing_of(const sl_agent *a) {
    switch (a->phase) {
    case PHASE_CONNECTING:
        return SL_AGENT_CONNECTS;
    case PHASE_TRAINING:
        return sl_worker_busy(a->worker) ? SL_AGENT_COMPUTES : SL_AGENT_EXCHANGES;
    case PHASE_GOODBYE:
    case PHASE_OVER:
        break;
    }
    return SL_AGENT_ENDS;
}

void sl_agent_look(sl_agent *a) {
    char whom[SL_AGENT_WAIT_MAX];
    const bool round = a->phase == PHASE_TRAINING && !sl_worker_busy(a->worker);
    name_wait(a, round, whom);
    pthread_mutex_lock(&a->mutex);
    a->progress.record = a->record;
    a->progress.doing = doing_of(a);
    a->progress.round = a->side.round;
    a->moved_s =
        a->phase == PHASE_CONNECTING ? a->deadline_s - a->side.connect_timeout_s : a->progress_s;
    memcpy(a->progress.waits_for, whom, sizeof whom);
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        const sl_neighbour *n = &a->neighbours[i];
        a->edges[i].agreed = n->agreed;
        a->edges[i].awaited = (a->phase == PHASE_CONNECTING && !n->agreed) ||
                              (round && sl_node_awaits(a->node, n->rank));
    }
    pthread_mutex_unlock(&a->mutex);
}

sl_agent_progress sl_agent_progress_read(sl_agent *a) {
    pthread_mutex_lock(&a->mutex);
    sl_agent_progress progress = a->progress;
    progress.still_s = a->moved_s > 0 ? sl_clock_seconds() - a->moved_s : 0;
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
