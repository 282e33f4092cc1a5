/* staging.h - parts on their way from receive buffers to the device that holds the vectors.
 *
 * Parts that are combined together share a slot. They are copied to it in the background; the
 * operations that read them are ordered after the copies, and each receive buffer is free as soon
 * as its slot's copies are complete. One slot is copied while another is combined. With a notify_fd
 * no call blocks; without one, copies do.
 *
 * With `direct`, parts are on the device already and are combined where they are: a buffer is free
 * once the operations that read it are complete.
 */
#ifndef SL_STAGING_H
#define SL_STAGING_H

#include "starling/compressor.h"

typedef struct sl_staging_slot {
    float *memory; /* (width) parts; NULL: parts stay where they are */
    sl_vec_event *copied, *used;
    void **tokens;         /* (width) of the parts */
    size_t parts, waiting; /* parts here; tokens not yet given back */
} sl_staging_slot;

typedef struct sl_staging {
    const sl_vec_ops *vec; /* NULL: the vectors are on the host, nothing is staged */
    size_t width, stride;  /* parts of a slot at most, bytes of a part */
    int notify_fd;
    bool direct;
    sl_staging_slot *slots; /* (count) used in turn */
    size_t count;
    size_t begun, over; /* slots filled so far; those whose tokens are all back */
} sl_staging;

/* For slots of at most `width` parts of at most `bytes` each. Where vec is the host's, *staging is
 * empty. notify_fd: an eventfd, or 0: none. direct: payloads brought are on the device. */
int sl_staging_open(sl_staging *staging, const sl_vec_ops *vec, size_t width, size_t bytes,
                    int notify_fd, bool direct);
void sl_staging_close(sl_staging *staging);
/* Tokens that may be here at once. */
size_t sl_staging_tokens_max(const sl_staging *staging);
/* Is a slot free? If not, take tokens back first. */
bool sl_staging_has_room(const sl_staging *staging);
/* The part on the device, for operations between sl_staging_follow and sl_staging_leave. Its
 * buffer must not change until `token` comes back. */
sl_payload sl_staging_bring(sl_staging *staging, sl_payload payload, void *token);
void sl_staging_follow(sl_staging *staging);
/* All operations that read this slot have been called. */
void sl_staging_leave(sl_staging *staging);
/* A token whose buffer has been read. NULL: there is none. */
void *sl_staging_token(sl_staging *staging);
/* Has a buffer been read whose token is still here? If not, notify_fd is signalled when one has. */
bool sl_staging_before_sleep(sl_staging *staging);

#endif
