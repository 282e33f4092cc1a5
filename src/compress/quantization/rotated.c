/* rotated.c - see rotated.h. The coder reads the rotated vector through a source that rotates a
 * piece when it is first asked for. */
#include "compress/quantization/rotated.h"

#include <math.h>
#include <string.h>

#include "base/kernels.h"
#include "compress/quantization/rotation.h"

static sl_rng_key rotation_key(const sl_message *message) {
    sl_rng_key key = sl_message_key(message);
    key.purpose += SL_PURPOSE_ROTATE - SL_PURPOSE_COMPRESS;
    return key;
}

FOR_EACH_CPU(void, scale_by, (float *v, size_t n, float scale), (v, n, scale)) {
    for (size_t i = 0; i < n; i++)
        v[i] *= scale;
}

FOR_EACH_CPU(void, add_all, (const float *v, size_t n, float *acc), (v, n, acc)) {
    for (size_t i = 0; i < n; i++)
        acc[i] += v[i];
}

/* H over the root of each block's length. */
static void transform(float *piece, size_t n) {
    for (size_t i = 0, block; i < n; i += block) {
        block = sl_rotation_block(n - i);
        sl_rotation_hadamard(piece + i, block);
        scale_by(piece + i, block, 1 / sqrtf((float)block));
    }
}

static size_t piece_at(size_t i, size_t end) {
    return end - i < ROTATION_PIECE ? end - i : ROTATION_PIECE;
}

/* ---- encoding ---- */

typedef struct rotated_source {
    const sl_source *plain;
    sl_rng_key key;
    size_t dimension, at; /* of the piece that is there; dimension: none is */
    float *piece;
} rotated_source;

static void load(rotated_source *r, size_t at) {
    const size_t n = piece_at(at, r->dimension);
    r->at = at;
    if (r->plain->vector != NULL)
        memcpy(r->piece, r->plain->vector + at, n * sizeof *r->piece);
    for (size_t i = 0, count; i < n && r->plain->vector == NULL; i += count) {
        count = n - i < SL_BLOCK ? n - i : SL_BLOCK;
        r->plain->read(r->plain->context, at + i, count, r->piece + i);
    }
    sl_rotation_signs(&r->key, at, r->piece, n);
    transform(r->piece, n);
}

static void read_rotated(void *context, size_t from, size_t count, float *out) {
    rotated_source *r = context;
    const size_t at = from / ROTATION_PIECE * ROTATION_PIECE;
    if (at != r->at)
        load(r, at);
    memcpy(out, r->piece + (from - at), count * sizeof *out);
}

/* Behind what the coder itself remembers. */
static size_t before_piece(const sl_codec *c) {
    return (sl_dense_encoder_bytes(c) + 7) / 8 * 8;
}

size_t sl_rotated_encoder_bytes(const sl_codec *c) {
    return before_piece(c) + ROTATION_PIECE * sizeof(float);
}

static rotated_source rotate(const sl_encoder *e, const sl_source *source) {
    return (rotated_source){.plain = source,
                            .key = rotation_key(&e->message),
                            .dimension = e->codec->dimension,
                            .at = e->codec->dimension,
                            .piece = (float *)((uint8_t *)e->memory + before_piece(e->codec))};
}

int sl_rotated_begin(sl_encoder *e, const sl_source *source) {
    rotated_source r = rotate(e, source);
    return sl_dense_begin(e, &(sl_source){.read = read_rotated, .context = &r});
}

int sl_rotated_encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                      sl_payload *out) {
    rotated_source r = rotate(e, source);
    return sl_dense_encode(e, part, &(sl_source){.read = read_rotated, .context = &r}, buffer, out);
}

/* Devices have no kernel for it. */
void sl_rotated_describe(const sl_codec *c, sl_coding *out) {
    sl_dense_describe(c, out);
    out->code = CODE_NONE;
}

/* ---- decoding ---- */

size_t sl_rotated_decoder_bytes(const sl_codec *c) {
    return c->part_elements * sizeof(float);
}

int sl_rotated_check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    const int result = sl_dense_check_part(d, part, payload);
    return result == 0 && !(sl_dense_largest_scale(d->codec, part, payload) < ROTATION_SCALE_LIMIT)
               ? SL_EPROTO
               : result;
}

void sl_rotated_add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    const sl_rng_key key = rotation_key(&d->message);
    float *v = d->memory;
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    memset(v, 0, count * sizeof *v);
    sl_dense_add_part(d->codec, part, payload, weight, v);
    for (size_t i = 0; i < count; i += ROTATION_PIECE) {
        const size_t n = piece_at(i, count);
        transform(v + i, n);
        sl_rotation_signs(&key, from + i, v + i, n);
    }
    add_all(v, count, acc + from);
}
