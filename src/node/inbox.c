/* inbox.c - see inbox.h. */
#include "node/inbox.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_ROOM = 8 };

/* The entries in order from 0. */
static int resize_queue(sl_queue *q, uint32_t room) {
    sl_arrival *entries = malloc(room * sizeof *entries);
    if (entries == NULL)
        return SL_ENOMEM;
    for (uint32_t i = 0; i < q->count; i++)
        entries[i] = q->entries[(q->head + i) % q->room];
    free(q->entries);
    q->entries = entries;
    q->room = room;
    q->head = 0;
    return 0;
}

static int resize_released(sl_inbox *inbox, size_t room) {
    void **released = realloc(inbox->released, room * sizeof *released);
    if (released == NULL)
        return SL_ENOMEM;
    inbox->released = released;
    inbox->released_room = room;
    return 0;
}

int sl_inbox_open(sl_inbox *inbox, uint32_t peer_count, uint32_t credit, size_t staged_max) {
    inbox->peer_count = peer_count;
    inbox->credit = credit;
    inbox->queues = calloc(peer_count + 1u, sizeof *inbox->queues);
    int result = inbox->queues == NULL ? SL_ENOMEM : 0;
    const uint32_t room = credit != 0 ? credit : FIRST_ROOM;
    for (uint32_t i = 0; i < peer_count && result == 0; i++)
        result = resize_queue(&inbox->queues[i], room);
    if (result == 0)
        result = resize_released(inbox, inbox->released_count + (size_t)peer_count * room +
                                            staged_max + 1);
    return result;
}

void sl_inbox_end(sl_inbox *inbox) {
    for (uint32_t i = 0; inbox->queues != NULL && i < inbox->peer_count; i++) {
        sl_inbox_empty(inbox, &inbox->queues[i]);
        free(inbox->queues[i].entries);
    }
    free(inbox->queues);
    inbox->queues = NULL;
}

void sl_inbox_close(sl_inbox *inbox) {
    sl_inbox_end(inbox);
    free(inbox->released);
    *inbox = (sl_inbox){0};
}

bool sl_inbox_is_full(const sl_inbox *inbox, const sl_queue *queue) {
    return inbox->credit != 0 && queue->count == inbox->credit;
}

int sl_inbox_put(sl_inbox *inbox, sl_queue *q, const sl_arrival *arrival) {
    int result = q->count == q->room ? resize_queue(q, 2 * q->room) : 0;
    if (result == 0 && inbox->held + 1 == inbox->released_room)
        result = resize_released(inbox, 2 * inbox->released_room);
    if (result != 0)
        return result;
    q->entries[(q->head + q->count++) % q->room] = *arrival;
    inbox->held++;
    return 0;
}

const sl_arrival *sl_queue_at(const sl_queue *q, uint32_t i) {
    return i < q->count ? &q->entries[(q->head + i) % q->room] : NULL;
}

const sl_arrival *sl_queue_first(const sl_queue *q) {
    return sl_queue_at(q, 0);
}

uint32_t sl_queue_of_step(const sl_queue *q, uint64_t exchange, uint32_t step) {
    uint32_t parts = 0;
    const sl_arrival *a;
    for (uint32_t i = 0;
         (a = sl_queue_at(q, i)) != NULL && a->exchange == exchange && a->step == step; i++)
        parts += a->parts;
    return parts;
}

void sl_inbox_refuse(sl_inbox *inbox, void *token) {
    assert(inbox->released_count < inbox->released_room);
    inbox->released[inbox->released_count++] = token;
}

void sl_inbox_release(sl_inbox *inbox, void *token) {
    inbox->held--;
    sl_inbox_refuse(inbox, token);
}

void sl_inbox_empty(sl_inbox *inbox, sl_queue *q) {
    for (; q->count > 0; sl_queue_drop_first(q))
        sl_inbox_release(inbox, sl_queue_first(q)->token);
}

void sl_queue_drop_first(sl_queue *q) {
    q->head = (q->head + 1) % q->room;
    q->count--;
}

void sl_queue_shorten_first(sl_queue *q, uint32_t parts, size_t bytes) {
    sl_arrival *first = &q->entries[q->head];
    assert(parts < first->parts);
    first->part += parts;
    first->parts -= parts;
    first->payload =
        (sl_payload){(const char *)first->payload.data + bytes, first->payload.bytes - bytes};
}
