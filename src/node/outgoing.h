/* outgoing.h - the message that a step sends. */
#ifndef SL_NODE_OUTGOING_H
#define SL_NODE_OUTGOING_H

#include "node/state.h"

/* Do messages go along edges as plain vectors? Then their distances can be measured. */
bool sl_outgoing_is_plain_gossip(const sl_node *n);
/* May the step's vector be prepared part by part? Otherwise all of it is prepared before. */
bool sl_outgoing_adapts(const sl_node *n);
/* How long does the step's message stay as it is? */
sl_stay sl_outgoing_stays(const sl_node *n);
/* Begins the step's message; fills n->message. */
int sl_outgoing_begin(sl_node *n, sl_error *error);
/* Encodes the rest of it, which goes to nobody. */
int sl_outgoing_end(sl_node *n, sl_error *error);

#endif
