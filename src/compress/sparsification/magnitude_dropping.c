/* magnitude_dropping.c - Wangni, Wang, Liu, Zhang: "Gradient Sparsification for
 * Communication-Efficient Distributed Optimization", NeurIPS 2018.
 *
 * Element j is kept with probability p_j = min(1, lambda |v_j|), and sent as v_j / p_j: E C(v) = v.
 * The p_j add up to k: of all such choices these have the least variance. lambda is found as in the
 * paper's Algorithm 3: what exceeds 1 is cut, and the others share what is left, until nothing
 * exceeds 1. E||C(v) - v||^2 is at most ||v||_1^2 / k - ||v||^2, that of lambda = k / ||v||_1 if
 * it exceeds 1 nowhere, and so omega <= d/k - 1; of a vector with few large elements it is far
 * less.
 *
 * The mask does not follow from the seed: k (32 + ceil(log2 d)) bits, expected. A part is a range
 * of elements, all of which it has room for (listed.h).
 * Element i draws word i % 4 of block i / 4 of the message's quick stream.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/kernels.h"
#include "compress/lossless/indices.h"
#include "compress/own_keys.h"
#include "compress/sparsification/entries.h"
#include "compress/sparsification/listed.h"
#include "element/sum.h"
#include "starling/rng.h"

enum { PASSES = 8, DRAWN = 4 };

/* ---- what is promised ---- */

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    const double k = (double)sl_entries_kept(config, dimension), omega = (double)dimension / k - 1;
    return (sl_quality){.unbiased = true,
                        .omega = omega,
                        .is_contractive = omega < 1,
                        .delta = omega < 1 ? 1 - omega : 0};
}

static double bits(const codec_ops *self, const sl_compressor_config *config, size_t dimension) {
    (void)self;
    return (double)sl_entries_kept(config, dimension) * sl_listed_bits(dimension);
}

/* ---- parts ---- */

/* A multiple of DRAWN; where a part has room for a block, of blocks. */
static void lay_out(sl_codec *c, size_t part_bytes) {
    const size_t fit = part_bytes * 8 / sl_listed_bits(part_bytes / sizeof(float)),
                 unit = fit >= SL_BLOCK ? SL_BLOCK : SL_WORD, n = fit / unit * unit;
    c->k = sl_entries_kept(&c->config, c->dimension);
    c->part_elements = n < c->dimension ? n : c->dimension;
    c->part_bytes_max = sl_listed_bytes(c->part_elements, c->part_elements);
    c->parts = (uint32_t)((c->dimension - 1) / c->part_elements + 1);
}

static void describe(const sl_codec *c, sl_coding *out) {
    out->form = CODING_DRAWN;
    out->room = out->room_last = c->part_elements;
    out->index_width = sl_index_width(c->part_elements);
    out->width_last = sl_index_width(c->dimension - (c->parts - 1) * c->part_elements);
}

/* ---- lambda ---- */

typedef struct room {
    double lambda;
    uint32_t draws[SL_BLOCK];
    float values[SL_BLOCK + 1]; /* keeping writes one behind the last */
    uint64_t indices[];         /* of a part, and one more */
} room;

static size_t encoder_bytes(const sl_codec *c) {
    return sizeof(room) + (c->part_elements + 1) * sizeof(uint64_t);
}

typedef struct shares {
    double below;   /* the sum of the magnitudes that do not reach 1 */
    size_t certain; /* how many do */
} shares;

FOR_EACH_CPU(shares, share, (const float *v, size_t n, double limit), (v, n, limit)) {
    double lanes[SUM_LANES] = {0};
    size_t certain = 0;
    for (size_t i = 0; i < n; i += SUM_LANES)
        for (size_t l = 0; l < SUM_LANES && i + l < n; l++) {
            const double magnitude = fabs((double)v[i + l]);
            const bool is_certain = magnitude >= limit;
            lanes[l] += is_certain ? 0 : magnitude;
            certain += is_certain;
        }
    return (shares){sum_lanes(lanes), certain};
}

/* Of elements from 1 / lambda on, and of those below it. */
static shares share_all(sl_encoder *e, const sl_source *source, double lambda) {
    const size_t d = e->codec->dimension;
    double folds[SUM_FOLDS];
    size_t blocks = 0, certain = 0;
    for (size_t at = 0; at < d; at += SL_BLOCK) {
        const size_t n = d - at < SL_BLOCK ? d - at : SL_BLOCK;
        const shares some = share(sl_encoder_read(e, source, at, n), n, 1 / lambda);
        sum_fold(folds, blocks++, some.below);
        certain += some.certain;
    }
    return (shares){sum_in_order(folds, sum_folds(blocks)), certain};
}

/* lambda only rises, and so do those that are certain; a few passes find all but a trace of k. */
static int begin(sl_encoder *e, const sl_source *source) {
    const size_t k = e->codec->k;
    room *r = e->memory;
    shares s = share_all(e, source, 0);
    r->lambda = k == e->codec->dimension ? DBL_MAX : 0;
    for (int pass = 0; pass < PASSES && s.below > 0 && s.certain < k; pass++) {
        const double lambda = (double)(k - s.certain) / s.below;
        if (!(lambda > r->lambda))
            break;
        r->lambda = lambda;
        s = share_all(e, source, lambda);
    }
    return isfinite(s.below) && isfinite(r->lambda) ? 0 : SL_EDIVERGED;
}

/* ---- payloads ---- */

/* Keeps some of n elements of one block, `index` the first one's in its part; returns how many. */
FOR_EACH_CPU(size_t, keep,
             (const float *v, const uint32_t *draws, size_t n, size_t index, double lambda,
              float *values, uint64_t *indices),
             (v, draws, n, index, lambda, values, indices)) {
    const float scaled = (float)(1 / lambda);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const double p = fabs((double)v[i]) * lambda;
        values[kept] = p >= 1 ? v[i] : copysignf(scaled, v[i]);
        indices[kept] = index + i;
        kept += (double)draws[i] < p * 0x1p32;
    }
    return kept;
}

static int encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                  sl_payload *out) {
    const sl_rng_key key = sl_message_key(&e->message);
    room *r = e->memory;
    uint8_t *bytes = buffer;
    size_t from, count, kept = 0;
    sl_codec_part_range(e->codec, part, &from, &count);
    for (size_t at = from, n; at < from + count; at += n) {
        const size_t in_block = at % SL_BLOCK, left = e->codec->dimension - (at - in_block);
        const float *block =
            sl_encoder_read(e, source, at - in_block, left < SL_BLOCK ? left : SL_BLOCK);
        n = from + count - at < SL_BLOCK - in_block ? from + count - at : SL_BLOCK - in_block;
        sl_rng_quick_blocks(&key, (uint32_t)(at / DRAWN), (n + DRAWN - 1) / DRAWN, r->draws);
        const size_t some =
            keep(block + in_block, r->draws, n, at - from, r->lambda, r->values, r->indices + kept);
        memcpy(bytes + kept * sizeof(float), r->values, some * sizeof(float));
        kept += some;
    }
    *out = (sl_payload){buffer, sl_listed_put(r->indices, kept, count, bytes)};
    return sl_entries_finite(buffer, kept) ? 0 : SL_EDIVERGED;
}

static int check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    return sl_listed_allowed(payload, count) ? 0 : SL_EPROTO;
}

static void add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    sl_listed_add(payload, count, weight, acc + from);
}

static const sl_key keys[] = {
    SL_ROWS_ENTRIES(" on average"),
    {SL_ROW_CONTRACTIVE},
    SL_KEYS_END,
};

const codec_ops sl_magnitude_dropping_codec = {.keys = keys,
                                               .quality = quality,
                                               .bits = bits,
                                               .check = sl_entries_check,
                                               .lay_out = lay_out,
                                               .describe = describe,
                                               .encoder_bytes = encoder_bytes,
                                               .begin = begin,
                                               .encode = encode,
                                               .check_part = check_part,
                                               .add = add};
