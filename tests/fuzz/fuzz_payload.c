/* fuzz_payload.c - what a peer may send as a part of a compressed vector. The first bytes choose
 * the compressor, its parameters, the length and the part; the rest is the payload. What
 * sl_decoder_check lets through must add no more than it should, and the dense-coded compressors
 * only finite numbers. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "starling/compressor.h"

enum { DIMENSION_MAX = 5000, CHOICE_BYTES = 16, GUARD = 64 };

static uint32_t two_bytes(const uint8_t *at) {
    return at[0] | (uint32_t)at[1] << 8;
}

static sl_compressor_config choose(const uint8_t *data, size_t *dimension, uint32_t *part,
                                   sl_message *message) {
    *dimension = 1 + two_bytes(data + 1) % DIMENSION_MAX;
    *part = data[3] % 8;
    *message = (sl_message){.seed = 1, .exchange = data[4], .sender = 2, .stage = data[5]};
    return (sl_compressor_config){
        .kind = (sl_compressor_kind)(data[0] % SL_COMPRESSOR_KINDS),
        .k = 1 + two_bytes(data + 6) % *dimension,
        .levels = two_bytes(data + 8),
        .bits = 1 + data[9] % 24,
        .bucket = two_bytes(data + 10) % (DIMENSION_MAX + 2),
        .norm = data[12] % 2 ? SL_NORM_MAX : SL_NORM_L2,
        .probability = (data[13] + 1) / 256.0,
        .threshold = (data[14] + 1) / 256.0,
        .bin = 1 + two_bytes(data + 10) % 2000,
        .order = (sl_order)(data[15] >> 2 & 1),
        .multiplier = 1 + data[14] / 256.0,
        .theta = (data[14] + 1) / 256.0,
        .coding = (sl_entropy)((data[12] >> 1) % 4),
        .scaled = data[15] & 1,
        .contractive = data[15] >> 1 & 1,
    };
}

/* Identity takes any float, and those that keep some entries may scale them. */
static bool is_bounded(sl_compressor_kind kind) {
    return kind != SL_COMPRESSOR_IDENTITY && kind != SL_COMPRESSOR_TOP_K &&
           kind != SL_COMPRESSOR_RANDOM_K && kind != SL_COMPRESSOR_SHARED_MASK &&
           kind != SL_COMPRESSOR_RANDOM_DROPPING && kind != SL_COMPRESSOR_MAGNITUDE_DROPPING;
}

/* Everything outside the part's range stays as it was, and half of what a code stands for is
 * finite. */
static void add(const sl_codec *codec, sl_decoder *decoder, const sl_message *message,
                uint32_t part, sl_payload payload, size_t dimension, bool bounded) {
    float *memory = calloc(dimension + 2 * GUARD, sizeof *memory), *acc = memory + GUARD;
    size_t from, count;
    assert(memory != NULL);
    sl_decoder_add(decoder, message, part, payload, 0.5f, acc);
    sl_codec_part_range(codec, part, &from, &count);
    for (size_t i = 0; i < dimension + 2 * GUARD; i++) {
        assert(!bounded || isfinite(memory[i]));
        assert((i >= GUARD + from && i < GUARD + from + count) || memory[i] == 0);
    }
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < CHOICE_BYTES)
        return 0;
    size_t dimension, bytes = size - CHOICE_BYTES;
    uint32_t part;
    sl_message message;
    sl_compressor_config config = choose(data, &dimension, &part, &message);
    sl_codec *codec;
    sl_decoder *decoder;
    if (sl_codec_open(&codec, &config, dimension, 4096, NULL) != 0)
        return 0;
    uint64_t *aligned =
        malloc(bytes > 0 ? bytes : 1); /* just as long: the sanitizer sees what goes over it */
    if (aligned != NULL && sl_decoder_open(&decoder, codec, sl_vec_cpu(), NULL) == 0) {
        memcpy(aligned, data + CHOICE_BYTES, bytes);
        if (sl_decoder_check(decoder, &message, part, (sl_payload){aligned, bytes}) == 0)
            add(codec, decoder, &message, part, (sl_payload){aligned, bytes}, dimension,
                is_bounded(config.kind));
        sl_decoder_close(&decoder);
    }
    free(aligned);
    sl_codec_close(&codec);
    return 0;
}
