/* identity.c - C(v) = v: 32 bits an element, delta = 1. The payload is the vector itself, borrowed
 * where it is in memory. */
#include "compress/codec.h"

sl_quality sl_exact_quality(const sl_compressor_config *config, size_t dimension) {
    (void)config;
    (void)dimension;
    return (sl_quality){.unbiased = true, .omega = 0, .is_contractive = true, .delta = 1};
}

double sl_exact_bits(const codec_ops *self, const sl_compressor_config *config, size_t dimension) {
    (void)self;
    (void)config;
    return 32.0 * (double)dimension;
}

static void lay_out(sl_codec *c, size_t part_bytes) {
    c->borrows = true;
    c->part_elements = part_bytes / sizeof(float);
    if (c->part_elements > SL_BLOCK)
        c->part_elements -= c->part_elements % SL_BLOCK;
    if (c->part_elements > c->dimension)
        c->part_elements = c->dimension;
    c->part_bytes_max = c->part_elements * sizeof(float);
    c->parts = (uint32_t)((c->dimension - 1) / c->part_elements + 1);
}

static void describe(const sl_codec *c, sl_coding *out) {
    (void)c;
    out->form = CODING_PLAIN;
}

static int encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                  sl_payload *out) {
    size_t from, count;
    sl_codec_part_range(e->codec, part, &from, &count);
    *out = (sl_payload){source->vector != NULL ? source->vector + from : buffer,
                        count * sizeof(float)};
    for (size_t at = 0; source->vector == NULL && at < count; at += SL_BLOCK)
        source->read(source->context, from + at, count - at < SL_BLOCK ? count - at : SL_BLOCK,
                     (float *)buffer + at);
    return 0;
}

static int check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    return payload.bytes == count * sizeof(float) ? 0 : SL_EPROTO;
}

static void add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    const float *const in[] = {acc + from, payload.data};
    sl_vec_cpu()->combine(acc + from, in, (const float[]){1, weight}, 2, count);
}

const codec_ops sl_identity_codec = {.quality = sl_exact_quality,
                                     .bits = sl_exact_bits,
                                     .lay_out = lay_out,
                                     .describe = describe,
                                     .encode = encode,
                                     .check_part = check_part,
                                     .add = add};
