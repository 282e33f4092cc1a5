/* staging.c - see staging.h. */
#include "node/staging.h"

#include <stdlib.h>

enum { SLOTS_MIN = 2, SLOTS_MAX = 8 };
static const size_t bytes_wanted = 4 << 20; /* on the device, of all slots */

static size_t choose_count(size_t slot_bytes) {
    const size_t fit = bytes_wanted / slot_bytes;
    return fit < SLOTS_MIN ? SLOTS_MIN : fit > SLOTS_MAX ? SLOTS_MAX : fit;
}

/* What memory was before it was allocated must not be copied over later. */
static bool open_slot(sl_staging *l, sl_staging_slot *slot) {
    slot->memory = l->direct ? NULL : l->vec->allocate(l->width * (l->stride / sizeof(float)));
    slot->copied = l->vec->async->event_open();
    slot->used = l->vec->async->event_open();
    slot->tokens = calloc(l->width, sizeof *slot->tokens);
    if ((slot->memory == NULL && !l->direct) || slot->copied == NULL || slot->used == NULL ||
        slot->tokens == NULL)
        return false;
    l->vec->async->event_record(slot->used);
    return true;
}

int sl_staging_open(sl_staging *l, const sl_vec_ops *vec, size_t width, size_t bytes, int notify_fd,
                    bool direct) {
    *l = (sl_staging){0};
    if (vec->async == NULL || width == 0)
        return 0;
    *l = (sl_staging){.vec = vec,
                      .width = width,
                      .notify_fd = notify_fd,
                      .direct = direct,
                      .stride =
                          (bytes + SL_VEC_ALIGNMENT - 1) / SL_VEC_ALIGNMENT * SL_VEC_ALIGNMENT};
    l->count = choose_count(width * l->stride);
    l->slots = calloc(l->count, sizeof *l->slots);
    bool complete = l->slots != NULL;
    for (size_t i = 0; i < l->count && complete; i++)
        complete = open_slot(l, &l->slots[i]);
    return complete ? 0 : SL_ENOMEM;
}

void sl_staging_close(sl_staging *l) {
    for (size_t i = 0; l->slots != NULL && i < l->count; i++) {
        sl_staging_slot *slot = &l->slots[i];
        l->vec->async->event_close(slot->copied);
        l->vec->async->event_close(slot->used);
        l->vec->release(slot->memory);
        free(slot->tokens);
    }
    free(l->slots);
}

static sl_staging_slot *slot_at(const sl_staging *l, size_t number) {
    return &l->slots[number % l->count];
}

/* Behind it, nobody reads the slot's receive buffers any more. */
static sl_vec_event *event_of_buffers(const sl_staging *l, const sl_staging_slot *slot) {
    return l->direct ? slot->used : slot->copied;
}

bool sl_staging_has_room(const sl_staging *l) {
    return l->vec == NULL || l->begun - l->over < l->count;
}

sl_payload sl_staging_bring(sl_staging *l, sl_payload payload, void *token) {
    sl_staging_slot *slot = slot_at(l, l->begun);
    const size_t at = slot->parts++;
    slot->tokens[at] = token;
    slot->waiting = slot->parts;
    if (l->direct)
        return payload;
    float *to = slot->memory + at * (l->stride / sizeof(float));
    l->vec->async->begin_copy_in(to, payload.data, payload.bytes, slot->used, slot->copied);
    return (sl_payload){to, payload.bytes};
}

void sl_staging_follow(sl_staging *l) {
    if (l->vec != NULL)
        l->vec->async->event_follow(slot_at(l, l->begun)->copied);
}

void sl_staging_leave(sl_staging *l) {
    if (l->vec == NULL)
        return;
    sl_staging_slot *slot = slot_at(l, l->begun++);
    l->vec->async->event_record(slot->used);
    if (l->notify_fd == 0)
        l->vec->async->event_wait(event_of_buffers(l, slot));
    slot->parts = 0;
}

void *sl_staging_token(sl_staging *l) {
    for (; l->over < l->begun; l->over++) {
        sl_staging_slot *slot = slot_at(l, l->over);
        if (!l->vec->async->event_passed(event_of_buffers(l, slot), l->notify_fd))
            return NULL;
        if (slot->waiting > 0)
            return slot->tokens[--slot->waiting];
    }
    return NULL;
}
