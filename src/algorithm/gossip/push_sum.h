/* push_sum.h - the steps of sgp.c, for algorithms that are built on it. */
#ifndef SL_PUSH_SUM_H
#define SL_PUSH_SUM_H

#include "starling/algorithm.h"

enum { SL_NUMERATOR = 0 }; /* of sl_state.extra: n_i; the model is z_i = n_i / w_i */

/* n_i <- x_i */
void sl_push_start(sl_state *s, size_t dimension);
/* n_i <- n_i - gamma mom(g_i(z_i)) */
void sl_push_adapt(sl_state *s, size_t from, size_t count);
const float *sl_push_numerator(const sl_state *s);
/* n_i <- sum_j P_ij n_j and z_i; the weight is the next one until sl_push_finish. */
void sl_push_combine(sl_state *s, const sl_mix *mix, size_t from, size_t count);
void sl_push_finish(sl_state *s);

#endif
