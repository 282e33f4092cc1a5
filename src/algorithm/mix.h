/* mix.h - weighted sums of what came uncompressed. */
#ifndef SL_MIX_H
#define SL_MIX_H

#include "starling/algorithm.h"

/* out = self_weight * self + sum_j W_ij part_j over [from, from + count), in that order, one pass; out may be self. The parts are identity's. */
void sl_mix_into(const sl_state *s, float *out, const float *self, const sl_mix *mix, float factor_self, float factor, size_t from,
                 size_t count);

#endif
