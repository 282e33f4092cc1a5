/* pieces.c - parameters that do not lie one behind the other; see starling/session.h. */
#include <stdio.h>

#include "session/state.h"

enum { NAME_BYTES = 64 };

static size_t tensor_count(const sl_session *s) {
    return s->layout.ends != NULL ? s->layout.count : 1;
}

static int check_pieces(sl_session *s, const char *call, float *const *tensors, sl_error *error) {
    int result = sl_session_check_call(s, call, error);
    if (result == 0 && s->in_round)
        result = sl_fail(error, SL_EINVAL, "%s: a round is under way, which has x; end comes first",
                         call);
    if (result == 0 && tensors == NULL)
        result = sl_fail(error, SL_EINVAL, "%s: tensors is NULL", call);
    for (size_t i = 0; result == 0 && i < tensor_count(s); i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "tensor %zu of %zu", i, tensor_count(s));
        result = sl_session_check_floats(s, call, name, tensors[i], error);
    }
    return result;
}

/* Copies all tensors into what is gathered, or back. */
static void copy_pieces(sl_session *s, float *const *tensors, bool back) {
    for (size_t i = 0, from = 0; i < tensor_count(s); i++) {
        const size_t end = s->layout.ends != NULL ? s->layout.ends[i] : s->layout.dimension,
                     bytes = (end - from) * sizeof(float);
        float *place = s->gathered + from;
        if (back)
            sl_session_copy(s, tensors[i], place, bytes);
        else
            sl_session_copy(s, place, tensors[i], bytes);
        from = end;
    }
    sl_session_give_x(s);
}

int sl_session_gather(sl_session *s, float *const *tensors, float **x, sl_error *error) {
    int result = check_pieces(s, "gather", tensors, error);
    if (result == 0)
        result = sl_session_open_gathered(s, error);
    if (result != 0)
        return result;
    copy_pieces(s, tensors, false);
    *x = s->gathered;
    return 0;
}

int sl_session_scatter(sl_session *s, float *const *tensors, sl_error *error) {
    int result = check_pieces(s, "scatter", tensors, error);
    if (result == 0 && s->gathered == NULL)
        result = sl_fail(error, SL_EINVAL, "scatter: gather comes first");
    if (result == 0)
        copy_pieces(s, tensors, true);
    return result;
}
