/* mix.h - weighted sums of what came uncompressed. */
#ifndef SL_MIX_H
#define SL_MIX_H

#include "starling/algorithm.h"

/* out = factor_self * self + sum_j factor * W_ij * part_j, in that order, one pass, over `count` elements from the parts' element `skip` on; out may
 * be self. The parts are identity's. */
void sl_mix_into(const sl_state *s, float *out, const float *self, const sl_mix *mix, float factor_self, float factor, size_t skip,
                 size_t count);

#endif
