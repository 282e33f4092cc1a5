/* landing.h - parts on their way from receive buffers to where the vectors are, if that is a
 * device.
 *
 * What is combined together is a load: its parts are copied in the background into a place on the
 * device, the operations that read them come behind, and each receive buffer is free again as soon
 * as its load's copies have passed. There are several places, so that one load is copied while
 * another is combined. With a bell nothing is waited for; without one, copies are.
 *
 * Parts that came to the device straight from the network (`direct`) are combined where they are:
 * nothing is copied, and a buffer is free once the operations that read it have passed.
 */
#ifndef SL_LANDING_H
#define SL_LANDING_H

#include "starling/compressor.h"

typedef struct sl_load {
    float *memory; /* (width) parts; NULL: parts stay where they are */
    sl_mark *copied, *used;
    void **tokens;         /* (width) of parts whose buffers are being read */
    size_t parts, waiting; /* brought; their tokens that have not been given back */
} sl_load;

typedef struct sl_landing {
    const sl_vec_ops *vec; /* NULL: the vectors are on the host, nothing lands */
    size_t width, stride;  /* parts of a load at most, bytes of a part */
    int bell;
    bool direct;
    sl_load *loads;            /* (count) used in turn */
    size_t count, begun, over; /* how many loads there have been, and how many of them have given
                                  all their tokens back */
} sl_landing;

/* For loads of at most `width` parts of at most `bytes` each. Where vec is the host's, *landing is
 * empty. bell: an eventfd, or 0: none. direct: payloads brought are on the device. */
int sl_landing_open(sl_landing *landing, const sl_vec_ops *vec, size_t width, size_t bytes,
                    int bell, bool direct);
void sl_landing_close(sl_landing *landing);
/* Is there a place for another load? Not before more tokens have come back. */
bool sl_landing_has_room(const sl_landing *landing);
/* The part on the device, until sl_landing_leave, for operations behind sl_landing_follow. Its
 * buffer is read until `token` comes back. */
sl_payload sl_landing_bring(sl_landing *landing, sl_payload payload, void *token);
void sl_landing_follow(sl_landing *landing);
/* The operations that read this load have been given. */
void sl_landing_leave(sl_landing *landing);
/* A token whose buffer has been read. NULL: there is none; the bell rings when there is. */
void *sl_landing_token(sl_landing *landing);

#endif
