/* join.c - puts a session together; see starling/session.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/state.h"
#include "world/loop.h"

/* What stays of the options: nothing that the caller may free. */
static void keep_options(sl_session *s, const sl_session_options *o) {
    s->options = *o;
    s->options.roster = s->options.master = s->options.listen = s->options.key = NULL;
    s->options.overrides = NULL;
    s->options.tensors = NULL;
    sl_session_hold_home(s);
}

/* Where memory is registered it is known by its address, at which a caller's allocator may have put
 * other pages since: the session's own vector leaves from there. */
static void borrow_unless_registered(sl_session *s) {
    const sl_transport_config *t = &s->experiment->transport;
    if (strcmp(t->provider, "tcp") != 0 || t->gpu_direct != SL_GPU_DIRECT_OFF)
        s->options.borrow = false;
}

static int open_session(sl_session *s, const char *experiment, const sl_session_options *o,
                        sl_error *error) {
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->shared.mutex, NULL);
    pthread_cond_init(&s->shared.changed, &clock);
    pthread_condattr_destroy(&clock);
    s->pid = getpid();
    s->thread = pthread_self();
    s->shared.fd = -1;
    s->shared.record.round.neighbour_distance = NAN;
    keep_options(s, o);
    if (s->options.simulation != NULL)
        return sl_simulation_join(s, o, error);
    int result = sl_session_read(&s->experiment, experiment, o, false, error);
    if (result == 0)
        borrow_unless_registered(s);
    if (result == 0)
        result = sl_session_count_members(s, sl_experiment_ranks(s->experiment), error);
    if (result == 0 && (s->shared.fd = sl_signal_open()) < 0)
        result = sl_fail(error, SL_ENOMEM, "join: no descriptor left");
    if (result == 0)
        result = sl_peer_open(s, o, error);
    return result != 0 ? result : sl_session_open_memory(s, error);
}

/* What there is to watch, now that the dimension is known: once in a simulation. What is wrong is
 * told by the node that is opened later. */
static void warn(const sl_session *s) {
    const sl_task task = {.dimension = s->layout.dimension, .rounds = UINT64_MAX};
    sl_plan plan;
    sl_warnings w = {.count = 0};
    char text[SL_PLAN_TEXT_MAX + 16];
    if (s->options.log != NULL && (s->options.simulation == NULL || s->rank == 0) &&
        sl_experiment_plan(&plan, s->experiment, &task, NULL) == 0)
        sl_experiment_warnings(&w, s->experiment, &plan, &task);
    for (size_t i = 0; i < w.count; i++) {
        snprintf(text, sizeof text, "warning: %s", w.texts[i]);
        s->options.log(s->options.context, text);
    }
}

int sl_session_join(sl_session **out, const char *experiment, uint64_t dimension,
                    const sl_session_options *options, sl_error *error) {
    sl_session_options o;
    sl_layout layout;
    if (out == NULL)
        return sl_fail(error, SL_EINVAL, "join: out is NULL; it must be a place for the session");
    int result = sl_session_take_options(&o, options, error);
    if (result == 0)
        result = sl_session_check_options_home(&o, dimension, error);
    if (result == 0)
        result = sl_layout_open(&layout, &o, dimension, error);
    if (result != 0)
        return result;
    sl_session *s = calloc(1, sizeof *s);
    if (s == NULL) {
        sl_layout_close(&layout);
        return sl_fail(error, SL_ENOMEM, "join: out of memory");
    }
    s->layout = layout;
    result = open_session(s, experiment, &o, error);
    if (result != 0) {
        sl_session_free(s);
        return result;
    }
    warn(s);
    *out = s;
    return 0;
}
