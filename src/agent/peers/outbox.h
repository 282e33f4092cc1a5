/* outbox.h - the message under way: each part is encoded once, right before its first send, while
 * it is in cache. */
#ifndef SL_OUTBOX_H
#define SL_OUTBOX_H

#include <stdbool.h>

#include "starling/node.h"
#include "starling/task.h"
#include "stream/copies.h"
#include "wire/frame.h"

typedef struct sl_outbox {
    sl_node *node;         /* borrowed */
    bool direct;           /* payloads stay in a device's memory */
    const sl_task *lender; /* vouches for each piece of what it lends; NULL: it need not */
    bool sums;     /* payloads have checksums: nothing else tells what was altered on the way */
    bool open;     /* there is a message, and parts of it may be sent */
    bool held;     /* of a node at its own times: receivers do not take the next part yet */
    bool recalled; /* but for those that have not begun to leave: the exchange is to be cut */
    sl_outbound message;
    uint32_t view; /* that the message is of */
    uint32_t encoded;
    uint32_t gone;        /* of these, how many the node may overwrite */
    sl_payload *payloads; /* (parts) */
    uint64_t *checksums;  /* (parts) checksums; 0: not taken */
    uint32_t *copies;     /* (parts) where each was put for neighbours that read it there */
    uint32_t room; /* place of the vector that the message stands in, and stays; SL_COPY_NONE: in
                      none */
    double encode_seconds; /* spent since the caller set it to 0 */
} sl_outbox;

int sl_outbox_open(sl_outbox *out, sl_node *node, bool direct, bool sums, sl_error *error);
void sl_outbox_close(sl_outbox *box);
/* The node, in this view, has published a message. */
void sl_outbox_begin(sl_outbox *box, const sl_outbound *message, const sl_copies *copies,
                     uint32_t view);
/* Is `part` encoded? Encodes it if it is the next one. 1: yes; 0: a device is still at it, and the
 * node's notify_fd will be signalled; negative: it cannot be encoded. */
int sl_outbox_encode(sl_outbox *box, uint32_t part, sl_error *error);
/* Takes the checksum of an encoded part, where there are such. */
void sl_outbox_sum(sl_outbox *box, uint32_t part);
/* Where an encoded part is kept, for one more user: in the room, or in a copy, the one that others
 * use already, if they do. A neighbour that does not read it there needs no copy: SL_COPY_NONE. */
uint32_t sl_outbox_keep(sl_outbox *box, sl_copies *copies, uint32_t part, bool reads);
/* The same of parts that are in memory of a device that neighbours read. */
uint32_t sl_outbox_publish(sl_outbox *box, sl_copies *copies, uint32_t part, uint32_t behind);
/* How many parts may one frame be of, for a neighbour that reads them where they are, and so many
 * at most? The first is encoded. */
uint32_t sl_outbox_row(const sl_outbox *box, uint32_t most);
/* May encoded parts be sent now? 0, or the lender's error. Its checksum was taken before, or it
 * was copied: what changes after this is refused by its receiver, or of no effect. */
int sl_outbox_vouch(const sl_outbox *box, uint32_t part, uint32_t behind, sl_error *error);
/* What the frame of encoded parts says beside its sender and its counts. */
sl_frame sl_outbox_frame(const sl_outbox *box, uint32_t part, uint32_t behind);

#endif
