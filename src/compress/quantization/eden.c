/* eden.c - eden: Vargaftik, Ben Basat, Portnoy, Mendelson, Ben-Itzhak, Mitzenmacher: "EDEN:
 * Communication-Efficient and Robust Distributed Mean Estimation for Federated Learning", ICML
 * 2022. drive: the same authors, "DRIVE: One-bit Distributed Mean Estimation", NeurIPS 2021, which
 * is EDEN of one bit.
 *
 * Each block of a random rotation (rotation.h) has elements u of about a normal distribution. Q(u)
 * are those of the 2^b Lloyd-Max points of N(0, 1) that are nearest to u sqrt(n) / ||u||, and the
 * block is decoded as s Q(u), rotated back:
 *   unbiased     s = ||u||^2 / <u, Q>, EDEN's and DRIVE's own. With a mean squared error m of the
 *                points the error of dense vectors is m / (1 - m): 0.571, 0.133, 0.0358, 0.0096 for
 *                b = 1 to 4. It is not bounded by that: of a block with two equal elements half of
 *                u is 0, and one bit errs by 1. What is promised for every v comes from a search
 *                over sparse and graded vectors of up to 16 elements, and is not proved.
 *   contractive  s = <u, Q> / ||Q||^2, the best of all: error m, 0.363, 0.1175, 0.0345, 0.0095.
 *                With one bit it is 1 - ||u||_1^2 / (n ||u||^2), on average at most 1/2 for every
 * v: an element of u is a sum of v's with random signs, whose mean magnitude is at least
 *                ||v|| / sqrt(2) (Szarek 1976). With more bits, s = ||u|| / sqrt(n) errs by half a
 *                gap between points at most, or, beyond the last point t, by E(|x| - t)+^2 <=
 *                4 integral of (x - t) exp(-x^2/2), as P(|x| > t) <= 2 exp(-t^2/2) (Hoeffding).
 * The unbiased form is so over random rotations, and nearly so over signs and Hadamard matrices.
 *
 * A payload is s / sqrt(n) of each of its blocks, float32 | codes of b bits, packed from the lowest
 * bit on: b d + 32 bits for each block of 2^14 elements, and for each of what is left over. (The
 * papers rotate the vector as one, and send one scale. Blocks of unlike norms would share it at the
 * price of the unbiasedness.) A part is a range of whole pieces.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/kernels.h"
#include "compress/codec.h"
#include "compress/lossless/pack.h"
#include "compress/own_keys.h"
#include "compress/quantization/rotation.h"
#include "compress/sparsification/entries.h"
#include "element/shared.h"
#include "element/sum.h"

#pragma GCC diagnostic ignored "-Wpsabi" /* vectors only go between functions that are inlined */

enum { BITS_MAX = 4, POINTS_MAX = 1 << BITS_MAX, PART_PIECES = 4, FOURS = 32 };

/* The points above 0, rising; those below are their negatives. */
static const float points_above[BITS_MAX][POINTS_MAX / 2] = {
    {0.797884561f},
    {0.452780035f, 1.510417608f},
    {0.245094179f, 0.756005281f, 1.343909279f, 2.151945705f},
    {0.128395030f, 0.388048299f, 0.656759119f, 0.942340456f, 1.256231197f, 1.618046386f,
     2.069017227f, 2.732589571f}};
static const double mean_error[BITS_MAX] = {0.36338023, 0.11748185, 0.03454776, 0.00950101};
/* For every vector, as above. */
static const double delta_promised[BITS_MAX] = {0.5, 0.43, 0.8, 0.88};
/* Above the worst that a search found: 1.58, 0.265, 0.071, 0.018. */
static const double omega_promised[BITS_MAX] = {2, 0.3, 0.08, 0.02};

static unsigned bits_of(const sl_compressor_config *config) {
    return config->kind == SL_COMPRESSOR_DRIVE ? 1 : config->bits;
}

/* ---- what is promised ---- */

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    const unsigned b = bits_of(config) - 1;
    (void)dimension;
    if (config->contractive)
        return (sl_quality){.omega = INFINITY,
                            .is_contractive = true,
                            .delta = delta_promised[b],
                            .usual_delta = 1 - mean_error[b]};
    const double omega = omega_promised[b];
    return (sl_quality){.unbiased = true,
                        .omega = omega,
                        .is_contractive = omega < 1,
                        .delta = omega < 1 ? 1 - omega : 0};
}

static double bits(const codec_ops *self, const sl_compressor_config *config, size_t dimension) {
    (void)self;
    return (double)dimension * bits_of(config) + 32.0 * (double)sl_rotation_blocks(dimension);
}

static int check(const sl_compressor_config *config, size_t dimension, sl_error *error) {
    (void)dimension;
    if (config->kind == SL_COMPRESSOR_DRIVE || (config->bits >= 1 && config->bits <= BITS_MAX))
        return 0;
    return sl_fail(error, SL_EINVAL, "algorithm.compressor.bits: %u: allowed are 1 to %d",
                   config->bits, BITS_MAX);
}

/* ---- parts ---- */

static size_t codes_bytes(const sl_codec *c, size_t n) {
    return (n * bits_of(&c->config) + 7) / 8;
}

static size_t part_bytes_of(const sl_codec *c, size_t n) {
    return sl_rotation_blocks(n) * sizeof(float) + codes_bytes(c, n);
}

/* As many pieces as fit, PART_PIECES at most, so that the accumulator's stay in a core's second
 * cache; one at least. */
static void lay_out(sl_codec *c, size_t part_bytes) {
    size_t pieces = PART_PIECES;
    while (pieces > 1 && part_bytes_of(c, pieces * ROTATION_PIECE) > part_bytes)
        pieces--;
    c->part_elements = pieces * ROTATION_PIECE;
    if (c->part_elements > c->dimension)
        c->part_elements = c->dimension;
    c->part_bytes_max = part_bytes_of(c, c->part_elements);
    c->parts = (uint32_t)((c->dimension - 1) / c->part_elements + 1);
}

/* ---- points: half of them, and a sign; edge[k] lies between above[k - 1] and above[k] ---- */

typedef struct points {
    float above[POINTS_MAX / 2], edge[POINTS_MAX / 2];
} points;

static points points_of(unsigned b) {
    points p;
    memcpy(p.above, points_above[b - 1], sizeof p.above);
    for (unsigned k = 0; k < POINTS_MAX / 2; k++)
        p.edge[k] = k > 0 ? (p.above[k - 1] + p.above[k]) / 2 : 0;
    return p;
}

typedef float eight __attribute__((vector_size(32)));
typedef int32_t eight_bits __attribute__((vector_size(32)));
typedef uint16_t eight_codes __attribute__((vector_size(16)));
typedef double eight_wide __attribute__((vector_size(64)));

#define INLINED static inline __attribute__((always_inline))

/* yes where the mask's bits are set, else no. */
INLINED eight choose(eight_bits mask, eight yes, eight no) {
    return (eight)((mask & (eight_bits)yes) | (~mask & (eight_bits)no));
}

INLINED eight all_of(float value) {
    return (eight){value, value, value, value, value, value, value, value};
}

/* The nearest points to x, of which 2^b / 2 are above 0. Codes rise with the points. */
INLINED eight nearest(const points *p, int32_t half, eight x, eight_codes *codes) {
    const eight_bits negative = x < all_of(0);
    const eight magnitude = (eight)((eight_bits)x & (int32_t)FLOAT_MAGNITUDE);
    eight_bits index = {0};
    eight q = all_of(p->above[0]);
    for (int32_t k = 1; k < half; k++) {
        const eight_bits beyond = magnitude >= all_of(p->edge[k]);
        index -= beyond;
        q = choose(beyond, all_of(p->above[k]), q);
    }
    *codes = __builtin_convertvector(((index + half) ^ negative) & (2 * half - 1), eight_codes);
    return (eight)((eight_bits)q | (negative & INT32_MIN));
}

INLINED eight points_at(const points *p, int32_t half, eight_codes codes) {
    const eight_bits c = __builtin_convertvector(codes, eight_bits), negative = c < half,
                     index = (c ^ negative) & (half - 1);
    eight q = all_of(p->above[0]);
    for (int32_t k = 1; k < half; k++)
        q = choose(index == k, all_of(p->above[k]), q);
    return (eight)((eight_bits)q | (negative & INT32_MIN));
}

/* ---- encoding ---- */

typedef struct room {
    float piece[ROTATION_PIECE];
    uint16_t codes[ROTATION_PIECE];
} room;

static size_t encoder_bytes(const sl_codec *c) {
    (void)c;
    return sizeof(room);
}

FOR_EACH_CPU(double, sum_of_squares, (const float *u, size_t n), (u, n)) {
    double lanes[SUM_LANES] = {0};
    size_t i = 0;
    for (; i + SUM_LANES <= n; i += SUM_LANES)
        for (size_t l = 0; l < SUM_LANES; l++)
            lanes[l] += (double)u[i + l] * u[i + l];
    for (size_t l = 0; i + l < n; l++)
        lanes[l] += (double)u[i + l] * u[i + l];
    return sum_lanes(lanes);
}

typedef struct products {
    double with, own; /* <u, Q> and ||Q||^2 */
} products;

INLINED double total(eight_wide v) {
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/* Codes of u times `unit`: fours of eight, whose products are added as floats. A shorter block is
 * padded with zeros, which add to ||Q||^2 only. */
INLINED products code_all(const points *p, int32_t half, float unit, const float *u, size_t n,
                          uint16_t *codes) {
    eight_wide with = {0}, own = {0};
    for (size_t i = 0; i < n; i += FOURS) {
        eight w[4], o[4];
        for (size_t k = 0; k < 4; k++) {
            eight x;
            eight_codes c;
            memcpy(&x, u + i + 8 * k, sizeof x);
            const eight q = nearest(p, half, x * unit, &c);
            memcpy(codes + i + 8 * k, &c, sizeof c);
            w[k] = x * q;
            o[k] = q * q;
        }
        with += __builtin_convertvector((w[0] + w[1]) + (w[2] + w[3]), eight_wide);
        own += __builtin_convertvector((o[0] + o[1]) + (o[2] + o[3]), eight_wide);
    }
    return (products){total(with), total(own)};
}

FOR_EACH_CPU(products, quantize,
             (const points *p, unsigned b, float unit, const float *u, size_t n, uint16_t *codes),
             (p, b, unit, u, n, codes)) {
    if (b == 1)
        return code_all(p, 1, unit, u, n, codes);
    if (b == 2)
        return code_all(p, 2, unit, u, n, codes);
    if (b == 3)
        return code_all(p, 4, unit, u, n, codes);
    return code_all(p, 8, unit, u, n, codes);
}

static products quantize_block(const points *p, unsigned b, float unit, const float *u, size_t n,
                               uint16_t *codes) {
    if (n >= FOURS)
        return quantize(p, b, unit, u, n, codes);
    float padded[FOURS] = {0};
    uint16_t padded_codes[FOURS];
    memcpy(padded, u, n * sizeof *u);
    products q = quantize(p, b, unit, padded, FOURS, padded_codes);
    memcpy(codes, padded_codes, n * sizeof *codes);
    q.own -= (double)(FOURS - n) * p->above[0] * p->above[0];
    return q;
}

/* One block, rotated but for 1 / sqrt(n): its codes, and its scale over sqrt(n). */
static bool code_block(const sl_codec *c, const points *p, const float *u, size_t n,
                       uint16_t *codes, float *scale) {
    const double squares = sum_of_squares(u, n);
    const float unit = squares > 0 ? (float)sqrt((double)n / squares) : 0;
    const products q = quantize_block(p, bits_of(&c->config), unit, u, n, codes);
    const double s = c->config.contractive ? q.with / q.own : squares / q.with;
    *scale = squares > 0 ? (float)(s / (double)n) : 0;
    return squares <= DBL_MAX && isfinite(unit) && isfinite(q.with) &&
           *scale < ROTATION_SCALE_LIMIT;
}

/* Elements [at, at + n), a piece; returns the place behind its scales, NULL: not finite. */
static float *encode_piece(sl_encoder *e, const sl_source *source, const points *p, size_t at,
                           size_t n, float *scales, uint8_t *out) {
    const sl_rng_key key = sl_message_key(&e->message);
    room *r = e->memory;
    for (size_t i = 0; i < n; i += SL_BLOCK) {
        const size_t count = n - i < SL_BLOCK ? n - i : SL_BLOCK;
        memcpy(r->piece + i, sl_encoder_read(e, source, at + i, count), count * sizeof(float));
    }
    sl_rotation_signs(&key, at, r->piece, n);
    for (size_t i = 0, block; i < n; i += block) {
        block = sl_rotation_block(n - i);
        sl_rotation_hadamard(r->piece + i, block);
        if (!code_block(e->codec, p, r->piece + i, block, r->codes + i, scales++))
            return NULL;
    }
    for (size_t i = 0; i < n; i += SL_BLOCK)
        sl_pack(r->codes + i, n - i < SL_BLOCK ? n - i : SL_BLOCK, bits_of(&e->codec->config),
                out + codes_bytes(e->codec, i));
    return scales;
}

static size_t piece_at(size_t i, size_t count) {
    return count - i < ROTATION_PIECE ? count - i : ROTATION_PIECE;
}

static int encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                  sl_payload *out) {
    const points p = points_of(bits_of(&e->codec->config));
    size_t from, count;
    sl_codec_part_range(e->codec, part, &from, &count);
    float *scales = buffer;
    uint8_t *codes = (uint8_t *)(scales + sl_rotation_blocks(count));
    for (size_t i = 0; i < count; i += ROTATION_PIECE) {
        scales = encode_piece(e, source, &p, from + i, piece_at(i, count), scales,
                              codes + codes_bytes(e->codec, i));
        if (scales == NULL)
            return SL_EDIVERGED;
    }
    *out = (sl_payload){buffer, part_bytes_of(e->codec, count)};
    return 0;
}

/* ---- decoding ---- */

static size_t decoder_bytes(const sl_codec *c) {
    (void)c;
    return ROTATION_PIECE * sizeof(float);
}

static int check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    const size_t blocks = sl_rotation_blocks(count), used = count * bits_of(&d->codec->config) % 8;
    const float *scales = payload.data;
    if (payload.bytes != part_bytes_of(d->codec, count) || !sl_entries_finite(payload.data, blocks))
        return SL_EPROTO;
    for (size_t i = 0; i < blocks; i++)
        if (!(fabsf(scales[i]) < ROTATION_SCALE_LIMIT))
            return SL_EPROTO;
    return used != 0 && ((const uint8_t *)payload.data)[payload.bytes - 1] >> used != 0 ? SL_EPROTO
                                                                                        : 0;
}

INLINED void to_points_all(const points *p, int32_t half, const uint16_t *codes, size_t n,
                           float *out) {
    for (size_t i = 0; i < n; i += 8) {
        eight_codes c;
        memcpy(&c, codes + i, sizeof c);
        const eight q = points_at(p, half, c);
        memcpy(out + i, &q, sizeof q);
    }
}

/* n is rounded up to eight. */
FOR_EACH_CPU(void, to_points,
             (const points *p, unsigned b, const uint16_t *codes, size_t n, float *out),
             (p, b, codes, n, out)) {
    if (b == 1)
        to_points_all(p, 1, codes, n, out);
    else if (b == 2)
        to_points_all(p, 2, codes, n, out);
    else if (b == 3)
        to_points_all(p, 4, codes, n, out);
    else
        to_points_all(p, 8, codes, n, out);
}

FOR_EACH_CPU(void, scale_by, (float *u, size_t n, float scale), (u, n, scale)) {
    for (size_t i = 0; i < n; i++)
        u[i] *= scale;
}

FOR_EACH_CPU(void, add_all, (const float *u, size_t n, float *acc), (u, n, acc)) {
    for (size_t i = 0; i < n; i++)
        acc[i] += u[i];
}

static const float *add_piece(const sl_decoder *d, const points *p, size_t at, size_t n,
                              const float *scales, const uint8_t *codes, float weight, float *acc) {
    const sl_rng_key key = sl_message_key(&d->message);
    uint16_t unpacked[SL_BLOCK] = {0};
    float *u = d->memory;
    for (size_t i = 0; i < n; i += SL_BLOCK) {
        const size_t count = n - i < SL_BLOCK ? n - i : SL_BLOCK;
        const unsigned b = bits_of(&d->codec->config);
        to_points(p, b, sl_unpack(codes + codes_bytes(d->codec, i), count, b, unpacked), count,
                  u + i);
    }
    for (size_t i = 0, block; i < n; i += block) {
        block = sl_rotation_block(n - i);
        sl_rotation_hadamard(u + i, block);
        scale_by(u + i, block, weight * *scales++);
    }
    sl_rotation_signs(&key, at, u, n);
    add_all(u, n, acc + at);
    return scales;
}

static void add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    const points p = points_of(bits_of(&d->codec->config));
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    const float *scales = payload.data;
    const uint8_t *codes = (const uint8_t *)(scales + sl_rotation_blocks(count));
    for (size_t i = 0; i < count; i += ROTATION_PIECE)
        scales = add_piece(d, &p, from + i, piece_at(i, count), scales,
                           codes + codes_bytes(d->codec, i), weight, acc);
}

#define EDEN_OPERATIONS                                                                            \
    .quality = quality, .bits = bits, .check = check, .lay_out = lay_out,                          \
    .describe = sl_codec_no_kernel, .encoder_bytes = encoder_bytes,                                \
    .decoder_bytes = decoder_bytes, .encode = encode, .check_part = check_part, .add = add

static const sl_key drive_keys[] = {
    {SL_ROW_CONTRACTIVE},
    SL_KEYS_END,
};
static const sl_key eden_keys[] = {
    {SL_OWN_U32(bits, 1, 4), .fallback = "2", .help = "bits of an element"},
    {SL_ROW_CONTRACTIVE},
    SL_KEYS_END,
};

const codec_ops sl_drive_codec = {.keys = drive_keys, EDEN_OPERATIONS};
const codec_ops sl_eden_codec = {.keys = eden_keys, EDEN_OPERATIONS};
