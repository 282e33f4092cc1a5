/* voiding.h - exchanges that cannot be folded: those of all-reduces and servers, in which all wait
 * for all. A lost peer voids the one under way, and all that follow until a view: their rounds end
 * with the state that they began with, and a step of the node's own where rounds without exchanges
 * have one. */
#ifndef SL_VOIDING_H
#define SL_VOIDING_H

#include "node/state.h"

/* SL_ENOMEM */
int sl_voiding_open(sl_node *n);
void sl_voiding_close(sl_node *n);
/* An exchange begins: keeps what it overwrites. */
void sl_voiding_keep(sl_node *n);
/* Somebody is lost: the exchange under way is none. */
void sl_voiding_begin(sl_node *n);

#endif
