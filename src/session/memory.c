/* memory.c - host or GPU, whose stream the caller names; see state.h.
 *
 * A model that goes to and fro on a GPU takes an event along: `theirs` is behind what the caller
 * has asked its stream for, `ours` behind what the driver has. Whoever gets the turn orders its
 * own work after the other's event; neither waits for the GPU. Of a round that comes tensor by
 * tensor both are recorded while the other side may look: under the mutex.
 */
#include <stdlib.h>
#include <string.h>

#include "session/state.h"
#include "starling/device.h"

size_t sl_session_bytes(const sl_session *s) {
    return s->layout.dimension * sizeof(float);
}

/* ---- opening ---- */

typedef struct opening {
    sl_session *session;
    int result;
    sl_error error;
} opening;

static int open_events(sl_session *s, sl_error *error) {
    sl_session_memory *m = &s->memory;
    m->theirs = m->vec->async->event_open();
    m->ours = m->vec->async->event_open();
    m->seen = malloc(sl_session_bytes(s));
    if (m->theirs != NULL && m->ours != NULL && m->seen != NULL)
        return 0;
    return sl_fail(error, SL_ENOMEM, "join: out of memory for %zu parameters", s->layout.dimension);
}

static void *open_device(void *opening_) {
    opening *o = opening_;
    sl_session *s = o->session;
    const sl_experiment *e = s->experiment;
    const sl_launch *launch = s->process.launch; /* NULL: a simulation */
    char device[SL_DEVICE_NAME_MAX];
    sl_device_place(device, e->device, launch != NULL ? sl_launch_place(launch) : 0);
    o->result = sl_device_open(&s->memory.vec, device, sl_experiment_device_bytes(e), &o->error);
    if (o->result == 0)
        o->result = open_events(s, &o->error);
    return NULL;
}

/* The caller's thread keeps its current device. */
static int on_own_thread(sl_session *s, const char *call, void *work(void *opening),
                         sl_error *error) {
    opening o = {.session = s};
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, &o) != 0)
        return sl_fail(error, SL_ENOMEM, "%s: no thread could be started", call);
    pthread_join(thread, NULL);
    if (o.result != 0 && error != NULL)
        *error = o.error;
    return o.result;
}

int sl_session_open_memory(sl_session *s, sl_error *error) {
    s->memory.vec = sl_vec_cpu();
    if (strcmp(s->experiment->device, "cpu") == 0)
        return 0;
    return on_own_thread(s, "join", open_device, error);
}

static void *open_snapshot(void *opening_) {
    opening *o = opening_;
    sl_session *s = o->session;
    s->memory.own_snapshot = s->memory.vec->allocate(s->layout.dimension);
    o->result = s->memory.own_snapshot == NULL
                    ? sl_vec_no_memory(s->memory.vec, &o->error, "a snapshot of %zu parameters",
                                       s->layout.dimension)
                    : s->memory.vec->fence(&o->error);
    return NULL;
}

int sl_session_open_snapshot(sl_session *s, const char *call, sl_error *error) {
    const int result =
        s->memory.own_snapshot != NULL ? 0 : on_own_thread(s, call, open_snapshot, error);
    s->memory.snapshot = s->memory.own_snapshot;
    return result;
}

void sl_session_close_memory(sl_session *s) {
    const sl_session_memory *m = &s->memory;
    if (m->theirs != NULL)
        m->vec->async->event_wait(m->theirs); /* the caller's stream may still read its x */
    if (m->own_snapshot != NULL)
        m->vec->release(m->own_snapshot);
    if (s->driver.base != NULL)
        m->vec->release(s->driver.base);
    if (m->theirs != NULL)
        m->vec->async->event_close(m->theirs);
    if (m->ours != NULL)
        m->vec->async->event_close(m->ours);
    free(m->seen);
}

/* ---- the caller's thread ---- */

int sl_session_check_floats(const sl_session *s, const char *call, const char *name, const float *x,
                            sl_error *error) {
    char where[SL_SESSION_TEXT_MAX];
    if (x == NULL || (uintptr_t)x % sizeof *x != 0)
        return sl_fail(error, SL_EINVAL, "%s: %s is %s", call, name,
                       x == NULL ? "NULL" : "not aligned to 4 bytes");
    if (s->memory.vec->guest == NULL || s->memory.vec->guest->owns(x, where, sizeof where))
        return 0;
    return sl_fail(error, SL_EINVAL, "%s: %s is %s, and device is \"%s\"; it must be memory there",
                   call, name, where, s->memory.vec->name);
}

/* An exchange cannot be repeated with the caller's work: each is another round. */
int sl_session_check_stream(const sl_session *s, const char *call, sl_error *error) {
    const sl_session_memory *m = &s->memory;
    if (m->vec->guest == NULL || !m->vec->guest->is_captured(m->stream))
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "%s: the caller's stream is being captured (torch.cuda.graph); calls of a "
                   "session come before or after a capture",
                   call);
}

void sl_session_give_turn(sl_session *s) {
    if (s->memory.vec->guest == NULL)
        return;
    pthread_mutex_lock(&s->shared.mutex);
    s->memory.vec->guest->record(s->memory.theirs, s->memory.stream);
    pthread_mutex_unlock(&s->shared.mutex);
}

void sl_session_take_turn(sl_session *s) {
    if (s->memory.vec->guest == NULL)
        return;
    pthread_mutex_lock(&s->shared.mutex);
    s->memory.vec->guest->follow(s->memory.ours, s->memory.stream);
    pthread_mutex_unlock(&s->shared.mutex);
}

void sl_session_enter_stream(const sl_session *s) {
    if (s->memory.vec->guest != NULL)
        s->memory.vec->guest->enter(s->memory.stream);
}

void sl_session_leave_stream(const sl_session *s) {
    if (s->memory.vec->guest != NULL)
        s->memory.vec->guest->leave();
}

void sl_session_follow_driver(sl_session *s) {
    if (s->memory.vec->guest != NULL)
        s->memory.vec->async->event_follow(s->memory.ours);
}

/* ---- the driver's thread ---- */

void sl_session_show_model(sl_session *s) {
    if (s->memory.vec->guest == NULL)
        return;
    pthread_mutex_lock(&s->shared.mutex);
    s->memory.vec->async->event_record(s->memory.ours);
    pthread_mutex_unlock(&s->shared.mutex);
}

void sl_session_follow_caller(sl_session *s) {
    if (s->memory.vec->guest == NULL)
        return;
    pthread_mutex_lock(&s->shared.mutex);
    s->memory.vec->async->event_follow(s->memory.theirs);
    pthread_mutex_unlock(&s->shared.mutex);
}

const float *sl_session_view_some(sl_session *s, const float *v, size_t count) {
    if (s->memory.vec->guest == NULL)
        return v;
    s->memory.vec->copy_out(s->memory.seen, v, count * sizeof *v);
    return s->memory.seen;
}

const float *sl_session_view(sl_session *s, const float *v) {
    return sl_session_view_some(s, v, s->layout.dimension);
}
