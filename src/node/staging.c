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
    const sl_vec_ops *vec = s->settings->vec;
    const bool direct = s->settings->direct;
    slot->memory = direct ? NULL : (char *)vec->allocate(s->room / sizeof(float));
    slot->copied = vec->async->event_open();
    slot->used = vec->async->event_open();
    slot->tokens = calloc(s->parts_max, sizeof *slot->tokens);
    if ((slot->memory == NULL && !direct) || slot->copied == NULL || slot->used == NULL ||
        slot->tokens == NULL)
        return false;
    vec->async->event_record(slot->used);
    return true;
}

int sl_staging_open(sl_staging *s, const sl_node_settings *settings, size_t parts,
                    size_t part_bytes) {
    *s = (sl_staging){0};
    if (settings->vec->async == NULL || parts == 0)
        return 0;
    s->settings = settings;
    s->parts_max = parts;
    s->room = parts * sl_round_up(part_bytes, SL_VEC_ALIGNMENT);
    s->count = choose_count(s->room);
    s->slots = calloc(s->count, sizeof *s->slots);
    s->copies = calloc(s->parts_max, sizeof *s->copies);
    bool complete = s->slots != NULL && s->copies != NULL;
    for (size_t i = 0; i < s->count && complete; i++)
        complete = open_slot(s, &s->slots[i]);
    return complete ? 0 : SL_ENOMEM;
}

void sl_staging_close(sl_staging *s) {
    for (size_t i = 0; s->slots != NULL && i < s->count; i++) {
        sl_staging_slot *slot = &s->slots[i];
        const sl_vec_ops *vec = s->settings->vec;
        vec->async->event_close(slot->copied);
        vec->async->event_close(slot->used);
        vec->release((float *)slot->memory);
        free(slot->tokens);
    }
    free(s->slots);
    free(s->copies);
}

static sl_staging_slot *slot_at(const sl_staging *s, size_t number) {
    return &s->slots[number % s->count];
}

/* After it, nobody reads the slot's receive buffers any more. */
static sl_vec_event *event_of_buffers(const sl_staging_slot *slot) {
    return slot->stays ? slot->used : slot->copied;
}

size_t sl_staging_tokens_max(const sl_staging *s) {
    return s->count * s->parts_max;
}

bool sl_staging_has_room(const sl_staging *s) {
    return s->settings == NULL || s->begun - s->over < s->count;
}

/* Adds the payload as the next row; its second row says how far apart all are. Rows are as long as
 * the longest: what lies behind a shorter one's bytes is of its buffer, too, and nobody reads the
 * copy. False: it is no row of these, and another copy. */
static bool extend(sl_vec_rows *copy, sl_payload payload) {
    const ptrdiff_t gap = (const char *)payload.data - (const char *)copy->from;
    const size_t step = copy->rows > 1 ? copy->from_step : (size_t)gap,
                 longest = payload.bytes > copy->bytes ? payload.bytes : copy->bytes;
    if (gap < (ptrdiff_t)longest || step < longest || (size_t)gap != copy->rows * step)
        return false;
    copy->bytes = longest;
    copy->from_step = step;
    copy->rows++;
    return true;
}

static void add_copy(sl_staging *s, void *to, sl_payload payload, size_t behind) {
    if (behind > 0 && s->settings->receive_rows && extend(&s->copies[s->copy_count - 1], payload)) {
        s->copies[s->copy_count - 1].to_step = behind;
        return;
    }
    s->copies[s->copy_count++] = (sl_vec_rows){.to = to,
                                               .from = payload.data,
                                               .bytes = payload.bytes,
                                               .rows = 1,
                                               .to_step = payload.bytes};
}

static void take_token(sl_staging_slot *slot, void *token) {
    if (token != NULL)
        slot->tokens[slot->parts++] = token;
}

sl_payload sl_staging_bring(sl_staging *s, sl_payload payload, void *token, size_t behind) {
    sl_staging_slot *slot = slot_at(s, s->begun);
    take_token(slot, token);
    s->last = behind > 0 ? s->last + behind : sl_round_up(s->filled, SL_VEC_ALIGNMENT);
    s->filled = s->last + payload.bytes;
    void *to = slot->memory + s->last;
    add_copy(s, to, payload, behind);
    return (sl_payload){to, payload.bytes};
}

sl_payload sl_staging_keep(sl_staging *s, sl_payload payload, void *token) {
    sl_staging_slot *slot = slot_at(s, s->begun);
    take_token(slot, token);
    slot->stays = true;
    return payload;
}

void sl_staging_follow(sl_staging *s) {
    if (s->settings == NULL)
        return;
    const sl_async_ops *async = s->settings->vec->async;
    const sl_staging_slot *slot = slot_at(s, s->begun);
    if (s->copy_count == 0)
        return;
    async->begin_copies_in(s->copies, s->copy_count, slot->used, slot->copied);
    async->event_follow(slot->copied);
}

void sl_staging_leave(sl_staging *s) {
    if (s->settings == NULL)
        return;
    const sl_async_ops *async = s->settings->vec->async;
    sl_staging_slot *slot = slot_at(s, s->begun++);
    async->event_record(slot->used);
    if (s->settings->notify_fd == 0)
        async->event_wait(event_of_buffers(slot));
    s->copy_count = s->filled = 0;
}

void *sl_staging_token(sl_staging *s) {
    for (; s->over < s->begun; s->over++) {
        sl_staging_slot *slot = slot_at(s, s->over);
        if (slot->given == 0 && !s->settings->vec->async->event_passed(event_of_buffers(slot), 0))
            return NULL;
        if (slot->given < slot->parts)
            return slot->tokens[slot->given++];
        slot->parts = slot->given = 0;
        slot->stays = false;
    }
    return NULL;
}

bool sl_staging_before_sleep(sl_staging *s, bool signals) {
    return s->over < s->begun &&
           s->settings->vec->async->event_passed(event_of_buffers(slot_at(s, s->over)),
                                                 signals ? s->settings->notify_fd : 0);
}
