/* ports.h - when a message arrives: each node has a link out and a link in, which carry one message
 * after the other; a pair may have a slower link of its own in between. As in starling/timeline.h.
 */
#ifndef SL_SIM_PORTS_H
#define SL_SIM_PORTS_H

#include <stdbool.h>

#include "starling/links.h"
#include "starling/types.h"

typedef struct sl_ports {
    const sl_number_rows *links;  /* [i, j, bandwidth_mbit] or with latency_ms; NULL: none */
    uint64_t *out_free, *in_free; /* (nodes) */
    uint64_t *pair_free;          /* (2 * links->rows) each way */
    double ns_per_byte;           /* of a node's links; 0: they take no time */
    uint64_t latency;
} sl_ports;

/* usual: of all pairs but those of `links`, which are borrowed. SL_ENOMEM. */
int sl_ports_open(sl_ports *out, sl_link usual, const sl_number_rows *links, uint32_t nodes,
                  sl_error *error);
void sl_ports_close(sl_ports *ports);
/* Do messages take time at all? */
bool sl_ports_take_time(const sl_ports *ports);
/* Times are in nanoseconds. A message leaves: when its first bit is at the receiver's link. In the
 * order of times. */
uint64_t sl_ports_leave(sl_ports *ports, uint32_t from, uint32_t to, double bytes, uint64_t now);
/* Its first bit is there: when all of it is. In the order of times. */
uint64_t sl_ports_enter(sl_ports *ports, uint32_t to, double bytes, uint64_t now);
/* How long a message without a payload takes, where nothing else is on the links. */
uint64_t sl_ports_latency(const sl_ports *ports, uint32_t from, uint32_t to);

#endif
