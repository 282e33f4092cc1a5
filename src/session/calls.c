/* calls.c - what the caller of a session calls; see starling/session.h. */
#include <stdlib.h>
#include <string.h>

#include "session/state.h"

int sl_session_stream(sl_session *s, void *stream, sl_error *error) {
    int result = sl_session_check_call(s, "stream", error);
    if (result == 0 && s->vec->guest == NULL)
        result = sl_fail(error, SL_EINVAL,
                         "stream: device is \"cpu\", which has none; x on a GPU needs device "
                         "\"cuda:N\" in the experiment");
    if (result == 0)
        s->stream = stream;
    return result;
}

/* ---- rounds ---- */

int sl_session_start(sl_session *s, float *x, sl_error *error) {
    int result = sl_session_check_call(s, "start", error);
    if (result == 0 && s->started)
        result = sl_fail(error, SL_EINVAL, "start: the session has started");
    if (result == 0)
        result = sl_session_check_vector(s, "start", x, error);
    if (result == 0)
        result = sl_session_check_x(s, x, error);
    if (result != 0)
        return result;
    s->started = true;
    s->start = x;
    sl_session_give_x(s);
    if (s->simulation != NULL)
        sl_simulation_park(s);
    else
        result = sl_peer_start(s, error);
    if (result == 0)
        result = sl_session_wait(s, error);
    if (result == 0 && s->state != NULL)
        sl_session_stand(s, x);
    else if (result == 0 && (s->options.same_start || s->options.joins))
        sl_session_take_x(s, x);
    s->state = NULL;
    return result;
}

/* In a simulation the round begins with end: until then the caller runs alone. */
static void begin_round(sl_session *s, const float *x, bool begun) {
    s->in_round = true;
    s->begun = begun;
    s->over = false;
    s->offered = x;
    s->given = x;
    s->lends = begun || s->mixes_by_sum;
    if (s->options.check)
        s->sum = sl_session_checksum(s, x);
    sl_session_give_x(s);
    if (s->simulation == NULL)
        sl_session_wish(s, WISH_ROUND);
}

int sl_session_offer(sl_session *s, const float *x, sl_error *error) {
    int result = sl_session_check_round(s, "offer", false, error);
    if (result == 0)
        result = sl_session_check_vector(s, "offer", x, error);
    if (result == 0)
        begin_round(s, x, false);
    return result;
}

int sl_session_begin(sl_session *s, const float *x, sl_error *error) {
    int result = sl_session_check_round(s, "begin", false, error);
    if (result == 0 && !s->options.overlap)
        result =
            sl_fail(error, SL_EINVAL, "begin: join was not told; set options.overlap, or call mix");
    if (result == 0)
        result = sl_session_check_vector(s, "begin", x, error);
    if (result == 0)
        begin_round(s, x, true);
    return result;
}

/* The round is over, and the next one has its number. */
static int find_change(sl_session *s, sl_error *error) {
    if (!s->options.check || sl_session_checksum(s, s->offered) == s->sum)
        return 0;
    sl_error change;
    sl_fail_node(&change, SL_EINVAL, s->rank, s->round - 1,
                 "x was changed between %s and end, while the exchange read it",
                 s->begun ? "begin" : "offer");
    return sl_session_end_with(s, &change, error);
}

static int end_round(sl_session *s, float *x, sl_error *error) {
    int result = sl_session_finish_round(s, error);
    if (result == 0)
        result = find_change(s, error);
    s->in_round = false;
    if (result == 0)
        sl_session_take_x(s, x);
    return result;
}

int sl_session_end(sl_session *s, float *x, sl_error *error) {
    int result = sl_session_check_round(s, "end", true, error);
    if (result == 0 && x != s->offered)
        result =
            sl_fail(error, SL_EINVAL, "end: x is other memory than %s had; it must be the same",
                    s->begun ? "begin" : "offer");
    return result != 0 ? result : end_round(s, x, error);
}

int sl_session_mix(sl_session *s, float *x, sl_error *error) {
    int result = sl_session_check_round(s, "mix", false, error);
    if (result == 0)
        result = sl_session_check_vector(s, "mix", x, error);
    if (result != 0)
        return result;
    begin_round(s, x, false);
    return end_round(s, x, error);
}

static size_t average_bytes(const sl_session *s) {
    return sl_session_bytes(s) + s->options.beside * sizeof(float);
}

int sl_session_beside(sl_session *s, const float *values, sl_error *error) {
    int result = sl_session_check_round(s, "beside", false, error);
    if (result != 0)
        return result;
    const size_t bytes = s->options.beside * sizeof *values;
    float *copy = values != NULL && bytes > 0 ? malloc(bytes) : NULL;
    if (values != NULL && bytes > 0 && copy == NULL)
        return sl_session_run_short(s, "beside", bytes, error);
    if (copy != NULL)
        memcpy(copy, values, bytes);
    free(s->beside);
    s->beside = copy;
    return 0;
}

static uint64_t round_of(sl_session *s) {
    pthread_mutex_lock(&s->mutex);
    const uint64_t round = s->round;
    pthread_mutex_unlock(&s->mutex);
    return round;
}

int sl_session_average(sl_session *s, float *average, double *distance, sl_error *error) {
    int result = sl_session_check_round(s, "average", false, error);
    if (result != 0)
        return result;
    float *vector = average != NULL ? average : malloc(average_bytes(s));
    if (vector == NULL)
        return sl_session_run_short(s, "average", average_bytes(s), error);
    s->average = vector;
    sl_session_wish(s, WISH_AVERAGE);
    result = sl_session_wait(s, error);
    if (result == 0 && distance != NULL)
        *distance = s->distance;
    if (result == 0 && s->cut)
        result = sl_fail_node(error, SL_EVOID, s->rank, round_of(s),
                              "average: a peer was lost while it was made; the session goes on");
    if (average == NULL)
        free(vector);
    return result;
}

/* ---- ending ---- */

/* The driver has ended, or never began. */
static void close_session(sl_session *s) {
    if (s->simulation != NULL)
        return; /* which frees it */
    sl_peer_close(s);
    sl_session_free(s);
}

static void fail_leave(sl_session *s) {
    sl_error error;
    sl_fail_node(&error, SL_ENOMEM, s->rank, round_of(s), "leave: out of memory for %zu parameters",
                 s->layout.dimension);
    sl_session_fail(s, &error);
}

int sl_session_leave(sl_session **session, sl_error *error) {
    sl_session *s = *session;
    if (s == NULL)
        return 0;
    int result = sl_session_check_process(s, "leave", error);
    if (result != 0) {
        *session = NULL;
        return result;
    }
    result = sl_session_check_caller(s, "leave", error);
    if (result != 0)
        return result;
    if (s->in_round)
        result = sl_session_check_alive(s, error);
    if (s->in_round && result == 0)
        return sl_session_check_round(s, "leave", false, error);
    *session = NULL;
    if (s->started) {
        s->average = s->spare = malloc(average_bytes(s)); /* others may still ask for averages */
        if (s->spare == NULL)
            fail_leave(s);
        sl_session_wish(s, WISH_LEAVE);
        sl_session_wait_end(s);
        result = s->error.code;
        if (result != 0 && error != NULL)
            *error = s->error;
    }
    close_session(s);
    return result;
}

void sl_session_abort(sl_session **session, const char *why) {
    sl_session *s = *session;
    if (s == NULL)
        return;
    *session = NULL;
    if (sl_session_is_forked(s))
        return;
    sl_error error;
    sl_fail_node(&error, SL_ESTOPPED, s->rank, round_of(s), "%.*s", SL_SESSION_TEXT_MAX,
                 why != NULL ? why : "the session was aborted");
    if (s->started)
        sl_session_fail(s, &error);
    if (s->started && s->simulation == NULL) { /* there the peer's function still runs, alone */
        sl_session_wish(s, WISH_GONE);
        sl_session_wait_end(s);
    }
    close_session(s);
}

void sl_session_stop(sl_session *s) {
    if (s != NULL)
        __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
}
