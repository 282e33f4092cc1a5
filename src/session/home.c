/* home.c - x at home: its pages are published, and others take their place; see rooms.c.
 *
 *   caller, begin: the home is frozen, and its room is lent. Neighbours and the caller read it.
 *   driver, hand: the mixed model is left in a room that nobody reads, beside the gradient.
 *   caller, end: the home shows that room. The one before is free when all have read it.
 *
 * Where no room is free it shows its own pages, which are sent as any memory is.
 */
#include "session/state.h"

/* Its own pages become a room's, by a copy. */
static int move_in(sl_session *s, const sl_where *x, sl_error *error) {
    float *room = sl_session_take_room(s);
    if (room == NULL)
        return 0;
    sl_session_copy_x(s, x, room);
    return sl_window_show(s->rooms.window,
                          (uint32_t)((size_t)(room - s->rooms.memory) / s->rooms.stride), error);
}

int sl_session_lend_home(sl_session *s, const sl_where *x, bool freezes, const float **given,
                         sl_error *error) {
    sl_window *w = s->rooms.window;
    *given = NULL;
    if (w == NULL || x->whole != sl_window_memory(w))
        return 0;
    int result = sl_window_shows(w) == SL_WINDOW_OWN ? move_in(s, x, error) : 0;
    const uint32_t shown = sl_window_shows(w);
    if (result == 0 && shown != SL_WINDOW_OWN && freezes)
        result = sl_window_freeze(w, error);
    if (result == 0 && shown != SL_WINDOW_OWN)
        *given = s->rooms.memory + shown * s->rooms.stride;
    s->caller.round.at_home = *given != NULL;
    return result;
}

int sl_session_check_home(sl_session *s, sl_error *error) {
    const size_t at = sl_window_find_change(s->rooms.window) / sizeof(float);
    return at >= s->layout.dimension ? 0 : sl_session_fail_changed(s, at, error);
}

int sl_session_take_next(sl_session *s, const sl_where *x, sl_error *error) {
    const uint32_t next = s->rooms.next;
    sl_error why;
    s->rooms.next = SL_WINDOW_OWN;
    if (sl_window_show(s->rooms.window, next, &why) != 0)
        return sl_session_end_with(s, &why, error);
    if (next == SL_WINDOW_OWN)
        sl_session_leave_x(s, x, false);
    return 0;
}
