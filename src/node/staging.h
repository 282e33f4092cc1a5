/* staging.h - parts on their way from receive buffers to where the vectors are, if that is a
 * device.
 *
 * What is combined together is a slot: its parts are copied in the background into a place on the
 * device, the operations that read them come behind, and each receive buffer is free again as soon
 * as its slot's copies have passed. There are several places, so that one slot is copied while
 * another is combined. With a notify_fd nothing is waited for; without one, copies are.
 *
 * Parts that came to the device straight from the network (`direct`) are combined where they are:
 * nothing is copied, and a buffer is free once the operations that read it have passed.
 */
#ifndef SL_STAGING_H
#define SL_STAGING_H

#include "starling/compressor.h"

typedef struct sl_staging_slot {
    float *memory; /* (width) parts; NULL: parts stay where they are */
    sl_vec_event *copied, *used;
    void **tokens;         /* (width) of parts whose buffers are being read */
    size_t parts, waiting; /* brought; their tokens that have not been given back */
} sl_staging_slot;

typedef struct sl_staging {
    const sl_vec_ops *vec; /* NULL: the vectors are on the host, nothing lands */
    size_t width, stride;  /* parts of a slot at most, bytes of a part */
    int notify_fd;
    bool direct;
    sl_staging_slot *slots;    /* (count) used in turn */
    size_t count, begun, over; /* how many slots there have been, and how many of them have given
                                  all their tokens back */
} sl_staging;

/* For slots of at most `width` parts of at most `bytes` each. Where vec is the host's, *staging is
 * empty. notify_fd: an eventfd, or 0: none. direct: payloads brought are on the device. */
int sl_staging_open(sl_staging *staging, const sl_vec_ops *vec, size_t width, size_t bytes,
                    int notify_fd, bool direct);
void sl_staging_close(sl_staging *staging);
/* Is there a place for another slot? Not before more tokens have come back. */
bool sl_staging_has_room(const sl_staging *staging);
/* The part on the device, until sl_staging_leave, for operations behind sl_staging_follow. Its
 * buffer is read until `token` comes back. */
sl_payload sl_staging_bring(sl_staging *staging, sl_payload payload, void *token);
void sl_staging_follow(sl_staging *staging);
/* The operations that read this slot have been given. */
void sl_staging_leave(sl_staging *staging);
/* A token whose buffer has been read. NULL: there is none; notify_fd is signalled when there is. */
void *sl_staging_token(sl_staging *staging);

#endif
