/* replicas.h - what a node keeps of its neighbours' replicas xhat_j: their weighted sum, or each of
 * them (algorithm.replicas). */
#ifndef SL_REPLICAS_H
#define SL_REPLICAS_H

#include "algorithm/mix.h"

bool sl_replicas_are_summed(const sl_state *s);

/* xhat_j += q_j for all in-neighbours; summed: sum_j W_ij xhat_j += sum_j W_ij q_j. */
void sl_replicas_take(sl_state *s, const sl_mix *mix);

/* Adds factor * sum_j W_ij xhat_j, from element `from` on, to a sum; W: this exchange's. Of one
 * that was cut, nothing. */
void sl_replicas_add_to(sl_terms *sum, const sl_state *s, float factor, size_t from);

#endif
