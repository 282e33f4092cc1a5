/* slowmo.h - the outer step of slowmo.c, for each of its bases. */
#ifndef SL_SLOWMO_H
#define SL_SLOWMO_H

#include "starling/algorithm.h"

enum { SL_SLOWMO_VECTORS = 2 }; /* a and u; behind SGP's numerator */

extern const sl_key sl_slowmo_keys[];
void sl_slowmo_defaults(sl_algorithm_config *config);
void sl_slowmo_start(sl_state *s, size_t dimension);
/* x, the mean, becomes a; optimizer's buffers begin anew if they are to. */
void sl_slowmo_step(sl_state *s, size_t from, size_t count);

#endif
