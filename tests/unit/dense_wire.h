/* dense_wire.h - for tests of the dense-coded compressors: an encoder, a decoder and the bytes
 * between them, vectors, and each kind of compressor. */
#ifndef STARLING_TEST_DENSE_WIRE_H
#define STARLING_TEST_DENSE_WIRE_H

#include "harness.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "compress/codec.h"
#include "starling/compressor.h"
#include "starling/rng.h"

/* Check notes each of its own assertions in a file: too slow for those of each element. */
#define ENSURE(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

enum { PART_SMALL = 4096, PART_USUAL = 112 * 1024, PART_LARGE = 512 * 1024 };

static const sl_message message = {
    .seed = 0x5EED0123456789ABu, .exchange = 5, .sender = 3, .stage = 2};

/* ---- an encoder, a decoder and the bytes between them ---- */

typedef struct wire {
    sl_codec *codec;
    sl_encoder *encoder;
    sl_decoder *decoder;
    size_t dimension, stride; /* bytes from part to part */
    uint8_t *bytes;
    sl_payload *parts;
} wire;

static inline wire open_wire(const sl_compressor_config *config, size_t dimension,
                             size_t part_bytes) {
    wire w = {.dimension = dimension};
    sl_error error = {0};
    ENSURE(sl_codec_open(&w.codec, config, dimension, part_bytes, &error) == 0, "%s", error.text);
    ck_assert_int_eq(sl_encoder_open(&w.encoder, w.codec, sl_vec_cpu(), &error), 0);
    ck_assert_int_eq(sl_decoder_open(&w.decoder, w.codec, sl_vec_cpu(), &error), 0);
    ck_assert_uint_le(sl_codec_part_bytes_max(w.codec), part_bytes);
    w.stride = (sl_codec_part_bytes_max(w.codec) + 63) / 64 * 64;
    w.bytes = aligned_alloc(64, w.stride * sl_codec_parts(w.codec));
    w.parts = calloc(sl_codec_parts(w.codec), sizeof *w.parts);
    ck_assert(w.bytes != NULL && w.parts != NULL);
    memset(w.bytes, 0xA5, w.stride * sl_codec_parts(w.codec));
    return w;
}

static inline void close_wire(wire *w) {
    sl_encoder_close(&w->encoder);
    sl_decoder_close(&w->decoder);
    sl_codec_close(&w->codec);
    free(w->bytes);
    free(w->parts);
}

static inline int send_from(wire *w, const sl_message *m, const sl_source *source) {
    int result = sl_encoder_begin(w->encoder, m, source);
    for (uint32_t p = 0; result == 0 && p < sl_codec_parts(w->codec); p++) {
        result = sl_encoder_part(w->encoder, p, source, w->bytes + p * w->stride, w->parts + p);
        for (size_t i = w->parts[p].bytes; result == 0 && i < w->stride; i++)
            ENSURE(w->bytes[p * w->stride + i] == 0xA5, "wrote behind part %u", p);
    }
    return result;
}

static inline int send_vector(wire *w, const sl_message *m, const float *v) {
    return send_from(w, m, &(sl_source){.vector = v});
}

static inline void receive(wire *w, const sl_message *m, float weight, float *acc) {
    for (uint32_t p = sl_codec_parts(w->codec); p-- > 0;) {
        ENSURE(sl_decoder_check(w->decoder, m, p, w->parts[p]) == 0, "part %u was refused", p);
        sl_decoder_add(w->decoder, m, p, w->parts[p], weight, acc);
    }
}

static inline float *floats(size_t n) {
    float *v = calloc(n, sizeof *v);
    ck_assert(v != NULL);
    return v;
}

/* Decoded with weight 1, onto zeros; to be freed. */
static inline float *through(const sl_compressor_config *config, const float *v, size_t n) {
    wire w = open_wire(config, n, PART_USUAL);
    float *out = floats(n);
    ck_assert_int_eq(send_vector(&w, &message, v), 0);
    receive(&w, &message, 1, out);
    close_wire(&w);
    return out;
}

static inline float *gaussian(size_t n, uint32_t rank) {
    float *v = floats(n);
    sl_rng rng = sl_rng_open(11, rank, 0, SL_PURPOSE_DATA);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)sl_rng_normal(&rng);
    return v;
}

/* Numbers of all sizes, with zeros of both signs, subnormals and repeated ones. */
static inline float *motley(size_t n, uint32_t rank) {
    float *v = gaussian(n, rank);
    static const float odd[] = {0,         -0.0f, 1,      -1,    0x1p-149f, -0x1p-127f,
                                0x1p-126f, 3e-5f, -6e-8f, 60000, -0.5f,     0x1.fffffep-1f};
    for (size_t i = 0; i < n; i += 1 + i % 5)
        v[i] = odd[(i + rank) % (sizeof odd / sizeof *odd)];
    return v;
}

static inline double squared(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((double)a[i] - (b ? b[i] : 0)) * ((double)a[i] - (b ? b[i] : 0));
    return sum;
}

static const sl_compressor_config kinds[] = {
    {.kind = SL_COMPRESSOR_FLOAT16},
    {.kind = SL_COMPRESSOR_BFLOAT16},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 1},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 512},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 4, .bucket = 1000},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 100, .norm = SL_NORM_MAX},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 127, .bucket = 3072},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 130, .bucket = 4},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 3000, .bucket = 4096, .contractive = true},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 32767, .bucket = 70000, .norm = SL_NORM_MAX},
    {.kind = SL_COMPRESSOR_SCALED_SIGN},
    {.kind = SL_COMPRESSOR_SCALED_SIGN, .bucket = 512},
    {.kind = SL_COMPRESSOR_SCALED_SIGN, .bucket = 1000},
    {.kind = SL_COMPRESSOR_SCALED_SIGN, .bucket = 13},
    {.kind = SL_COMPRESSOR_SCALED_SIGN,
     .bucket = 266240}, /* each of 262144, which go at once, and some more */
    {.kind = SL_COMPRESSOR_ONE_BIT},
    {.kind = SL_COMPRESSOR_ONE_BIT, .bucket = 2048},
    {.kind = SL_COMPRESSOR_ONE_BIT, .bucket = 4},
    {.kind = SL_COMPRESSOR_TERNGRAD},
    {.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 64, .contractive = true},
    {.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 777},
    {.kind = SL_COMPRESSOR_TERNGRAD, .clip_sigma = 2.5},
    {.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 100, .clip_sigma = 1.5},
    {.kind = SL_COMPRESSOR_NATURAL},
    {.kind = SL_COMPRESSOR_NATURAL, .contractive = true},
    {.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 0.75},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const char *describe(const sl_compressor_config *c) {
    static char text[128];
    snprintf(text, sizeof text, "%s levels %u bucket %u norm %d contractive %d",
             sl_compressor_name(c->kind), c->levels, c->bucket, (int)c->norm, c->contractive);
    return text;
}

/* ---- what is known of the format ---- */

static inline uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float value_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline size_t bucket_of(const sl_compressor_config *c, size_t d) {
    return c->bucket == 0 || c->bucket > d ? d : c->bucket;
}

static inline bool has_buckets(const sl_compressor_config *c) {
    return c->kind == SL_COMPRESSOR_QSGD || c->kind == SL_COMPRESSOR_SCALED_SIGN ||
           c->kind == SL_COMPRESSOR_ONE_BIT || c->kind == SL_COMPRESSOR_TERNGRAD;
}

static inline unsigned bits_of_levels(uint32_t levels) {
    unsigned bits = 0;
    while ((uint64_t)levels + 1 > (uint64_t)1 << bits)
        bits++;
    return bits;
}

static inline unsigned width_of(const sl_compressor_config *c) {
    switch (c->kind) {
    case SL_COMPRESSOR_FLOAT16:
    case SL_COMPRESSOR_BFLOAT16:
        return 16;
    case SL_COMPRESSOR_QSGD:
        return 1 + bits_of_levels(c->levels);
    case SL_COMPRESSOR_TERNGRAD:
    case SL_COMPRESSOR_THRESHOLD:
        return 2;
    case SL_COMPRESSOR_NATURAL:
        return 9;
    default:
        return 1;
    }
}

#endif
