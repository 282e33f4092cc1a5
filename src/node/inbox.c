/* inbox.c - see inbox.h. */
#include "node/inbox.h"

#include <stdlib.h>

enum { FIRST_ROOM = 8 };

int sl_inbox_open(sl_inbox *inbox, const uint32_t *peers, uint32_t peer_count, uint32_t credit) {
    *inbox = (sl_inbox){.peers = peers, .peer_count = peer_count, .credit = credit};
    inbox->queues = calloc(peer_count + 1u, sizeof *inbox->queues);
    return inbox->queues != NULL ? 0 : SL_ENOMEM;
}

void sl_inbox_close(sl_inbox *inbox) {
    for (uint32_t i = 0; inbox->queues != NULL && i < inbox->peer_count; i++)
        free(inbox->queues[i].entries);
    free(inbox->queues);
    free(inbox->released);
}

uint32_t sl_inbox_find(const sl_inbox *inbox, uint32_t peer) {
    uint32_t low = 0, high = inbox->peer_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (inbox->peers[middle] < peer)
            low = middle + 1;
        else
            high = middle;
    }
    return low < inbox->peer_count && inbox->peers[low] == peer ? low : inbox->peer_count;
}

bool sl_queue_is_full(const sl_inbox *inbox, const sl_queue *queue) {
    return inbox->credit != 0 && queue->count == inbox->credit;
}

/* Twice the room, the entries in order from 0. */
static int grow(sl_queue *q) {
    uint32_t room = q->room ? 2 * q->room : FIRST_ROOM;
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

int sl_queue_put(sl_queue *q, const sl_arrival *arrival) {
    if (q->count == q->room && grow(q) != 0)
        return SL_ENOMEM;
    q->entries[(q->head + q->count++) % q->room] = *arrival;
    return 0;
}

const sl_arrival *sl_queue_first(const sl_queue *q) {
    return q->count > 0 ? &q->entries[q->head] : NULL;
}

const sl_arrival *sl_queue_last(const sl_queue *q) {
    return q->count > 0 ? &q->entries[(q->head + q->count - 1) % q->room] : NULL;
}

int sl_inbox_release(sl_inbox *inbox, void *token) {
    if (inbox->released_count == inbox->released_room) {
        size_t room = inbox->released_room ? 2 * inbox->released_room : FIRST_ROOM;
        void **released = realloc(inbox->released, room * sizeof *released);
        if (released == NULL)
            return SL_ENOMEM;
        inbox->released = released;
        inbox->released_room = room;
    }
    inbox->released[inbox->released_count++] = token;
    return 0;
}

void sl_queue_drop_first(sl_queue *q) {
    q->head = (q->head + 1) % q->room;
    q->count--;
}
