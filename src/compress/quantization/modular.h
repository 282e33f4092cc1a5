/* modular.h - the numbers of the compressor modular: what is left of v by a modulus B, on a grid.
 *
 * Two nodes whose elements lie less than B/2 apart tell each other their elements by this alone:
 * the receiver takes, of all numbers that it may stand for, the one next to its own.
 */
#ifndef SL_MODULAR_H
#define SL_MODULAR_H

#include "starling/compressor.h"

/* The grid has `codes` points, a `step` apart, from -B/2 on. */
typedef struct sl_modulus {
    double b, step;
    uint32_t codes;
} sl_modulus;

/* B = 2 theta / (1 - 2^-bits), so that theta and half a step make B/2. */
sl_modulus sl_modulus_of(const sl_compressor_config *config);

/* v by the modulus, in [-B/2, B/2]; v is finite. */
static inline double sl_modulus_rest(const sl_modulus *m, double v) {
    const double times = v / m->b + 0.5, whole = __builtin_floor(times), rest = v - m->b * whole,
                 half = m->b / 2;
    return rest < -half ? -half : rest > half ? half : rest;
}

/* out[i]: what v[i] is sent as. */
void sl_modulus_round(const sl_modulus *m, const float *v, size_t n, float *out);

#endif
