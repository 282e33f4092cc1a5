/* incoming.h - the messages that come in a step, and their sums. */
#ifndef SL_NODE_INCOMING_H
#define SL_NODE_INCOMING_H

#include "node/state.h"

/* Lists who sends what in the step under way. */
void sl_incoming_begin(sl_node *n);
/* Takes a part in, or drops it. SL_EPROTO, SL_ENOMEM: its token goes back, too. */
int sl_incoming_receive(sl_node *n, const sl_event *event, sl_error *error);
/* Combines parts as far as they have come and may be combined; `left`: all that have come, though
 * they are no whole batch, or the rest, once nobody sends any more. */
int sl_incoming_combine(sl_node *n, bool left, sl_error *error);
/* Nobody sends any more in this step, whose own message is encoded: it stands for all. */
void sl_incoming_leave(sl_node *n);
bool sl_incoming_is_complete(const sl_node *n);
/* Gives back the buffers that the device has read. */
void sl_incoming_collect(sl_node *n);
/* SL_EPEER with the edge whose part is missing; 0: none is. */
int sl_incoming_name_missing(const sl_node *n, sl_error *error);

#endif
