/* rounding.h - stochastic rounding of |v| to a level l in 0 ... levels, which stands for l scale /
 * levels, without bias.
 *
 * With r = |v| levels / scale in units of 2^-bits, rounded to an integer q, and u a random integer
 * of `bits` bits, the level is (q + u) >> bits: one more than q >> bits with just the probability
 * that q's fraction asks for. A value on the grid stays on it: with levels 2^bits < 2^21, the four
 * roundings of float32 on its way to r add up to less than half a unit. The bias is at most half a
 * unit.
 */
#ifndef SL_ROUNDING_H
#define SL_ROUNDING_H

#include <stddef.h>
#include <stdint.h>

#include "compress/quantization/windows.h"
#include "element/code.h"

enum { ROUNDING_LEVELS_MAX = 32767 };

/* 1 <= levels <= ROUNDING_LEVELS_MAX; scale finite and >= 0; 0 makes every level 0. */
rounding sl_rounding(uint32_t levels, float scale);
/* Bits that hold 0 ... levels. */
unsigned sl_level_bits(uint32_t levels);
/* codes[i] = the level of |v[i]|, and at bit `sign_at` whether v[i] has a sign; of random's windows
 * the upper bits are used. */
void sl_round(const rounding *r, unsigned sign_at, const float *v, windows random, size_t n,
              uint16_t *codes);

#endif
