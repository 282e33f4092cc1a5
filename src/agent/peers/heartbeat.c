/* heartbeat.c - see heartbeat.h.
 *
 *   offset  0  doing u32, of the sender     4  waits for u32    8  round u64    16  still ms u64
 *          24  doing u32, of the root      28  rank u32        32  round u64    40  still ms u64
 */
#include "agent/peers/heartbeat.h"

#include "wire/bytes.h"

static uint8_t *put_view(uint8_t *p, const sl_agent_view *v, uint32_t rank) {
    p = put32(p, (uint32_t)v->doing);
    p = put32(p, rank);
    p = put64(p, v->round);
    return put64(p, v->still_s > 0 ? (uint64_t)(v->still_s * 1000) : 0);
}

static sl_agent_view get_view(const uint8_t *p, uint32_t rank) {
    return (sl_agent_view){.rank = rank,
                           .doing = (sl_agent_doing)get32(p),
                           .round = get64(p + 8),
                           .still_s = (double)get64(p + 16) / 1000};
}

void sl_heartbeat_encode(const sl_heartbeat *h, uint8_t out[SL_HEARTBEAT_BYTES]) {
    put_view(put_view(out, &h->own, h->waits_for), &h->root, h->root.rank);
}

const char *sl_heartbeat_decode(sl_heartbeat *out, const uint8_t *payload, size_t bytes,
                                uint32_t sender, uint32_t nodes) {
    if (bytes != SL_HEARTBEAT_BYTES)
        return "HEARTBEAT of the wrong length";
    const uint8_t *root = payload + SL_HEARTBEAT_BYTES / 2;
    const uint32_t waits_for = get32(payload + 4), last = get32(root + 4);
    if (waits_for >= nodes || last >= nodes || get32(payload) > SL_AGENT_ENDS ||
        get32(root) > SL_AGENT_AWAY)
        return "HEARTBEAT with what no agent is, or does";
    *out = (sl_heartbeat){get_view(payload, sender), waits_for, get_view(root, last)};
    return NULL;
}
