/* modular.c - what is left of v by a modulus: Lu, De Sa, "Moniqua: Modulo Quantized Communication
 * in Decentralized SGD", ICML 2020, with rounding to nearest.
 *
 * mod(v) = v - B floor(v/B + 1/2); code = floor(mod(v)/step + 1/2), which stands for code * step;
 * step = 2^-bits B. `bits` an element, bits d in all; both sides know B. A code is sent by its
 * remainder of 2^bits: of the grid's two ends, which are a B apart, one is sent. Only who has a
 * vector near v can read it, so that nothing is promised.
 *
 * Codes of a block are sent as their lower 16 bits, then what is above, each packed (pack.h).
 */
#include "compress/quantization/modular.h"

#include <math.h>

#include "base/kernels.h"
#include "compress/lossless/pack.h"
#include "compress/quantization/dense.h"

enum { BITS_MAX = 24, LOW = 16, PART_BLOCKS = DENSE_PART_ELEMENTS / SL_BLOCK };

sl_modulus sl_modulus_of(const sl_compressor_config *config) {
    const double share = ldexp(1, -(int)config->bits);
    const double b = 2 * config->theta / (1 - share);
    return (sl_modulus){.b = b, .step = b * share, .codes = 1u << config->bits};
}

static inline int32_t nearest(const sl_modulus *m, float v) {
    return (int32_t)__builtin_floor(sl_modulus_rest(m, v) / m->step + 0.5);
}

/* Of a code as it is sent. */
static inline float point_of(const sl_modulus *m, uint32_t code) {
    const int32_t half = (int32_t)(m->codes / 2), level = (int32_t)code;
    return (float)(m->step * (level < half ? level : level - 2 * half));
}

FOR_EACH_CPU(void, to_codes,
             (const sl_modulus *m, const float *v, size_t n, uint16_t *low, uint16_t *high),
             (m, v, n, low, high)) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t code = (uint32_t)nearest(m, v[i]) & (m->codes - 1);
        low[i] = (uint16_t)code;
        high[i] = (uint16_t)(code >> LOW);
    }
}

FOR_EACH_CPU(void, to_values, (const sl_modulus *m, const float *v, size_t n, float *out),
             (m, v, n, out)) {
    for (size_t i = 0; i < n; i++)
        out[i] = point_of(m, (uint32_t)nearest(m, v[i]) & (m->codes - 1));
}

void sl_modulus_round(const sl_modulus *m, const float *v, size_t n, float *out) {
    to_values(m, v, n, out);
}

/* ---- what is promised ---- */

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    (void)config;
    (void)dimension;
    return (sl_quality){.omega = INFINITY};
}

static double bits(const codec_ops *self, const sl_compressor_config *config, size_t dimension) {
    (void)self;
    return (double)config->bits * (double)dimension;
}

static int check(const sl_compressor_config *config, size_t dimension, sl_error *error) {
    (void)dimension;
    if (config->bits < 1 || config->bits > BITS_MAX)
        return sl_fail(error, SL_EINVAL, "algorithm.bits: %u is not allowed; it must be 1 to %d",
                       config->bits, BITS_MAX);
    if (config->theta > 0 && isfinite(config->theta))
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "algorithm.theta: %g: must be above 0, and above the largest difference of an "
                   "element between two neighbours",
                   config->theta);
}

/* ---- parts ---- */

static size_t bytes_of(const sl_codec *c, size_t elements) {
    return (elements * c->config.bits + 7) / 8;
}

static void lay_out(sl_codec *c, size_t part_bytes) {
    const size_t fit = part_bytes / bytes_of(c, SL_BLOCK), blocks = fit < 1 ? 1 : fit;
    c->part_elements = (blocks < PART_BLOCKS ? blocks : (size_t)PART_BLOCKS) * SL_BLOCK;
    if (c->part_elements > c->dimension)
        c->part_elements = c->dimension;
    c->part_bytes_max = bytes_of(c, c->part_elements);
    c->parts = (uint32_t)((c->dimension - 1) / c->part_elements + 1);
}

static unsigned low_bits(const sl_codec *c) {
    return c->config.bits < LOW ? c->config.bits : (unsigned)LOW;
}

static bool is_finite(const float *v, size_t n) {
    bucket_sums sums;
    sl_sum_begin(&sums, 0);
    sl_sum_largest(&sums, v, 0, n);
    return sl_sum_take_largest(&sums) < FLOAT_INFINITY;
}

static int encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                  sl_payload *out) {
    const sl_codec *c = e->codec;
    const sl_modulus m = sl_modulus_of(&c->config);
    const unsigned low = low_bits(c);
    uint16_t lows[SL_BLOCK], highs[SL_BLOCK];
    size_t from, count;
    sl_codec_part_range(c, part, &from, &count);
    *out = (sl_payload){buffer, bytes_of(c, count)};
    for (size_t at = 0; at < count; at += SL_BLOCK) {
        const size_t n = count - at < SL_BLOCK ? count - at : SL_BLOCK;
        const float *v = sl_encoder_read(e, source, from + at, n);
        uint8_t *bytes = (uint8_t *)buffer + bytes_of(c, at);
        if (!is_finite(v, n))
            return SL_EDIVERGED;
        to_codes(&m, v, n, lows, highs);
        sl_pack(lows, n, low, bytes);
        if (c->config.bits > LOW)
            sl_pack(highs, n, c->config.bits - LOW, bytes + n * sizeof *lows);
    }
    return 0;
}

/* Every code is one. */
static int check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    return payload.bytes == bytes_of(d->codec, count) ? 0 : SL_EPROTO;
}

FOR_EACH_CPU(void, add_values,
             (const sl_modulus *m, float weight, const uint16_t *low, const uint16_t *high,
              size_t n, float *acc),
             (m, weight, low, high, n, acc)) {
    for (size_t i = 0; i < n; i++)
        acc[i] += weight * point_of(m, low[i] | (uint32_t)high[i] << LOW);
}

static void add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    const sl_codec *c = d->codec;
    const sl_modulus m = sl_modulus_of(&c->config);
    uint16_t lows[SL_BLOCK], highs[SL_BLOCK] = {0};
    size_t from, count;
    sl_codec_part_range(c, part, &from, &count);
    for (size_t at = 0; at < count; at += SL_BLOCK) {
        const size_t n = count - at < SL_BLOCK ? count - at : SL_BLOCK;
        const uint8_t *bytes = (const uint8_t *)payload.data + bytes_of(c, at);
        const uint16_t *low = sl_unpack(bytes, n, low_bits(c), lows), *high = highs;
        if (c->config.bits > LOW)
            high = sl_unpack(bytes + n * sizeof *lows, n, c->config.bits - LOW, highs);
        add_values(&m, weight, low, high, n, acc + from + at);
    }
}

const codec_ops sl_modular_codec = {.quality = quality,
                                    .bits = bits,
                                    .check = check,
                                    .lay_out = lay_out,
                                    .describe = sl_codec_no_kernel,
                                    .encode = encode,
                                    .check_part = check_part,
                                    .add = add};
