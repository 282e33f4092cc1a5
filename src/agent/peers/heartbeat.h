/* heartbeat.h - what a HEARTBEAT frame says: what its sender does, and for whom it waits in the
 * end.
 *
 * A waiting agent passes on what it has heard from the one that it waits for. So what stands still
 * is known to all that wait for it, as far away as they are.
 */
#ifndef SL_HEARTBEAT_H
#define SL_HEARTBEAT_H

#include "starling/agent.h"
#include "wire/frame.h"

typedef struct sl_heartbeat {
    sl_agent_view own;  /* of the sender */
    uint32_t waits_for; /* the next on the way to the root; itself: it waits for nobody */
    sl_agent_view root; /* it waits for nobody; itself, though it waits: not known yet */
} sl_heartbeat;

static inline bool sl_heartbeat_waits(const sl_heartbeat *h) {
    return h->waits_for != h->own.rank;
}

static inline bool sl_heartbeat_knows_root(const sl_heartbeat *h) {
    return h->root.rank != h->own.rank || !sl_heartbeat_waits(h);
}

/* Shorter waits belong to every round. */
static const double sl_heartbeat_long_s = 0.3;
static inline bool sl_heartbeat_waits_long(const sl_heartbeat *h) {
    return sl_heartbeat_waits(h) && h->own.still_s >= sl_heartbeat_long_s;
}

void sl_heartbeat_encode(const sl_heartbeat *heartbeat, uint8_t out[SL_HEARTBEAT_BYTES]);
/* Of a run of so many nodes. NULL, or what is wrong. */
const char *sl_heartbeat_decode(sl_heartbeat *out, const uint8_t *payload, size_t bytes,
                                uint32_t sender, uint32_t nodes);

#endif
