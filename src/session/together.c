/* together.c - what all peers of a session call at the same place: averages and sums; see
 * starling/session.h.
 */
#include <stdlib.h>
#include <string.h>

#include "session/state.h"

int sl_session_fail_void(sl_session *s, const char *call, sl_error *error) {
    return sl_fail_node(error, SL_EVOID, s->rank, sl_session_round(s),
                        "%s: a peer was lost while it was made; the session goes on", call);
}

int sl_session_average(sl_session *s, const float *x, float *average, double *distance,
                       sl_error *error) {
    sl_where at;
    const float *given;
    int result = sl_session_check_round(s, "average", false, error);
    if (result == 0)
        result = sl_session_locate(s, "average", x, &at, error);
    if (result == 0)
        result = sl_session_take_x(s, "average", &at, false, &given, error);
    if (result != 0)
        return result;
    float *vector = average != NULL ? average : malloc(sl_session_bytes(s));
    if (vector == NULL)
        return sl_session_run_short(s, "average", sl_session_bytes(s), error);
    s->shared.asked = (sl_call_asked){.given = given, .average = vector};
    sl_session_give_turn(s);
    sl_session_wish(s, WISH_AVERAGE);
    result = sl_session_wait(s, error);
    if (result == 0 && distance != NULL)
        *distance = s->shared.asked.distance;
    if (result == 0 && s->shared.asked.is_void)
        result = sl_session_fail_void(s, "average", error);
    if (average == NULL)
        free(vector);
    return result;
}

static int add_up(sl_session *s, sl_error *error) {
    sl_session_wish(s, WISH_SUM);
    int result = sl_session_wait(s, error);
    return result == 0 && s->shared.asked.is_void ? sl_session_fail_void(s, "sum", error) : result;
}

int sl_session_sum(sl_session *s, double *values, uint64_t count, uint64_t *givers,
                   sl_error *error) {
    int result = sl_session_check_round(s, "sum", false, error);
    if (result == 0 && (values == NULL || count == 0 || count > SL_SESSION_SUM_MAX))
        result = sl_fail(error, SL_EINVAL, "sum: %s",
                         values == NULL ? "values is NULL" : "count must be from 1 to 2^40");
    if (result != 0)
        return result;
    const size_t bytes = count * sizeof *values;
    double *numbers = malloc(bytes);
    if (numbers == NULL)
        return sl_session_run_short(s, "sum", bytes, error);
    memcpy(numbers, values, bytes);
    s->shared.asked = (sl_call_asked){.numbers = numbers, .number_count = count};
    result = add_up(s, error);
    if (result == 0)
        memcpy(values, numbers, bytes);
    if (result == 0 && givers != NULL)
        *givers = s->shared.asked.givers;
    free(numbers);
    s->shared.asked = (sl_call_asked){0};
    return result;
}
