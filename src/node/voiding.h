/* voiding.h - exchanges in which all wait for all: those of all-reduces, servers and trees. One
 * that is cut never took place: its round ends with the model and momentum that it began with, and
 * a step of the node's own where rounds without exchanges have one. */
#ifndef SL_VOIDING_H
#define SL_VOIDING_H

#include "node/state.h"

/* An exchange begins: keeps what it overwrites. */
void sl_voiding_keep(sl_node *n);
/* The exchange under way is none. */
void sl_voiding_undo(sl_node *n);

#endif
