/* staging.h - parts on their way from receive buffers to the device that holds the vectors.
 *
 * Parts that are combined together share a slot. They are copied to it in the background; the
 * operations that read them are ordered after the copies, and each receive buffer is free as soon
 * as its slot's copies are complete. One slot is copied while another is combined. With a notify_fd
 * no call blocks; without one, copies do.
 *
 * What lies at equal distances in one allocation, as receive buffers that are used in turn, is
 * copied by one call, whatever frames it came in.
 *
 * Parts that are on the device already stay where they are: then all that share their slot go back
 * once the operations that read it are complete. With `direct`, all are.
 */
#ifndef SL_STAGING_H
#define SL_STAGING_H

#include "starling/node.h"

typedef struct sl_staging_slot {
    char *memory; /* (room) bytes; NULL: all parts stay where they are */
    sl_vec_event *copied, *used;
    void **tokens;       /* (parts_max) of the parts */
    size_t parts, given; /* parts here; of these, the first whose tokens are back */
    bool stays;          /* some of them stay where they are */
} sl_staging_slot;

typedef struct sl_staging {
    const sl_node_settings *settings; /* borrowed; NULL: the vectors are on the host, nothing is
                                         staged */
    size_t parts_max, room;           /* of a slot: parts, bytes */
    sl_staging_slot *slots;           /* (count) used in turn */
    size_t count;
    size_t begun, over; /* slots filled so far; those whose tokens are all back */
    /* of the slot that is filled */
    sl_vec_rows *copies;             /* (parts_max) */
    size_t copy_count, last, filled; /* of its memory: where the last part is, and its end */
} sl_staging;

/* For at most so many parts that are combined together. Where vectors are the host's, or for 0
 * parts, *staging is empty. SL_ENOMEM. */
int sl_staging_open(sl_staging *staging, const sl_node_settings *settings, size_t parts,
                    size_t part_bytes);
void sl_staging_close(sl_staging *staging);
/* Tokens that may be here at once. */
size_t sl_staging_tokens_max(const sl_staging *staging);
/* Is a slot free? If not, take tokens back first. */
bool sl_staging_has_room(const sl_staging *staging);
/* The part on the device, for operations between sl_staging_follow and sl_staging_leave. Its
 * buffer must not change until `token` comes back. `behind`: it is the next part of the message
 * that was brought last, and lies so many bytes behind that part; 0: it is of another message. */
sl_payload sl_staging_bring(sl_staging *staging, sl_payload payload, void *token, size_t behind);
/* The same for a part that is on the device, and stays where it is. */
sl_payload sl_staging_keep(sl_staging *staging, sl_payload payload, void *token);
void sl_staging_follow(sl_staging *staging);
/* All operations that read this slot have been called. */
void sl_staging_leave(sl_staging *staging);
/* A token whose buffer has been read, in the order in which they came. NULL: there is none. */
void *sl_staging_token(sl_staging *staging);
/* Has a buffer been read whose token is still here? If not, and if `signals`, notify_fd is
 * signalled when one has. */
bool sl_staging_before_sleep(sl_staging *staging, bool signals);

#endif
