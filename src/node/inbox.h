/* inbox.h - what came from each peer and is not combined yet: one queue a peer, in the order in
 * which it was sent. */
#ifndef SL_INBOX_H
#define SL_INBOX_H

#include "starling/compressor.h"

typedef struct sl_arrival {
    uint64_t exchange;
    uint32_t step, part;
    double scalar;
    sl_payload payload;
    void *token;
} sl_arrival;

typedef struct sl_queue {
    sl_arrival *entries;
    uint32_t head, count, room;
} sl_queue;

typedef struct sl_inbox {
    const uint32_t *peers; /* (peer_count) sorted; queues[i] is of peers[i] */
    uint32_t peer_count;
    sl_queue *queues;
    uint32_t credit; /* entries a queue may hold; 0: any number */
    void **released; /* tokens that may go */
    size_t released_count, released_room;
} sl_inbox;

int sl_inbox_open(sl_inbox *inbox, const uint32_t *peers, uint32_t peer_count, uint32_t credit);
void sl_inbox_close(sl_inbox *inbox);
/* Index of the peer; peer_count for a stranger. */
uint32_t sl_inbox_find(const sl_inbox *inbox, uint32_t peer);
bool sl_queue_is_full(const sl_inbox *inbox, const sl_queue *queue);
int sl_queue_put(sl_queue *queue, const sl_arrival *arrival);
const sl_arrival *sl_queue_first(const sl_queue *queue); /* NULL: empty */
const sl_arrival *sl_queue_last(const sl_queue *queue);
/* Its token is the caller's. */
void sl_queue_drop_first(sl_queue *queue);
int sl_inbox_release(sl_inbox *inbox, void *token);

#endif
