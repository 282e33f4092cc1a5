/* parts.c - a round that comes tensor by tensor, from the last to the first, beside the caller's
 * backward pass, and goes tensor by tensor, so that its next forward pass begins before all is
 * there.
 *
 * final gives tensors: the driver, which waits in `gradient`, takes their displacement and tells
 * its node how far the gradient is. await leaves tensors in x once the node has mixed them, or the
 * round is over. A simulation's round begins with the last tensor: until then the caller runs
 * alone.
 *
 * On a GPU each range that is given, or mixed, has the events of memory.c behind it. Only the
 * driver's thread waits for the GPU: a range that is told of leaves at once.
 */
#include <stdlib.h>
#include <string.h>

#include "session/state.h"
#include "vec/asked.h"

/* ---- the driver's threads ---- */

/* The first element that is given; as before: nothing more comes. */
static size_t await_more(sl_session *s, size_t before) {
    pthread_mutex_lock(&s->shared.mutex);
    while (s->shared.parts.final == before && s->shared.wish == WISH_ROUND &&
           s->shared.driving == DRIVING)
        pthread_cond_wait(&s->shared.changed, &s->shared.mutex);
    const size_t from = s->shared.parts.final;
    pthread_mutex_unlock(&s->shared.mutex);
    return from;
}

/* Whose numbers in the range are not finite? False: the session fails. */
static bool check_tensors(sl_session *s, size_t from, size_t to) {
    bool good = true;
    for (size_t t = sl_session_tensor_at(s, from); good && from < to; t++) {
        const float *given = sl_session_memory_of(s, &s->shared.parts.x, t);
        good = sl_session_check_numbers(s, given, from, sl_session_end_of(s, t) - from);
        from = sl_session_end_of(s, t);
    }
    return good;
}

/* False: the session fails. One look for all tensors, for which a device is waited. */
static bool displace(sl_session *s, const float *before, float *g, size_t from, size_t to) {
    sl_session_follow_caller(s);
    for (size_t t = sl_session_tensor_at(s, from), at = from; at < to; t++) {
        const float *given = sl_session_memory_of(s, &s->shared.parts.x, t);
        s->memory.vec->combine(g + at, (const float *const[]){before + at, given},
                               (const float[]){1, -1}, 2, sl_session_end_of(s, t) - at);
        at = sl_session_end_of(s, t);
    }
    return sl_vec_are_finite(s->memory.vec, g + from, to - from) || check_tensors(s, from, to);
}

void sl_session_answer_parts(sl_session *s, const float *before, float *g) {
    const sl_progress *p = s->driver.progress;
    size_t done = s->layout.dimension;
    bool good = true;
    while (good && done > 0) {
        if (p != NULL)
            p->tell(p->context, 0, done);
        const size_t from = await_more(s, done);
        good = from < done && displace(s, before, g, from, done);
        done = good ? from : done;
    }
    s->memory.vec->fill(g, 0, done); /* of who has failed, or is gone */
}

void sl_session_take_mixed(sl_session *s, const float *model, size_t from, size_t count) {
    sl_session_show_model(s);
    pthread_mutex_lock(&s->shared.mutex);
    size_t *missing = s->shared.parts.missing;
    s->shared.parts.mixed = model;
    for (size_t t = sl_session_tensor_at(s, from), to = from + count; missing != NULL && from < to;
         t++) {
        const size_t end = sl_session_end_of(s, t) < to ? sl_session_end_of(s, t) : to;
        missing[t] -= end - from;
        from = end;
    }
    pthread_cond_broadcast(&s->shared.changed);
    pthread_mutex_unlock(&s->shared.mutex);
}

/* ---- the caller's thread ---- */

static bool has_all(const sl_session *s) {
    size_t t = 0;
    while (t < sl_session_tensors(s) && s->caller.left[t])
        t++;
    return t == sl_session_tensors(s);
}

void sl_session_leave_tensors(sl_session *s, const sl_where *x, size_t first, size_t count) {
    pthread_mutex_lock(&s->shared.mutex);
    const float *model = s->shared.handed ? s->shared.model : s->shared.parts.mixed;
    pthread_mutex_unlock(&s->shared.mutex);
    sl_session_take_turn(s);
    sl_session_enter_stream(s);
    for (size_t t = first; t < first + count; t++) {
        const size_t from = sl_session_beginning_of(s, t), end = sl_session_end_of(s, t);
        if (!s->caller.left[t])
            s->memory.vec->copy(sl_session_memory_of(s, x, t), model + from,
                                (end - from) * sizeof *model);
        s->caller.left[t] = true;
    }
    sl_session_leave_stream(s);
    sl_session_give_turn(s);
}

static int open_parts(sl_session *s, sl_error *error) {
    const size_t tensors = sl_session_tensors(s);
    if (s->caller.left == NULL)
        s->caller.left = calloc(tensors, sizeof *s->caller.left);
    pthread_mutex_lock(&s->shared.mutex);
    if (s->shared.parts.missing == NULL)
        s->shared.parts.missing = calloc(tensors, sizeof *s->shared.parts.missing);
    const bool complete = s->caller.left != NULL && s->shared.parts.missing != NULL;
    pthread_mutex_unlock(&s->shared.mutex);
    return complete ? 0
                    : sl_fail(error, SL_ENOMEM, "final: out of memory for %zu tensors", tensors);
}

static int begin_round(sl_session *s, const sl_where *x, sl_error *error) {
    const int result = open_parts(s, error);
    if (result != 0)
        return result;
    memset(s->caller.left, 0, sl_session_tensors(s) * sizeof *s->caller.left);
    s->caller.round = (sl_caller_round){.begun = BEGUN_FINAL, .final = sl_session_tensors(s) + 1u};
    pthread_mutex_lock(&s->shared.mutex);
    s->shared.parts.x = *x;
    s->shared.parts.final = s->layout.dimension;
    for (size_t t = 0; t < sl_session_tensors(s); t++)
        s->shared.parts.missing[t] = sl_session_end_of(s, t) - sl_session_beginning_of(s, t);
    s->shared.asked = (sl_call_asked){.parts = &s->shared.parts.x};
    pthread_mutex_unlock(&s->shared.mutex);
    if (s->options.simulation == NULL)
        sl_session_wish(s, WISH_ROUND);
    return 0;
}

static int check_order(sl_session *s, uint64_t first, sl_error *error) {
    const sl_caller_round *round = &s->caller.round;
    const bool goes_on = round->begun == BEGUN_FINAL && round->final > 0;
    if (s->experiment->transport.overlap == SL_OVERLAP_NONE)
        return sl_fail(
            error, SL_EINVAL,
            "final: transport.overlap is \"none\"; set it in the experiment, or call mix");
    if (round->begun == BEGUN_OFFER || round->begun == BEGUN_BEGIN)
        return sl_session_check_round(s, "final", false, error);
    if (first > sl_session_tensors(s) || (goes_on && first >= round->final))
        return sl_fail(error, SL_EINVAL,
                       "final: tensor %llu of %zu; the number falls with each call of a round",
                       (unsigned long long)first, sl_session_tensors(s));
    return round->begun == BEGUN_NONE || goes_on
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "final: some tensors of the round before were not awaited; await or end "
                         "comes first");
}

int sl_session_final(sl_session *s, float *x, uint64_t first, sl_error *error) {
    sl_where at;
    int result = sl_session_check_hook(s, "final", error);
    if (result == 0 && !s->caller.started)
        result = sl_fail(error, SL_EINVAL, "final: start comes first");
    if (result == 0)
        result = check_order(s, first, error);
    if (result == 0)
        result = sl_session_locate(s, "final", x, &at, error);
    if (result == 0 && s->caller.round.begun == BEGUN_NONE)
        result = begin_round(s, &at, error);
    if (result != 0)
        return result;
    s->caller.round.final = first;
    sl_session_give_turn(s);
    pthread_mutex_lock(&s->shared.mutex);
    s->shared.parts.final =
        first < sl_session_tensors(s) ? sl_session_beginning_of(s, first) : s->layout.dimension;
    pthread_cond_broadcast(&s->shared.changed);
    pthread_mutex_unlock(&s->shared.mutex);
    return 0;
}

int sl_session_await(sl_session *s, float *x, uint64_t first, uint64_t count, sl_error *error) {
    sl_where at;
    const size_t tensors = sl_session_tensors(s);
    int result = sl_session_check_hook(s, "await", error);
    if (result != 0 || s->caller.round.begun == BEGUN_NONE)
        return result;
    result = s->caller.round.begun == BEGUN_FINAL
                 ? sl_session_locate(s, "await", x, &at, error)
                 : sl_session_check_round(s, "await", false, error);
    if (result == 0 && (first > tensors || count > tensors - first))
        result = sl_fail(error, SL_EINVAL, "await: tensors %llu to %llu, and x has %zu",
                         (unsigned long long)first, (unsigned long long)(first + count), tensors);
    if (result == 0 && s->caller.round.final > 0)
        result = sl_fail(error, SL_EINVAL,
                         "await: the round has tensors from number %zu on only; final of 0 comes "
                         "first",
                         s->caller.round.final);
    if (result == 0 && count > 0 && s->options.simulation != NULL)
        result = sl_session_finish_round(s, error);
    else if (result == 0 && count > 0)
        result = sl_session_wait_for(s, first, count, error);
    if (result != 0)
        return result;
    sl_session_leave_tensors(s, &at, first, count);
    if (has_all(s)) {
        result = sl_session_finish_round(s, error);
        s->caller.round = (sl_caller_round){0};
    }
    return result;
}
