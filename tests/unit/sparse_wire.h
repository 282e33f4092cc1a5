/* sparse_wire.h - messages of the sparse compressors, encoded and decoded, for the tests. */
#ifndef STARLING_TEST_SPARSE_WIRE_H
#define STARLING_TEST_SPARSE_WIRE_H

#include <math.h>
#include <string.h>

#include "compress/codec.h"
#include "harness.h"
#include "starling/rng.h"

enum { ONE_PART = 1 << 30, SMALL_PART = 4096 };

static const sl_message a_message = {.seed = 7, .exchange = 3, .sender = 2, .stage = 1};

/* ---- vectors ---- */

static inline float *vector_of(size_t d) {
    return sl_vec_cpu()->allocate(d);
}

static inline float *gaussian(size_t d, uint32_t stream) {
    sl_rng rng = sl_rng_open(11, stream, d, SL_PURPOSE_INIT);
    float *v = vector_of(d);
    for (size_t i = 0; i < d; i++)
        v[i] = (float)sl_rng_normal(&rng);
    return v;
}

static inline void release(float *v) {
    sl_vec_cpu()->release(v);
}

/* ---- messages ---- */

typedef struct pair {
    sl_codec *codec;
    sl_encoder *encoder;
    sl_decoder *decoder;
    uint8_t *buffer; /* (parts, part_bytes_max rounded up to 64) */
    sl_payload *payloads;
} pair;

static inline pair open_pair(sl_compressor_config config, size_t d, size_t part_bytes) {
    pair p = {0};
    sl_error error = {0};
    ck_assert_msg(sl_codec_open(&p.codec, &config, d, part_bytes, &error) == 0, "%s", error.text);
    ck_assert_uint_le(sl_codec_part_bytes_max(p.codec), part_bytes);
    ck_assert_int_eq(sl_encoder_open(&p.encoder, p.codec, sl_vec_cpu(), &error), 0);
    ck_assert_int_eq(sl_decoder_open(&p.decoder, p.codec, sl_vec_cpu(), &error), 0);
    size_t stride = (sl_codec_part_bytes_max(p.codec) + 63) / 64 * 64,
           parts = sl_codec_parts(p.codec);
    p.buffer = aligned_alloc(64, stride * parts);
    p.payloads = calloc(parts, sizeof *p.payloads);
    ck_assert(p.buffer != NULL && p.payloads != NULL);
    return p;
}

static inline void close_pair(pair *p) {
    sl_decoder_close(&p->decoder);
    sl_encoder_close(&p->encoder);
    sl_codec_close(&p->codec);
    free(p->buffer);
    free(p->payloads);
}

static inline int encode(pair *p, const sl_message *message, const sl_source *source) {
    size_t stride = (sl_codec_part_bytes_max(p->codec) + 63) / 64 * 64;
    int result = sl_encoder_begin(p->encoder, message, source);
    for (uint32_t part = 0; result == 0 && part < sl_codec_parts(p->codec); part++) {
        result = sl_encoder_part(p->encoder, part, source, p->buffer + part * stride,
                                 &p->payloads[part]);
        ck_assert(result != 0 || p->payloads[part].bytes <= sl_codec_part_bytes_max(p->codec));
    }
    return result;
}

static inline int encode_vector(pair *p, const sl_message *message, const float *v) {
    return encode(p, message, &(sl_source){.vector = v});
}

static inline void decode(pair *p, const sl_message *message, float weight, float *acc) {
    for (uint32_t part = sl_codec_parts(p->codec); part-- > 0;) {
        ck_assert_int_eq(sl_decoder_check(p->decoder, message, part, p->payloads[part]), 0);
        sl_decoder_add(p->decoder, message, part, p->payloads[part], weight, acc);
    }
}

static inline size_t message_bytes(const pair *p) {
    size_t bytes = 0;
    for (uint32_t part = 0; part < sl_codec_parts(p->codec); part++)
        bytes += p->payloads[part].bytes;
    return bytes;
}

/* decode(encode(v)), all zeros before. */
static inline float *round_trip(sl_compressor_config config, const float *v, size_t d,
                                size_t part_bytes) {
    pair p = open_pair(config, d, part_bytes);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    float *decoded = vector_of(d);
    decode(&p, &a_message, 1, decoded);
    close_pair(&p);
    return decoded;
}

static inline void expect_equal(const float *got, const float *expected, size_t d) {
    for (size_t i = 0; i < d; i++)
        if (got[i] != expected[i]) /* an assertion for each of a million elements takes a minute */
            ck_abort_msg("element %zu of %zu: %g instead of %g", i, d, (double)got[i],
                         (double)expected[i]);
}

static inline sl_compressor_config top_k(size_t k) {
    return (sl_compressor_config){.kind = SL_COMPRESSOR_TOP_K, .k = k};
}

static inline sl_compressor_config random_k(size_t k, bool scaled) {
    return (sl_compressor_config){.kind = SL_COMPRESSOR_RANDOM_K, .k = k, .scaled = scaled};
}

static inline sl_compressor_config dropping(double p, bool scaled) {
    return (sl_compressor_config){
        .kind = SL_COMPRESSOR_RANDOM_DROPPING, .probability = p, .scaled = scaled};
}

static inline sl_compressor_config marking(sl_compressor_kind kind, size_t k) {
    return (sl_compressor_config){.kind = kind, .k = k, .threshold = 2.5};
}

/* The configurations that tests of all sparse compressors run through: lengths of the last one's
 * messages vary. */
static inline sl_compressor_config any_config(int i, size_t d) {
    switch (i) {
    case 0:
        return top_k(d / 100 + 1);
    case 1:
        return top_k(d / 3 + 1);
    case 2:
        return random_k(d / 100 + 1, true);
    case 3:
        return random_k(d * 2 / 3 + 1, false);
    case 4:
        return dropping(0.02, true);
    case 5:
        return dropping(0.7, false);
    case 6:
        return marking(SL_COMPRESSOR_STC, d / 100 + 1);
    case 7:
        return marking(SL_COMPRESSOR_SBC, d / 100 + 1);
    case 8:
        return marking(SL_COMPRESSOR_POS_NEG, d / 100 + 1);
    default:
        return marking(SL_COMPRESSOR_STROM, 0);
    }
}
enum { RANDOM = 2, MARKING = 6, STROM = 9, CONFIGS };

#endif
