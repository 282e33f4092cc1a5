/* rooms.c - memory that neighbours of this host read where it is: rooms of the agent's arena, in
 * which snapshots and the models that end shows lie, and homes of x, whose pages are a room's; see
 * state.h.
 *
 * There are three rooms, as in node/rooms.c: one is published while another is still read by who is
 * late, and the next model is left in the third.
 */
#include <stdlib.h>

#include "agent/lending.h"
#include "session/state.h"

_Static_assert((int)SL_WINDOW_ROOMS == (int)SL_NODE_ROOMS, "a window shows an agent's rooms");

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
    if (memory == NULL)
        return;
    s->rooms = (sl_session_rooms){.arena = sl_arena_hold(arena),
                                  .memory = memory,
                                  .stride = stride,
                                  .free = (1U << SL_NODE_ROOMS) - 1,
                                  .next = SL_WINDOW_OWN};
    sl_window *window = s->options.home != NULL ? s->options.home->window : NULL;
    if (window != NULL && sl_window_attach(window, arena, memory, stride * sizeof *memory))
        s->rooms.window = window;
    else if (window != NULL && s->options.log != NULL)
        s->options.log(s->options.context, "options.home: pages cannot be moved here (before Linux "
                                           "5.13, or another session has it); x is copied");
}

void sl_session_close_rooms(sl_session *s) {
    if (s->rooms.window != NULL)
        sl_window_detach(s->rooms.window);
    sl_arena_close(&s->rooms.arena);
    sl_session_home_close(&s->options.home);
}

void sl_session_hear_rooms(sl_session *s, unsigned free) {
    if (s->rooms.memory == NULL)
        return;
    s->rooms.free = free & ~bit_of(s->rooms.next);
    for (uint32_t i = 0; i < SL_NODE_ROOMS; i++)
        if (s->driver.lent == room_at(s, i))
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
        s->rooms.window != NULL ? sl_window_shows(s->rooms.window) : SL_WINDOW_OWN;
    const unsigned free = s->rooms.free & ~bit_of(shown);
    for (uint32_t i = 0; i < SL_NODE_ROOMS; i++)
        if (free & bit_of(i)) {
            s->rooms.free &= ~bit_of(i);
            return room_at(s, i);
        }
    return NULL;
}
