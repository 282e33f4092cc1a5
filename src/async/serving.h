/* serving.h - the server's side of commits: who has committed how often, and what is done with it;
 * see commits.c. */
#ifndef SL_SERVING_H
#define SL_SERVING_H

#include "algorithm/centralized/served.h"
#include "async/state.h"

#define SL_TAKES_NO_PART UINT64_MAX

/* Do nodes commit by turns? Several at once? Is a commit kept until it is whole, and longer? */
bool sl_serving_in_turn(const sl_async *n);
bool sl_serving_together(const sl_async *n);
bool sl_serving_keeps(const sl_async *n);

/* SL_ENOMEM. */
int sl_serving_open(sl_async *n, sl_error *error);
/* Borrowed. */
sl_clocks sl_serving_clocks(const sl_async *n);
void sl_serving_note(sl_async *n, sl_act_kind kind, uint32_t peer, uint64_t number, uint32_t from,
                     uint32_t to);

/* Applies a part of the rank's commit. SL_EDIVERGED. */
int sl_serving_take(sl_async *n, uint32_t rank, const sl_arrival *a, sl_error *error);
/* All of this node's. */
int sl_serving_take_own(sl_async *n, sl_error *error);
/* Is all of the rank's commit here, and not applied? */
bool sl_serving_has(const sl_async *n, uint32_t rank);
/* That one. */
int sl_serving_apply(sl_async *n, uint32_t rank, sl_error *error);
/* All of it has come to what it comes to. */
void sl_serving_count(sl_async *n, uint32_t rank, uint64_t number);

#endif
