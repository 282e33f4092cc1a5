/* weights.h - push-sum's weights: one for each part of a message, as a peer that is lost may have
 * sent some of its parts, and so shares of some elements only. As long as nobody is lost in the
 * midst of an exchange, all are equal. */
#ifndef SL_WEIGHTS_H
#define SL_WEIGHTS_H

#include "node/state.h"

/* After the codecs. SL_ENOMEM. */
int sl_weights_open(sl_node *n);
void sl_weights_close(sl_node *n);
/* All are 1. */
void sl_weights_begin(sl_node *n);
/* Notes whether all are equal. */
void sl_weights_note(sl_node *n);
/* What was noted, and perhaps loaded, becomes that of all parts, unless each has its own. */
void sl_weights_spread(sl_node *n);
/* Of so many parts from this one on, how many may be combined at once: those with equal weights. */
uint32_t sl_weights_alike(const sl_node *n, const sl_group *g, uint32_t count);

#endif
