/* inbox.h - parts that have come and are not combined yet: a queue for each peer, in the order in
 * which it sent them; and the tokens that go back to the driver.
 *
 * With a credit, all memory is allocated when the inbox is opened. Without one (the simulator),
 * queues grow, and sl_inbox_put may fail.
 */
#ifndef SL_INBOX_H
#define SL_INBOX_H

#include "starling/compressor.h"

typedef struct sl_arrival {
    uint64_t exchange;
    uint32_t step, part;
    double scalar;
    sl_payload payload;
    bool silent; /* the whole message */
    bool on_device;
    uint32_t parts; /* from this one on, one behind the other */
    void *token;
} sl_arrival;

typedef struct sl_queue {
    sl_arrival *entries;
    uint32_t head, count, room;
} sl_queue;

typedef struct sl_inbox {
    uint32_t peer_count;
    sl_queue *queues; /* (peer_count) */
    uint32_t credit;  /* entries that a queue may hold; 0: any number */
    size_t held;      /* tokens that were put and have not gone back */
    void **released;  /* tokens that go back; there is room for all that are held, and one more */
    size_t released_count, released_room;
} sl_inbox;

/* Of zeros, or after sl_inbox_end, whose tokens stay among those that go back. staged_max: tokens
 * that may be held beside those in the queues. SL_ENOMEM. */
int sl_inbox_open(sl_inbox *inbox, uint32_t peer_count, uint32_t credit, size_t staged_max);
/* Ends the queues. What is in them goes back. */
void sl_inbox_end(sl_inbox *inbox);
void sl_inbox_close(sl_inbox *inbox);
bool sl_inbox_is_full(const sl_inbox *inbox, const sl_queue *queue);
/* SL_ENOMEM, and then nothing has changed. */
int sl_inbox_put(sl_inbox *inbox, sl_queue *queue, const sl_arrival *arrival);
/* A token that was put goes back. */
void sl_inbox_release(sl_inbox *inbox, void *token);
/* A token that was never put goes back, one a step at most. */
void sl_inbox_refuse(sl_inbox *inbox, void *token);
/* Releases all that is in the queue. */
void sl_inbox_empty(sl_inbox *inbox, sl_queue *queue);
const sl_arrival *sl_queue_at(const sl_queue *queue, uint32_t i); /* NULL: so many are not here */
const sl_arrival *sl_queue_first(const sl_queue *queue);
/* How many parts are of this step: they come first. */
uint32_t sl_queue_of_step(const sl_queue *queue, uint64_t exchange, uint32_t step);
/* Its token stays held. */
void sl_queue_drop_first(sl_queue *queue);
/* Of what is first, so many parts, of so many bytes, and not all. */
void sl_queue_shorten_first(sl_queue *queue, uint32_t parts, size_t bytes);

#endif
