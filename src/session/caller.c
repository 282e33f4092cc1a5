/* caller.c - what all calls of a session's caller begin and end with; see state.h. */
#include <string.h>

#include "session/state.h"

bool sl_session_lends(const sl_session *s) {
    return s->options.overlap && !sl_experiment_is_asynchronous(s->experiment);
}

/* ---- who may call, and when ---- */

int sl_session_check_caller(const sl_session *s, const char *call, sl_error *error) {
    int result = sl_session_check_process(s, call, error);
    if (result != 0 || pthread_equal(s->thread, pthread_self()))
        return result;
    return sl_fail(error, SL_EINVAL,
                   "%s: was called on another thread than the one that joined; calls of a session "
                   "come from that one",
                   call);
}

int sl_session_check_alive(sl_session *s, sl_error *error) {
    pthread_mutex_lock(&s->shared.mutex);
    int result = sl_session_has_ended(s) ? s->shared.error.code : 0;
    pthread_mutex_unlock(&s->shared.mutex);
    if (result != 0 && error != NULL)
        *error = s->shared.error;
    return result;
}

int sl_session_check_hook(sl_session *s, const char *call, sl_error *error) {
    int result = sl_session_check_process(s, call, error);
    if (result == 0)
        result = sl_session_check_alive(s, error);
    return result != 0 ? result : sl_session_check_stream(s, call, error);
}

int sl_session_check_call(sl_session *s, const char *call, sl_error *error) {
    const int result = sl_session_check_caller(s, call, error);
    return result != 0 ? result : sl_session_check_hook(s, call, error);
}

int sl_session_check_round(sl_session *s, const char *call, bool in_round, sl_error *error) {
    int result = sl_session_check_call(s, call, error);
    if (result != 0)
        return result;
    if (!s->caller.started)
        return sl_fail(error, SL_EINVAL, "%s: start comes first", call);
    static const char *const names[] = {"", "offer", "begin", "final"};
    const sl_begun begun = s->caller.round.begun;
    if (in_round && begun == BEGUN_NONE)
        return sl_fail(error, SL_EINVAL, "%s: no round is under way; begin or offer comes first",
                       call);
    if (!in_round && begun != BEGUN_NONE)
        return sl_fail(error, SL_EINVAL, "%s: a round is under way since %s; end comes first", call,
                       names[begun]);
    return 0;
}

uint64_t sl_session_round(sl_session *s) {
    pthread_mutex_lock(&s->shared.mutex);
    const uint64_t round = s->shared.round;
    pthread_mutex_unlock(&s->shared.mutex);
    return round;
}

/* ---- waiting, and ending ---- */

int sl_session_finish_round(sl_session *s, sl_error *error) {
    if (s->options.simulation != NULL && !s->caller.round.over)
        sl_session_wish(s, WISH_ROUND);
    s->caller.round.over = true;
    return sl_session_wait(s, error);
}

int sl_session_end_with(sl_session *s, const sl_error *why, sl_error *error) {
    sl_session_fail(s, why);
    sl_session_wish(s, WISH_GONE);
    sl_session_wait_end(s);
    if (error != NULL)
        *error = s->shared.error;
    return s->shared.error.code;
}

int sl_session_run_short(sl_session *s, const char *call, size_t bytes, sl_error *error) {
    sl_error shortage;
    sl_fail_node(&shortage, SL_ENOMEM, s->rank, s->shared.round, "%s: out of memory for %zu bytes",
                 call, bytes);
    return sl_session_end_with(s, &shortage, error);
}
