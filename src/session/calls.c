/* calls.c - what the caller of a session calls; see starling/session.h. */
#include <stdlib.h>

#include "session/state.h"

int sl_session_stream(sl_session *s, void *stream, sl_error *error) {
    int result = sl_session_check_process(s, "stream", error);
    if (result == 0)
        result = sl_session_check_alive(s, error);
    if (result == 0 && s->memory.vec->guest == NULL)
        result = sl_fail(error, SL_EINVAL,
                         "stream: device is \"cpu\", which has none; x on a GPU needs device "
                         "\"cuda:N\" in the experiment");
    if (result == 0)
        s->memory.stream = stream;
    return result;
}

/* ---- rounds ---- */

static int run_start(sl_session *s, sl_error *error) {
    s->caller.started = true;
    sl_session_give_turn(s);
    if (s->options.simulation == NULL) {
        int result = sl_peer_start(s, error);
        return result != 0 ? result : sl_session_wait(s, error);
    }
    sl_simulation_park(s);
    return sl_session_wait(s, error);
}

int sl_session_start(sl_session *s, float *x, sl_error *error) {
    sl_where at;
    int result = sl_session_check_call(s, "start", error);
    if (result == 0 && s->caller.started)
        result = sl_fail(error, SL_EINVAL, "start: the session has started");
    if (result == 0)
        result = sl_session_locate(s, "start", x, &at, error);
    if (result == 0)
        result = sl_session_check_x(s, &at, error);
    if (result == 0)
        result = sl_session_take_x(s, "start", &at, false, &s->caller.beginning.x, error);
    if (result != 0)
        return result;
    result = run_start(s, error);
    if (result == 0 && s->caller.beginning.state != NULL)
        result = sl_session_stand(s, &at, error);
    else if (result == 0 && (s->options.same_start || s->options.joins))
        sl_session_leave_x(s, &at, false);
    s->caller.beginning = (sl_beginning){0};
    return result;
}

/* In a simulation the round begins with end: until then the caller runs alone. */
static void begin_round(sl_session *s, sl_begun begun, const float *given, bool lends) {
    s->caller.round.begun = begun;
    s->shared.asked = (sl_call_asked){
        .given = given, .lends = lends && sl_session_lends(s), .moves = s->caller.round.at_home};
    sl_session_give_turn(s);
    if (s->options.simulation == NULL)
        sl_session_wish(s, WISH_ROUND);
}

/* D-PSGD with overlap, but not combine-while-adapt: mix leaves W x. */
static bool mixes_by_sum(const sl_session *s) {
    const sl_variant variant = s->experiment->algorithm.variant;
    return s->options.overlap && variant != SL_VARIANT_COMBINE_WHILE_ADAPT;
}

/* May x be taken for a round? */
static int check_round_of(sl_session *s, const char *call, const float *x, sl_where *at,
                          sl_error *error) {
    int result = sl_session_check_round(s, call, false, error);
    return result != 0 ? result : sl_session_locate(s, call, x, at, error);
}

int sl_session_offer(sl_session *s, const float *x, sl_error *error) {
    sl_where at;
    int result = check_round_of(s, "offer", x, &at, error);
    if (result == 0)
        result = sl_session_snapshot(s, "offer", &at, mixes_by_sum(s), error);
    if (result != 0)
        return result;
    begin_round(s, BEGUN_OFFER, s->memory.snapshot, mixes_by_sum(s));
    return 0;
}

static int borrow(sl_session *s, const sl_where *x, const float **given, sl_error *error) {
    if (x->whole == NULL)
        return sl_fail(error, SL_EINVAL,
                       "begin: options.borrow sends x from where it is, which must be one vector; "
                       "give x, or leave options.borrow 0");
    int result = sl_session_lend_home(s, x, true, given, error);
    if (result != 0)
        return result;
    if (*given == NULL) {
        *given = x->whole;
        return sl_session_borrow(s, x->whole, sl_session_round(s), error);
    }
    s->caller.round.borrowed = x->whole;
    s->caller.round.borrowed_in = sl_session_round(s);
    return 0;
}

int sl_session_begin(sl_session *s, const float *x, sl_error *error) {
    sl_where at;
    const float *given = NULL;
    int result = check_round_of(s, "begin", x, &at, error);
    if (result == 0 && !s->options.overlap)
        result =
            sl_fail(error, SL_EINVAL, "begin: join was not told; set options.overlap, or call mix");
    if (result == 0 && s->options.borrow)
        result = borrow(s, &at, &given, error);
    else if (result == 0)
        result = sl_session_snapshot(s, "begin", &at, true, error);
    if (result != 0)
        return result;
    begin_round(s, BEGUN_BEGIN, given != NULL ? given : s->memory.snapshot, true);
    return 0;
}

/* Before anything is waited for: what changed is not sent, or refused by who gets it. */
static int check_borrowed(sl_session *s, sl_error *error) {
    sl_error change;
    if ((s->caller.round.at_home
             ? sl_session_check_home(s, &change)
             : sl_session_check_borrowed(s, 0, s->layout.dimension, &change)) == 0)
        return 0;
    return sl_session_end_with(s, &change, error);
}

int sl_session_end(sl_session *s, float *x, sl_error *error) {
    sl_where at;
    int result = sl_session_check_round(s, "end", true, error);
    if (result == 0)
        result = sl_session_locate(s, "end", x, &at, error);
    if (result == 0 && s->caller.round.borrowed != NULL && x != s->caller.round.borrowed)
        result = sl_fail(error, SL_EINVAL,
                         "end: x is other memory than begin had; with options.borrow it must be "
                         "the same");
    if (result != 0)
        return result;
    const bool moved = s->caller.round.borrowed == NULL,
               in_parts = s->caller.round.begun == BEGUN_FINAL, at_home = s->caller.round.at_home;
    if (in_parts && s->caller.round.final > 0)
        return sl_fail(error, SL_EINVAL,
                       "end: the round has tensors from number %zu on only; final of 0 comes first",
                       s->caller.round.final);
    if (!moved)
        result = check_borrowed(s, error);
    if (result == 0)
        result = sl_session_finish_round(s, error);
    s->caller.round = (sl_caller_round){0};
    if (result == 0 && in_parts)
        sl_session_leave_tensors(s, &at, 0, sl_session_tensors(s));
    else if (result == 0 && at_home)
        result = sl_session_take_next(s, &at, error);
    else if (result == 0)
        sl_session_leave_x(s, &at, moved);
    return result;
}

static int take_for_mix(sl_session *s, const sl_where *x, const float **given, sl_error *error) {
    const bool lent = mixes_by_sum(s);
    *given = NULL;
    const int result = lent ? sl_session_lend_home(s, x, false, given, error) : 0;
    return result != 0 || *given != NULL ? result
                                         : sl_session_take_x(s, "mix", x, lent, given, error);
}

int sl_session_mix(sl_session *s, float *x, sl_error *error) {
    sl_where at;
    const float *given;
    int result = check_round_of(s, "mix", x, &at, error);
    if (result == 0)
        result = take_for_mix(s, &at, &given, error);
    if (result != 0)
        return result;
    const bool at_home = s->caller.round.at_home;
    begin_round(s, BEGUN_OFFER, given, mixes_by_sum(s));
    result = sl_session_finish_round(s, error);
    s->caller.round = (sl_caller_round){0};
    if (result == 0 && at_home)
        result = sl_session_take_next(s, &at, error);
    else if (result == 0)
        sl_session_leave_x(s, &at, false);
    return result;
}

/* ---- ending ---- */

/* The driver has ended, or never began. */
static void close_session(sl_session *s) {
    if (s->options.simulation != NULL)
        return; /* which frees it */
    sl_peer_close(s);
    sl_session_free(s);
}

static void fail_leave(sl_session *s) {
    sl_error error;
    sl_fail_node(&error, SL_ENOMEM, s->rank, sl_session_round(s),
                 "leave: out of memory for %zu parameters", s->layout.dimension);
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
    const bool in_round = s->caller.round.begun != BEGUN_NONE;
    if (in_round)
        result = sl_session_check_alive(s, error);
    if (in_round && result == 0)
        return sl_session_check_round(s, "leave", false, error);
    *session = NULL;
    if (s->caller.started) {
        float *average = malloc(sl_session_bytes(s)); /* others may still ask for averages */
        if (average == NULL)
            fail_leave(s);
        s->shared.asked = (sl_call_asked){.average = average};
        sl_session_wish(s, WISH_LEAVE);
        sl_session_wait_end(s);
        free(average);
        result = s->shared.error.code;
        if (result != 0 && error != NULL)
            *error = s->shared.error;
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
    sl_fail_node(&error, SL_ESTOPPED, s->rank, sl_session_round(s), "%.*s", SL_SESSION_TEXT_MAX,
                 why != NULL ? why : "the session was aborted");
    const bool started = s->caller.started;
    if (started)
        sl_session_fail(s, &error);
    if (started &&
        s->options.simulation == NULL) { /* there the peer's function still runs, alone */
        sl_session_wish(s, WISH_GONE);
        sl_session_wait_end(s);
    }
    close_session(s);
}

void sl_session_stop(sl_session *s) {
    if (s != NULL)
        __atomic_store_n(&s->shared.stop, 1, __ATOMIC_RELAXED);
}
