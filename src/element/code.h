/* code.h - one element to its code and back, for each dense-coded compressor; the papers are named
 * in the compressors' own files. */
#ifndef SL_CODE_H
#define SL_CODE_H

#include <math.h>

#include "element/shared.h"

/* ---- stochastic rounding to levels: QSGD, TernGrad; see compress/quantization/rounding.h ---- */

typedef struct rounding {
    float power, factor; /* r = |v| power factor: two factors, since levels / scale may be beyond a
                            float's range */
    uint32_t levels;
    uint32_t bits; /* <= 16 */
} rounding;

/* Bits that hold 0 ... levels. */
SL_SHARED uint32_t level_bits(uint32_t levels) {
#ifdef __CUDA_ARCH__
    return 32 - (uint32_t)__clz((int)levels);
#else
    return 32 - (uint32_t)__builtin_clz(levels);
#endif
}

SL_SHARED rounding rounding_of(uint32_t levels, float scale) {
    const uint32_t width = level_bits(levels), bits = width > 5 ? 21 - width : 16;
    const double whole = scale > 0 ? (double)(levels << bits) / scale : 0;
    const double power = whole > 0x1p100 ? 0x1p100 : whole < 0x1p-100 ? 0x1p-24 : 1;
    rounding r;
    r.power = (float)power;
    r.factor = (float)(whole / power);
    r.levels = levels;
    r.bits = bits;
    return r;
}

/* TernGrad's clipped scale: at most `clip` deviations of n elements with that sum of squares.
 * Rounding takes magnitudes of up to 2^15 scales. */
SL_SHARED float clipped_scale(float largest, double clip, double squares, size_t n) {
    const double limit = clip * sqrt(squares / (double)n), least = 0x1p-14 * (double)largest;
    return (float)fmin((double)largest, fmax(limit, least));
}

/* random: 16 bits, of which the upper ones are used. */
SL_SHARED uint32_t level_of(rounding r, float v, uint32_t random) {
    const float magnitude = float_of(float_bits(v) & FLOAT_MAGNITUDE);
    const int32_t level =
        ((int32_t)(magnitude * r.power * r.factor + 0.5f) + (int32_t)(random >> (16 - r.bits))) >>
        r.bits;
    return (uint32_t)(level < (int32_t)r.levels ? level : (int32_t)r.levels);
}

SL_SHARED uint32_t level_code(rounding r, uint32_t sign_at, float v, uint32_t random) {
    return level_of(r, v, random) | float_bits(v) >> 31 << sign_at;
}

SL_SHARED float level_value(uint32_t code, uint32_t sign_at) {
    const int32_t level = (int32_t)(code & ((1u << sign_at) - 1)),
                  negative = -(int32_t)(code >> sign_at);
    return (float)((level ^ negative) - negative);
}

/* Level and sign, as of one level of QSGD, to 0: 0, 1: s, 2: -s. */
SL_SHARED uint32_t ternary_code(uint32_t code) {
    return (code & 1) + (code == 3);
}

SL_SHARED float ternary_value(uint32_t code) {
    return (float)((int32_t)(code & 1) - (int32_t)(code >> 1));
}

SL_SHARED uint32_t threshold_code(float tau, float v) {
    return (uint32_t)(v >= tau) | (uint32_t)(v <= -tau) << 1;
}

/* ---- natural: a random u stands for (u + 1/2) / 2^16 of the mantissa's range, so that a power of
 * two never carries ---- */

/* The sum cannot carry into the sign: |v| <= 2^127. */
SL_SHARED uint32_t natural_code(float v, uint32_t random) {
    return (float_bits(v) + (random << 7) + 64) >> 23;
}

SL_SHARED float natural_value(uint32_t code) {
    return float_of((code & 0xFF) << 23 | code >> 8 << 31);
}

/* ---- float16, bfloat16 ---- */

/* From 2^-14 on, the exponent's bias goes from 127 to 15, and half a unit less one, or half a unit
 * where the last bit kept is odd, is added before the cut. Below, the sum with 1/2, whose last
 * place is 2^-24, rounds. */
SL_SHARED uint32_t float16_code(float v) {
    const uint32_t bits = float_bits(v), magnitude = bits & FLOAT_MAGNITUDE;
    const uint32_t normal = (magnitude - (112u << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
    const uint32_t small = float_bits(float_of(magnitude) + 0.5f) - 0x3F000000;
    return ((magnitude < 0x38800000 ? small : normal) | (bits >> 16 & 0x8000)) & 0xFFFF;
}

/* A subnormal's bits, with 2^-14's exponent, are the number plus 2^-14. */
SL_SHARED float float16_value(uint32_t code) {
    const uint32_t magnitude = (code & 0x7FFF) << 13;
    const float normal = float_of(magnitude + (112u << 23)),
                small = float_of(magnitude + (113u << 23)) - 0x1p-14f;
    return float_of(float_bits(magnitude < 1u << 23 ? small : normal) | (code & 0x8000) << 16);
}

/* Of float16 the upper byte: the same with two bits of mantissa, and 128, whose last place is
 * 2^-16. */
SL_SHARED uint32_t float8_code(float v) {
    const uint32_t bits = float_bits(v), magnitude = bits & FLOAT_MAGNITUDE;
    const uint32_t normal = (magnitude - (112u << 23) + 0xFFFFF + (magnitude >> 21 & 1)) >> 21;
    const uint32_t small = float_bits(float_of(magnitude) + 128.0f) - 0x43000000;
    return ((magnitude < 0x38800000 ? small : normal) | (bits >> 24 & 0x80)) & 0xFF;
}

SL_SHARED float float8_value(uint32_t code) {
    return float16_value(code << 8);
}

SL_SHARED uint32_t bfloat16_code(float v) {
    const uint32_t bits = float_bits(v);
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

SL_SHARED float bfloat16_value(uint32_t code) {
    return float_of(code << 16);
}

/* ---- any of them ---- */

/* Kernels are compiled for each code on its own, and choose nothing from element to element. */
#define SL_CODES(X)                                                                                \
    X(CODE_FLOAT16)                                                                                \
    X(CODE_BFLOAT16)                                                                               \
    X(CODE_FLOAT8)                                                                                 \
    X(CODE_LEVELS)                                                                                 \
    X(CODE_SIGN)                                                                                   \
    X(CODE_TERNARY)                                                                                \
    X(CODE_NATURAL)                                                                                \
    X(CODE_THRESHOLD)

typedef enum coding_code {
    CODE_NONE, /* devices have no kernel for it */
#define CODE_LISTED(code) code,
    SL_CODES(CODE_LISTED)
#undef CODE_LISTED
} coding_code;

/* r: of levels; others do not look at it. random: 16 bits. */
SL_SHARED uint32_t code_of(coding_code code, float tau, uint32_t width, rounding r, float v,
                           uint32_t random) {
    switch (code) {
    case CODE_NONE:
        break;
    case CODE_FLOAT16:
        return float16_code(v);
    case CODE_BFLOAT16:
        return bfloat16_code(v);
    case CODE_FLOAT8:
        return float8_code(v);
    case CODE_LEVELS:
        return level_code(r, width - 1, v, random);
    case CODE_SIGN:
        return v < 0;
    case CODE_TERNARY:
        return ternary_code(level_code(r, 1, v, random));
    case CODE_NATURAL:
        return natural_code(v, random);
    case CODE_THRESHOLD:
        return threshold_code(tau, v);
    }
    return 0;
}

SL_SHARED int is_random(coding_code code) {
    return code == CODE_LEVELS || code == CODE_TERNARY || code == CODE_NATURAL;
}

SL_SHARED int is_scaled_rounding(coding_code code) {
    return code == CODE_LEVELS || code == CODE_TERNARY;
}

typedef struct code_units {
    float plus, minus; /* of codes 0 and 1 of signs; the first of others */
} code_units;

/* scale: (scale_floats) of the bucket. */
SL_SHARED code_units units_of(coding_code code, float weight, uint32_t levels, float tau,
                              uint32_t scale_floats, const float *scale) {
    code_units u = {weight, 0};
    if (code == CODE_LEVELS)
        u.plus = weight * (scale[0] / (float)levels);
    else if (code == CODE_TERNARY)
        u.plus = weight * scale[0];
    else if (code == CODE_THRESHOLD)
        u.plus = weight * tau;
    else if (code == CODE_SIGN) {
        u.plus = weight * scale[0];
        u.minus = scale_floats == 2 ? weight * scale[1] : -u.plus;
    }
    return u;
}

/* What a code adds. */
SL_SHARED float increment_of(coding_code code, uint32_t width, code_units u, uint32_t c) {
    switch (code) {
    case CODE_NONE:
        break;
    case CODE_FLOAT16:
        return u.plus * float16_value(c);
    case CODE_BFLOAT16:
        return u.plus * bfloat16_value(c);
    case CODE_FLOAT8:
        return u.plus * float8_value(c);
    case CODE_LEVELS:
        return u.plus * level_value(c, width - 1);
    case CODE_SIGN:
        return c ? u.minus : u.plus;
    case CODE_TERNARY:
    case CODE_THRESHOLD:
        return u.plus * ternary_value(c);
    case CODE_NATURAL:
        return u.plus * natural_value(c);
    }
    return 0;
}

#endif
