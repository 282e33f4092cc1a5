/* messages.h - messages of compressors, for their tests: vectors, an encoder, a decoder and the
 * bytes between them. */
#ifndef STARLING_TEST_MESSAGES_H
#define STARLING_TEST_MESSAGES_H

#include "harness.h"

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

#define LENGTH(array) (sizeof(array) / sizeof *(array))
#define EACH(type, at, ...)                                                                        \
    for (const type all_##at[] = {__VA_ARGS__}, *at = all_##at; at < all_##at + LENGTH(all_##at);  \
         at++)

/* A row of a table, and one that stands alone. */
#define KIND(suffix, ...)                                                                          \
    { .kind = SL_COMPRESSOR_##suffix, __VA_ARGS__ }
#define CONFIG(suffix, ...) ((sl_compressor_config)KIND(suffix, __VA_ARGS__))

enum { PART_SMALL = 4096, PART_USUAL = 1 << 16, PART_ALL = 1 << 30 };

static const sl_message message = {.seed = 7, .exchange = 3, .sender = 2, .stage = 1};

static inline const char *name_of(const sl_compressor_config *c) {
    static char text[200];
    snprintf(text, sizeof text,
             "%s k %u levels %u bits %u bucket %u fraction %g norm %d contractive %d coding %d",
             sl_compressor_name(c->kind), (unsigned)c->k, c->levels, c->bits, c->bucket,
             c->fraction, (int)c->norm, c->contractive, (int)c->coding);
    return text;
}

/* ---- vectors: released behind the test ---- */

static inline void release_floats(void *v) {
    sl_vec_cpu()->release(v);
}

static inline float *floats(size_t d) {
    float *v = sl_vec_cpu()->allocate(d);
    ck_assert_ptr_nonnull(v);
    return close_behind(v, release_floats);
}

static inline float *normal(size_t d, uint32_t stream, uint64_t round, uint32_t purpose) {
    float *v = floats(d);
    sl_rng rng = sl_rng_open(11, stream, round, purpose);
    for (size_t i = 0; i < d; i++)
        v[i] = (float)sl_rng_normal(&rng);
    return v;
}

static inline float *gaussian(size_t d, uint32_t stream) {
    return normal(d, stream, d, SL_PURPOSE_INIT);
}

static inline void expect_equal(const float *got, const float *expected, size_t d) {
    for (size_t i = 0; i < d; i++)
        ENSURE(got[i] == expected[i], "element %zu of %zu: %g instead of %g", i, d, (double)got[i],
               (double)expected[i]);
}

/* ---- an encoder, a decoder and the bytes between them: closed behind the test, or before ---- */

typedef struct wire {
    sl_codec *codec;
    sl_encoder *encoder;
    sl_decoder *decoder;
    size_t dimension, stride; /* bytes from part to part */
    uint8_t *bytes;
    sl_payload *parts;
} wire;

CLOSER(sl_encoder);
CLOSER(sl_decoder);
CLOSER(sl_codec);

static inline wire open_around(sl_codec *codec, size_t dimension, size_t part_bytes) {
    wire w = {.codec = codec, .dimension = dimension};
    const size_t parts = sl_codec_parts(codec), most = sl_codec_part_bytes_max(codec);
    sl_error error = {0};
    EXPECT_WELL(sl_encoder_open(&w.encoder, codec, sl_vec_cpu(), &error));
    EXPECT_WELL(sl_decoder_open(&w.decoder, codec, sl_vec_cpu(), &error));
    ck_assert_uint_le(most, part_bytes);
    w.stride = (most + 63) / 64 * 64;
    w.bytes = aligned_alloc(64, w.stride * parts);
    w.parts = calloc(parts, sizeof *w.parts);
    ck_assert(w.bytes != NULL && w.parts != NULL);
    close_behind(codec, close_sl_codec);
    close_behind(w.encoder, close_sl_encoder);
    close_behind(w.decoder, close_sl_decoder);
    close_behind(w.bytes, free);
    close_behind(w.parts, free);
    memset(w.bytes, 0xA5, w.stride * parts);
    return w;
}

static inline wire open_wire(const sl_compressor_config *config, size_t dimension,
                             size_t part_bytes) {
    sl_codec *codec = NULL;
    sl_error error = {0};
    ENSURE(sl_codec_open(&codec, config, dimension, part_bytes, &error) == 0, "%s", error.text);
    return open_around(codec, dimension, part_bytes);
}

static inline void close_wire(const wire *w) {
    close_now(w->parts);
    close_now(w->bytes);
    close_now(w->decoder);
    close_now(w->encoder);
    close_now(w->codec);
}

/* Nothing is written behind a part: of a coded one, behind the longest. */
static inline int send_from(wire *w, const sl_message *m, const sl_source *source) {
    const bool is_tight =
        w->codec->ops->dense != NULL && w->codec->config.coding == SL_ENTROPY_NONE;
    int result = sl_encoder_begin(w->encoder, m, source);
    for (uint32_t p = 0; result == 0 && p < sl_codec_parts(w->codec); p++) {
        result = sl_encoder_part(w->encoder, p, source, w->bytes + p * w->stride, w->parts + p);
        const size_t most = sl_codec_part_bytes_max(w->codec);
        ENSURE(result != 0 || w->parts[p].bytes <= most, "%zu bytes", w->parts[p].bytes);
        for (size_t i = is_tight ? w->parts[p].bytes : most; result == 0 && i < w->stride; i++)
            ENSURE(w->bytes[p * w->stride + i] == 0xA5, "wrote behind part %u", p);
    }
    return result;
}

static inline int send_vector(wire *w, const sl_message *m, const float *v) {
    return send_from(w, m, &(sl_source){.vector = v});
}

/* Checked, and added where acc is given, in just as much memory as it has bytes: a sanitizer sees
 * what is read behind it. */
static inline int take_part(wire *w, const sl_message *m, uint32_t part, sl_payload payload,
                            float weight, float *acc) {
    uint8_t *exact = malloc(payload.bytes > 0 ? payload.bytes : 1);
    if (payload.bytes > 0)
        memcpy(exact, payload.data, payload.bytes);
    payload.data = exact;
    const int result = sl_decoder_check(w->decoder, m, part, payload);
    ENSURE(result == 0 || result == SL_EPROTO, "%d", result);
    if (result == 0 && acc != NULL)
        sl_decoder_add(w->decoder, m, part, payload, weight, acc);
    free(exact);
    return result;
}

static inline void receive(wire *w, const sl_message *m, float weight, float *acc) {
    for (uint32_t p = sl_codec_parts(w->codec); p-- > 0;)
        ENSURE(take_part(w, m, p, w->parts[p], weight, acc) == 0, "%s: part %u was refused",
               name_of(&w->codec->config), p);
}

static inline size_t message_bytes(const wire *w) {
    size_t bytes = 0;
    for (uint32_t p = 0; p < sl_codec_parts(w->codec); p++)
        bytes += w->parts[p].bytes;
    return bytes;
}

/* Decoded with weight 1, onto zeros. */
static inline float *through_of(const sl_compressor_config *config, const sl_source *source,
                                size_t d, size_t part_bytes) {
    wire w = open_wire(config, d, part_bytes);
    float *out = floats(d);
    ENSURE(send_from(&w, &message, source) == 0, "%s, d %zu: not sent", name_of(config), d);
    receive(&w, &message, 1, out);
    close_wire(&w);
    return out;
}

static inline float *through(const sl_compressor_config *config, const float *v, size_t d,
                             size_t part_bytes) {
    return through_of(config, &(sl_source){.vector = v}, d, part_bytes);
}

#endif
