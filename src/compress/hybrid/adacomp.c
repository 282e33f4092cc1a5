/* adacomp.c - AdaComp: Chen, Choi, Brand, Agrawal, Zhang, Gopalakrishnan, "AdaComp: Adaptive
 * Residual Gradient Compression for Data-Parallel Distributed Training", AAAI 2018, Algorithm 2.
 *
 *   G = e + g: what is left of earlier messages, and what is new;  H = G + g
 *   in each bin of T elements: M = max |G|;  where |H_j| >= M:  sign(G_j) scale, else 0
 *   scale = the mean of M over all bins
 *
 * An encoder of two inputs: G, and g (sl_source.fresh). What is small, but grows by more than it
 * lacks in one step, is sent before it is the largest. An element of 0 is not sent, nor is a bin of
 * zeros: sign(0) is 0. The sender keeps G - C(G). Nothing bounds the error: a small element that is
 * sent may become far larger.
 *
 * A part is a range of bins: scale, float32 | for each bin how many are sent, ceil(log2(T + 1))
 * bits | for each of these its rising index in the bin, ceil(log2 T) bits, and 1 if it is negative.
 * Bits are written from the highest one of a byte on.
 */
#include <math.h>

#include "base/kernels.h"
#include "compress/lossless/bit_stream.h"
#include "compress/lossless/indices.h"
#include "compress/own_keys.h"
#include "compress/quantization/dense.h"
#include "compress/quantization/threshold.h"

enum { BIN_MAX = 16384 };

typedef struct widths {
    unsigned count, entry; /* bits */
} widths;

static widths widths_of(size_t bin) {
    return (widths){sl_index_width(bin + 1), sl_index_width(bin) + 1};
}

static size_t bins_of(size_t elements, size_t bin) {
    return (elements - 1) / bin + 1;
}

/* Where every element is sent. */
static size_t bits_of(size_t elements, size_t bin) {
    const widths w = widths_of(bin);
    return bins_of(elements, bin) * w.count + elements * w.entry;
}

static double bits(const codec_ops *self, const sl_compressor_config *config, size_t dimension) {
    (void)self;
    return (double)bits_of(dimension, config->bin) + 32;
}

static int check(const sl_compressor_config *config, size_t dimension, sl_error *error) {
    (void)dimension;
    if (config->bin >= 1 && config->bin <= BIN_MAX)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "algorithm.compressor.bin: %u is not allowed; it must be from 1 to %d",
                   config->bin, BIN_MAX);
}

/* ---- parts ---- */

static void lay_out(sl_codec *c, size_t part_bytes) {
    const size_t bin = c->config.bin, fit = (part_bytes - sizeof(float)) * 8 / bits_of(bin, bin),
                 most = DENSE_PART_ELEMENTS / bin, bins = fit < most ? fit : most;
    c->part_elements = (bins > 1 ? bins : 1) * bin;
    if (c->part_elements > c->dimension)
        c->part_elements = c->dimension;
    c->part_bytes_max = sizeof(float) + (bits_of(c->part_elements, bin) + 7) / 8;
    c->parts = (uint32_t)((c->dimension - 1) / c->part_elements + 1);
}

/* ---- encoding ---- */

typedef struct room {
    float scale;
    uint32_t *chosen; /* (bin + 1) index << 1 | is negative; choosing writes one behind the last */
    uint32_t largest[]; /* (bins) bits of M, then `chosen` */
} room;

static size_t encoder_bytes(const sl_codec *c) {
    return sizeof(room) +
           (bins_of(c->dimension, c->config.bin) + c->config.bin + 1) * sizeof(uint32_t);
}

/* Elements from `at` on that are of one bin, of one block and below `end`. */
static size_t piece_of(size_t at, size_t bin, size_t end) {
    const size_t in_bin = bin - at % bin, in_block = SL_BLOCK - at % SL_BLOCK,
                 n = in_bin < in_block ? in_bin : in_block;
    return n < end - at ? n : end - at;
}

FOR_EACH_CPU(uint32_t, largest_of, (const float *v, size_t n), (v, n)) {
    uint32_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = float_bits(v[i]) & FLOAT_MAGNITUDE;
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

static int begin(sl_encoder *e, const sl_source *source) {
    const size_t d = e->codec->dimension, bin = e->codec->config.bin, bins = bins_of(d, bin);
    room *r = e->memory;
    const float *block = NULL;
    double sum = 0;
    r->chosen = r->largest + bins;
    memset(r->largest, 0, bins * sizeof *r->largest);
    for (size_t at = 0, n; at < d; at += n) {
        n = piece_of(at, bin, d);
        if (at % SL_BLOCK == 0)
            block = sl_encoder_read(e, source, at, d - at < SL_BLOCK ? d - at : SL_BLOCK);
        const uint32_t found = largest_of(block + at % SL_BLOCK, n);
        if (found >= FLOAT_INFINITY)
            return SL_EDIVERGED;
        if (found > r->largest[at / bin])
            r->largest[at / bin] = found;
    }
    for (size_t i = 0; i < bins; i++)
        sum += (double)float_of(r->largest[i]);
    r->scale = (float)(sum / (double)bins);
    return 0;
}

/* Lists those of n elements that are sent, `index` the first one's in the bin. */
FOR_EACH_CPU(size_t, choose,
             (const float *v, const float *fresh, size_t n, uint32_t index, float largest,
              uint32_t *chosen),
             (v, fresh, n, index, largest, chosen)) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        chosen[count] = (index + (uint32_t)i) << 1 | (v[i] < 0);
        count += (fabsf(v[i] + fresh[i]) >= largest) & (v[i] != 0);
    }
    return count;
}

static void put_bin(bit_writer *w, widths width, const uint32_t *chosen, size_t count) {
    put(w, count, width.count);
    for (size_t i = 0; i < count; i++)
        put(w, chosen[i], width.entry);
}

static int encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                  sl_payload *out) {
    const size_t d = e->codec->dimension, bin = e->codec->config.bin;
    room *r = e->memory;
    size_t from, count, chosen = 0;
    sl_codec_part_range(e->codec, part, &from, &count);
    uint8_t *bytes = buffer;
    bit_writer w = {.at = bytes + sizeof r->scale, .end = bytes + e->codec->part_bytes_max};
    memcpy(bytes, &r->scale, sizeof r->scale);
    const float *block = NULL;
    for (size_t at = from, n; at < from + count; at += n) {
        const size_t in_block = at % SL_BLOCK, left = d - (at - in_block);
        n = piece_of(at, bin, from + count);
        if (block == NULL || in_block == 0)
            block = sl_encoder_read(e, source, at - in_block, left < SL_BLOCK ? left : SL_BLOCK);
        chosen +=
            choose(block + in_block, source->fresh != NULL ? source->fresh + at : block + in_block,
                   n, (uint32_t)(at % bin), float_of(r->largest[at / bin]), r->chosen + chosen);
        if ((at + n) % bin == 0 || at + n == d) {
            put_bin(&w, widths_of(bin), r->chosen, chosen);
            chosen = 0;
        }
    }
    finish(&w);
    *out = (sl_payload){buffer, (size_t)(w.at - bytes)};
    return 0;
}

/* ---- decoding ---- */

/* A bin of n elements: their number, or more than n if the entries are not as they must be. Adds
 * value or its negative to each; acc NULL: only looks. */
static size_t take_bin(bit_reader *r, widths width, size_t n, float value, float *acc) {
    const size_t count = take(r, width.count);
    size_t next = 0;
    for (size_t i = 0; i < count && count <= n; i++) {
        const size_t entry = take(r, width.entry), index = entry >> 1;
        if (index < next || index >= n)
            return n + 1;
        next = index + 1;
        if (acc != NULL)
            acc[index] += entry & 1 ? -value : value;
    }
    return count;
}

/* false: not just a message of these elements. */
static bool take_part(const sl_codec *c, sl_payload payload, size_t elements, float value,
                      float *acc) {
    const size_t bin = c->config.bin;
    bit_reader r = {.bytes = (const uint8_t *)payload.data + sizeof(float),
                    .count = payload.bytes - sizeof(float)};
    for (size_t at = 0; at < elements; at += bin) {
        const size_t n = elements - at < bin ? elements - at : bin;
        if (take_bin(&r, widths_of(bin), n, value, acc != NULL ? acc + at : NULL) > n)
            return false;
    }
    return is_all(&r);
}

static int check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    float scale;
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    if (payload.bytes < sizeof scale)
        return SL_EPROTO;
    memcpy(&scale, payload.data, sizeof scale);
    return float_bits(scale) < FLOAT_INFINITY && take_part(d->codec, payload, count, 0, NULL)
               ? 0
               : SL_EPROTO;
}

static void add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    float scale;
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    memcpy(&scale, payload.data, sizeof scale);
    take_part(d->codec, payload, count, weight * scale, acc + from);
}

static const sl_key keys[] = {
    {SL_OWN_U32(bin, 1, 16384), .fallback = "500",
     .help = "T; elements of which the largest says what is sent"},
    SL_KEYS_END,
};

const codec_ops sl_adacomp_codec = {.keys = keys,
                                    .reads_fresh = true,
                                    .quality = sl_threshold_quality,
                                    .bits = bits,
                                    .check = check,
                                    .lay_out = lay_out,
                                    .describe = sl_codec_no_kernel,
                                    .encoder_bytes = encoder_bytes,
                                    .begin = begin,
                                    .encode = encode,
                                    .check_part = check_part,
                                    .add = add};
