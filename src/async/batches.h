/* batches.h - commits that are applied several at once, the first ones of a round. */
#ifndef SL_BATCHES_H
#define SL_BATCHES_H

#include "async/state.h"

/* Applies, or drops, the next commit that is due. */
int sl_batch_take(sl_async *n, sl_error *error);
/* Is one to be applied, or dropped, or noted as early? */
bool sl_batch_has_work(const sl_async *n);

#endif
