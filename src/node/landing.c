/* landing.c - see landing.h. */
#include "node/landing.h"

#include <stdlib.h>

enum { LOADS_MIN = 2, LOADS_MAX = 8 };
static const size_t bytes_wanted = 4 << 20; /* on the device, of all loads */

static size_t choose_count(size_t load_bytes) {
    const size_t fit = bytes_wanted / load_bytes;
    return fit < LOADS_MIN ? LOADS_MIN : fit > LOADS_MAX ? LOADS_MAX : fit;
}

/* What memory was before it was allocated must not be copied over later. */
static bool open_load(sl_landing *l, sl_load *load) {
    load->memory = l->direct ? NULL : l->vec->allocate(l->width * (l->stride / sizeof(float)));
    load->copied = l->vec->flight->mark_open();
    load->used = l->vec->flight->mark_open();
    load->tokens = calloc(l->width, sizeof *load->tokens);
    if ((load->memory == NULL && !l->direct) || load->copied == NULL || load->used == NULL ||
        load->tokens == NULL)
        return false;
    l->vec->flight->mark_set(load->used);
    return true;
}

int sl_landing_open(sl_landing *l, const sl_vec_ops *vec, size_t width, size_t bytes, int bell,
                    bool direct) {
    *l = (sl_landing){0};
    if (vec->flight == NULL || width == 0)
        return 0;
    *l = (sl_landing){.vec = vec,
                      .width = width,
                      .bell = bell,
                      .direct = direct,
                      .stride =
                          (bytes + SL_VEC_ALIGNMENT - 1) / SL_VEC_ALIGNMENT * SL_VEC_ALIGNMENT};
    l->count = choose_count(width * l->stride);
    l->loads = calloc(l->count, sizeof *l->loads);
    bool complete = l->loads != NULL;
    for (size_t i = 0; i < l->count && complete; i++)
        complete = open_load(l, &l->loads[i]);
    return complete ? 0 : SL_ENOMEM;
}

void sl_landing_close(sl_landing *l) {
    for (size_t i = 0; l->loads != NULL && i < l->count; i++) {
        sl_load *load = &l->loads[i];
        l->vec->flight->mark_close(load->copied);
        l->vec->flight->mark_close(load->used);
        l->vec->release(load->memory);
        free(load->tokens);
    }
    free(l->loads);
}

static sl_load *load_at(const sl_landing *l, size_t number) {
    return &l->loads[number % l->count];
}

/* Behind it, nobody reads the load's receive buffers any more. */
static sl_mark *mark_of_buffers(const sl_landing *l, const sl_load *load) {
    return l->direct ? load->used : load->copied;
}

bool sl_landing_has_room(const sl_landing *l) {
    return l->vec == NULL || l->begun - l->over < l->count;
}

sl_payload sl_landing_bring(sl_landing *l, sl_payload payload, void *token) {
    sl_load *load = load_at(l, l->begun);
    const size_t at = load->parts++;
    load->tokens[at] = token;
    load->waiting = load->parts;
    if (l->direct)
        return payload;
    float *to = load->memory + at * (l->stride / sizeof(float));
    l->vec->flight->begin_copy_in(to, payload.data, payload.bytes, load->used, load->copied);
    return (sl_payload){to, payload.bytes};
}

void sl_landing_follow(sl_landing *l) {
    if (l->vec != NULL)
        l->vec->flight->mark_follow(load_at(l, l->begun)->copied);
}

void sl_landing_leave(sl_landing *l) {
    if (l->vec == NULL)
        return;
    sl_load *load = load_at(l, l->begun++);
    l->vec->flight->mark_set(load->used);
    if (l->bell == 0)
        l->vec->flight->mark_wait(mark_of_buffers(l, load));
    load->parts = 0;
}

void *sl_landing_token(sl_landing *l) {
    for (; l->over < l->begun; l->over++) {
        sl_load *load = load_at(l, l->over);
        if (!l->vec->flight->mark_passed(mark_of_buffers(l, load), l->bell))
            return NULL;
        if (load->waiting > 0)
            return load->tokens[--load->waiting];
    }
    return NULL;
}
