/* rooms.c - what is published stands where neighbours of this host read it: a snapshot in a room of
 * the agent's arena, or x itself, in a home whose pages are a room's; see state.h.
 *
 *   caller, begin: the home is frozen, and its room is lent. Neighbours and the caller read it.
 *   driver, hand: the mixed model is left in a room that nobody reads, beside the gradient.
 *   caller, end: the home shows that room. The one before is free when all have read it.
 *
 * There are three, as a neighbour may read the one before while the next one is lent; see
 * node/rooms.c. Where none is free, the home has its own pages, which are sent as any memory is.
 */
#include <stdlib.h>

#include "agent/lending.h"
#include "session/state.h"

_Static_assert((int)SL_WINDOW_ROOMS == (int)SL_NODE_ROOMS, "a window shows an agent's rooms");

struct sl_session_home {
    sl_window *window;
    uint64_t dimension;
    uint32_t holders; /* the caller, and sessions; by atomic operations */
};

int sl_session_home_open(sl_session_home **out, uint64_t dimension, float **x, sl_error *error) {
    if (out == NULL || x == NULL || dimension == 0 || dimension > SIZE_MAX / 64)
        return sl_fail(error, SL_EINVAL, "home: %s",
                       out == NULL || x == NULL ? "a place for what comes is NULL"
                                                : "dimension is not that of an x");
    sl_session_home *home = malloc(sizeof *home);
    int result = home == NULL ? sl_fail(error, SL_ENOMEM, "home: out of memory")
                              : sl_window_open(&home->window, dimension * sizeof **x, error);
    if (result != 0) {
        free(home);
        return result;
    }
    home->dimension = dimension;
    home->holders = 1;
    *x = sl_window_memory(home->window);
    *out = home;
    return 0;
}

void sl_session_home_close(sl_session_home **at) {
    sl_session_home *home = *at;
    *at = NULL;
    if (home == NULL || __atomic_sub_fetch(&home->holders, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    sl_window_close(&home->window);
    free(home);
}

void sl_session_hold_home(sl_session *s) {
    if (s->options.home != NULL)
        __atomic_add_fetch(&s->options.home->holders, 1, __ATOMIC_RELAXED);
}

int sl_session_check_options_home(const sl_session_options *o, uint64_t dimension,
                                  sl_error *error) {
    return o->home == NULL || o->home->dimension == dimension
               ? 0
               : sl_fail(error, SL_EINVAL, "options.home: holds %llu numbers, and x has %llu",
                         (unsigned long long)o->home->dimension, (unsigned long long)dimension);
}

/* ---- the driver's threads ---- */

static float *room_at(const sl_session *s, uint32_t number) {
    return s->rooms.memory + number * s->rooms.stride;
}

static unsigned bit_of(uint32_t number) {
    return number < SL_NODE_ROOMS ? 1U << number : 0;
}

void sl_session_open_rooms(sl_session *s, const sl_agent *agent) {
    sl_arena *arena;
    size_t stride;
    float *memory = sl_agent_rooms(agent, &stride, &arena);
    s->rooms = (sl_session_rooms){.next = SL_WINDOW_OWN};
    if (memory == NULL || !sl_session_lends(s))
        return;
    s->rooms = (sl_session_rooms){.arena = sl_arena_hold(arena),
                                  .memory = memory,
                                  .stride = stride,
                                  .free = (1U << SL_NODE_ROOMS) - 1,
                                  .next = SL_WINDOW_OWN};
    if (s->options.home != NULL &&
        !sl_window_attach(s->options.home->window, arena, memory, stride * sizeof *memory) &&
        s->options.log != NULL)
        s->options.log(s->options.context, "options.home: pages cannot be moved here (before Linux "
                                           "5.13, or another session has it); x is copied");
}

void sl_session_close_rooms(sl_session *s) {
    if (s->rooms.arena != NULL && s->options.home != NULL)
        sl_window_detach(s->options.home->window);
    sl_arena_close(&s->rooms.arena);
    sl_session_home_close(&s->options.home);
}

void sl_session_hear_rooms(sl_session *s, unsigned free) {
    const float *lent = s->driver.lent;
    s->rooms.free = free & ~bit_of(s->rooms.next);
    for (uint32_t i = 0; i < SL_NODE_ROOMS && s->rooms.memory != NULL; i++)
        if (lent == room_at(s, i))
            s->rooms.free &= ~bit_of(i);
}

void sl_session_leave_next(sl_session *s, const float *model) {
    if (!s->shared.asked.moves)
        return;
    s->shared.asked.moves = false;
    float *room = sl_session_take_room(s);
    if (room == NULL)
        return;
    s->memory.vec->copy(room, model, sl_session_bytes(s));
    s->rooms.next = (uint32_t)((size_t)(room - s->rooms.memory) / s->rooms.stride);
}

/* ---- in their turns ---- */

float *sl_session_take_room(sl_session *s) {
    const uint32_t shown =
        s->options.home != NULL ? sl_window_shows(s->options.home->window) : SL_WINDOW_OWN;
    const unsigned free = s->rooms.memory != NULL ? s->rooms.free & ~bit_of(shown) : 0;
    for (uint32_t i = 0; i < SL_NODE_ROOMS; i++)
        if (free & bit_of(i)) {
            s->rooms.free &= ~bit_of(i);
            return room_at(s, i);
        }
    return NULL;
}

/* ---- the caller's thread ---- */

/* Its own pages become a room's, by a copy. */
static int move_in(sl_session *s, const sl_where *x, sl_error *error) {
    float *room = sl_session_take_room(s);
    if (room == NULL)
        return 0;
    sl_session_copy_x(s, x, room);
    return sl_window_show(s->options.home->window,
                          (uint32_t)((size_t)(room - s->rooms.memory) / s->rooms.stride), error);
}

int sl_session_lend_home(sl_session *s, const sl_where *x, bool freezes, const float **given,
                         sl_error *error) {
    sl_window *w =
        s->rooms.memory != NULL && s->options.home != NULL ? s->options.home->window : NULL;
    *given = NULL;
    if (w == NULL || !sl_window_is_attached(w) || x->whole != sl_window_memory(w))
        return 0;
    int result = sl_window_shows(w) == SL_WINDOW_OWN ? move_in(s, x, error) : 0;
    const uint32_t shown = sl_window_shows(w);
    if (result == 0 && shown != SL_WINDOW_OWN && freezes)
        result = sl_window_freeze(w, error);
    if (result == 0 && shown != SL_WINDOW_OWN)
        *given = room_at(s, shown);
    s->caller.round.at_home = *given != NULL;
    return result;
}

int sl_session_check_home(sl_session *s, sl_error *error) {
    const size_t at = sl_window_find_change(s->options.home->window) / sizeof(float);
    return at >= s->layout.dimension ? 0 : sl_session_fail_changed(s, at, error);
}

int sl_session_take_next(sl_session *s, const sl_where *x, sl_error *error) {
    const uint32_t next = s->rooms.next;
    sl_error why;
    s->rooms.next = SL_WINDOW_OWN;
    if (sl_window_show(s->options.home->window, next, &why) != 0)
        return sl_session_end_with(s, &why, error);
    if (next == SL_WINDOW_OWN)
        sl_session_leave_x(s, x, false);
    return 0;
}
