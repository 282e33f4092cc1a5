/* staging.c - see staging.h. */
#include "node/staging.h"

#include <stdlib.h>

#include "base/round_up.h"

enum { SLOTS_MIN = 2, SLOTS_MAX = 8 };
static const size_t bytes_wanted = 4 << 20; /* on the device, of all slots */

static size_t choose_count(size_t slot_bytes) {
    const size_t fit = bytes_wanted / slot_bytes;
    return fit < SLOTS_MIN ? SLOTS_MIN : fit > SLOTS_MAX ? SLOTS_MAX : fit;
}

/* A copy into the new memory must come after its zeroing. */
static bool open_slot(sl_staging *s, sl_staging_slot *slot) {
    slot->memory = s->direct ? NULL : s->vec->allocate(s->width * (s->stride / sizeof(float)));
    slot->copied = s->vec->async->event_open();
    slot->used = s->vec->async->event_open();
    slot->tokens = calloc(s->width, sizeof *slot->tokens);
    if ((slot->memory == NULL && !s->direct) || slot->copied == NULL || slot->used == NULL ||
        slot->tokens == NULL)
        return false;
    s->vec->async->event_record(slot->used);
    return true;
}

int sl_staging_open(sl_staging *s, const sl_vec_ops *vec, size_t width, size_t bytes, int notify_fd,
                    bool direct) {
    *s = (sl_staging){0};
    if (vec->async == NULL || width == 0)
        return 0;
    *s = (sl_staging){.vec = vec,
                      .width = width,
                      .notify_fd = notify_fd,
                      .direct = direct,
                      .stride = sl_round_up(bytes, SL_VEC_ALIGNMENT)};
    s->count = choose_count(width * s->stride);
    s->slots = calloc(s->count, sizeof *s->slots);
    bool complete = s->slots != NULL;
    for (size_t i = 0; i < s->count && complete; i++)
        complete = open_slot(s, &s->slots[i]);
    return complete ? 0 : SL_ENOMEM;
}

void sl_staging_close(sl_staging *s) {
    for (size_t i = 0; s->slots != NULL && i < s->count; i++) {
        sl_staging_slot *slot = &s->slots[i];
        s->vec->async->event_close(slot->copied);
        s->vec->async->event_close(slot->used);
        s->vec->release(slot->memory);
        free(slot->tokens);
    }
    free(s->slots);
}

static sl_staging_slot *slot_at(const sl_staging *s, size_t number) {
    return &s->slots[number % s->count];
}

/* After it, nobody reads the slot's receive buffers any more. */
static sl_vec_event *event_of_buffers(const sl_staging *s, const sl_staging_slot *slot) {
    return s->direct ? slot->used : slot->copied;
}

size_t sl_staging_tokens_max(const sl_staging *s) {
    return s->count * s->width;
}

bool sl_staging_has_room(const sl_staging *s) {
    return s->vec == NULL || s->begun - s->over < s->count;
}

sl_payload sl_staging_bring(sl_staging *s, sl_payload payload, void *token) {
    sl_staging_slot *slot = slot_at(s, s->begun);
    const size_t at = slot->parts++;
    slot->tokens[at] = token;
    slot->waiting = slot->parts;
    if (s->direct)
        return payload;
    float *to = slot->memory + at * (s->stride / sizeof(float));
    s->vec->async->begin_copy_in(to, payload.data, payload.bytes, slot->used, slot->copied);
    return (sl_payload){to, payload.bytes};
}

void sl_staging_follow(sl_staging *s) {
    if (s->vec != NULL)
        s->vec->async->event_follow(slot_at(s, s->begun)->copied);
}

void sl_staging_leave(sl_staging *s) {
    if (s->vec == NULL)
        return;
    sl_staging_slot *slot = slot_at(s, s->begun++);
    s->vec->async->event_record(slot->used);
    if (s->notify_fd == 0)
        s->vec->async->event_wait(event_of_buffers(s, slot));
    slot->parts = 0;
}

void *sl_staging_token(sl_staging *s) {
    for (; s->over < s->begun; s->over++) {
        sl_staging_slot *slot = slot_at(s, s->over);
        if (!s->vec->async->event_passed(event_of_buffers(s, slot), 0))
            return NULL;
        while (slot->waiting > 0)
            if (slot->tokens[--slot->waiting] != NULL)
                return slot->tokens[slot->waiting];
    }
    return NULL;
}

bool sl_staging_before_sleep(sl_staging *s) {
    return s->over < s->begun &&
           s->vec->async->event_passed(event_of_buffers(s, slot_at(s, s->over)), s->notify_fd);
}
