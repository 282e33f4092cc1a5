/* split.c - one message that is several: each tensor of a vector compressed on its own. The pieces'
 * parts follow each other; each piece draws random numbers of its own. On the host a piece is
 * looked at when the first of its parts is encoded, which may be its last one: the others need not
 * be there by then. */
#include "compress/codec.h"

#include <stdlib.h>

#include "base/round_up.h"
#include "starling/rng.h"

enum {
    PIECE_SHIFT = 36
}; /* exchanges below, pieces above, in the 48 bits that a random stream's round has */

typedef struct sl_split {
    size_t count;
    sl_codec **codecs;    /* (count) */
    size_t *bases;        /* (count) where each begins in the vector */
    uint32_t *first_part; /* (count) */
} sl_split;

static const codec_ops split_codec;

typedef struct shifted_source {
    const sl_source *source;
    size_t base;
} shifted_source;

static void read_shifted(void *context, size_t from, size_t count, float *out) {
    const shifted_source *s = context;
    s->source->read(s->source->context, s->base + from, count, out);
}

/* Of the piece that begins at `base`. */
static sl_source shift(const sl_source *source, shifted_source *memory, size_t base, size_t piece) {
    *memory = (shifted_source){source, base};
    const float *fresh = source->fresh != NULL ? source->fresh + base : NULL,
                *scale = source->scale != NULL ? source->scale + piece : NULL;
    if (source->vector != NULL)
        return (sl_source){.vector = source->vector + base, .fresh = fresh, .scale = scale};
    return (sl_source){.read = read_shifted, .context = memory, .fresh = fresh, .scale = scale};
}

static sl_message message_of(const sl_message *whole, size_t piece) {
    sl_message message = *whole;
    message.exchange += (uint64_t)piece << PIECE_SHIFT;
    return message;
}

static size_t piece_of(const sl_split *split, uint32_t part) {
    size_t low = 0, high = split->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (split->first_part[middle] <= part)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- codecs ---- */

static void close_pieces(sl_codec *codec) {
    sl_split *split = codec->split;
    for (size_t i = 0; split->codecs != NULL && i < split->count; i++)
        sl_codec_close(&split->codecs[i]);
    free(split->codecs);
    free(split->bases);
    free(split->first_part);
    free(split);
}

static int add_piece(sl_codec *whole, size_t i, size_t from, size_t end,
                     const sl_compressor_config *config, size_t part_bytes, sl_error *error) {
    sl_split *split = whole->split;
    int result = sl_codec_open(&split->codecs[i], config, end - from, part_bytes, error);
    if (result != 0)
        return result;
    split->bases[i] = from;
    split->first_part[i] = whole->parts;
    whole->parts += sl_codec_parts(split->codecs[i]);
    size_t bytes = sl_codec_part_bytes_max(split->codecs[i]);
    whole->part_bytes_max = bytes > whole->part_bytes_max ? bytes : whole->part_bytes_max;
    return 0;
}

int sl_codec_open_split(sl_codec **out, const sl_compressor_config *config, const size_t *ends,
                        const double *fractions, size_t count, size_t part_bytes, sl_error *error) {
    sl_compressor_config of_piece = *config;
    sl_codec *c = calloc(1, sizeof *c);
    sl_split *split = c != NULL ? c->split = calloc(1, sizeof *split) : NULL;
    if (split != NULL) {
        *split = (sl_split){count, calloc(count, sizeof(sl_codec *)), calloc(count, sizeof(size_t)),
                            calloc(count, sizeof(uint32_t))};
        *c = (sl_codec){.config = *config,
                        .ops = &split_codec,
                        .dimension = ends[count - 1],
                        .factor = 1,
                        .split = split};
    }
    int result = split == NULL || !split->codecs || !split->bases || !split->first_part
                     ? sl_fail(error, SL_ENOMEM, "compressor: out of memory")
                     : 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        if (fractions != NULL)
            of_piece.fraction = fractions[i];
        result = add_piece(c, i, i > 0 ? ends[i - 1] : 0, ends[i], &of_piece, part_bytes, error);
    }
    if (result != 0)
        sl_codec_close(&c);
    else
        *out = c;
    return result;
}

static void range(const sl_codec *c, uint32_t part, size_t *from, size_t *count) {
    size_t piece = piece_of(c->split, part);
    sl_codec_part_range(c->split->codecs[piece], part - c->split->first_part[piece], from, count);
    *from += c->split->bases[piece];
}

static void source(const sl_codec *c, uint32_t part, size_t *from, size_t *count) {
    const size_t piece = piece_of(c->split, part);
    *from = c->split->bases[piece];
    *count = c->split->codecs[piece]->dimension;
}

static uint32_t last_first(const sl_codec *c, uint32_t part) {
    const sl_split *split = c->split;
    const size_t piece = piece_of(split, c->parts - 1 - part);
    const uint32_t first = split->first_part[piece],
                   behind = c->parts - first - split->codecs[piece]->parts;
    return first + part - behind;
}

/* ---- encoders ---- */

typedef struct piece_encoder {
    sl_encoder *encoder;
    bool begun; /* of the message */
} piece_encoder;

static int encoders_open(sl_encoder *e, const sl_vec_ops *vec, sl_error *error) {
    const sl_codec *codec = e->codec;
    piece_encoder *pieces = e->memory = calloc(codec->split->count, sizeof *pieces);
    int result = pieces == NULL ? sl_fail(error, SL_ENOMEM, "compressor: out of memory") : 0;
    for (size_t i = 0; i < codec->split->count && result == 0; i++)
        result = sl_encoder_open(&pieces[i].encoder, codec->split->codecs[i], vec, error);
    return result;
}

static void encoders_close(sl_encoder *e) {
    piece_encoder *pieces = e->memory;
    for (size_t i = 0; pieces != NULL && i < e->codec->split->count; i++)
        sl_encoder_close(&pieces[i].encoder);
}

static void encoders_stage(sl_encoder *e, uint8_t *host) {
    piece_encoder *pieces = e->memory;
    const sl_codec *codec = e->codec;
    const size_t stride = sl_round_up(codec->part_bytes_max, SL_VEC_ALIGNMENT);
    for (size_t i = 0; i < codec->split->count; i++)
        sl_encoder_stage(pieces[i].encoder, host + codec->split->first_part[i] * stride);
}

static bool encoders_ready(sl_encoder *e, uint32_t part, int notify_fd) {
    piece_encoder *pieces = e->memory;
    const sl_split *split = e->codec->split;
    const size_t piece = piece_of(split, part);
    return sl_encoder_ready(pieces[piece].encoder, part - split->first_part[piece], notify_fd);
}

static int begin_piece(sl_encoder *e, const sl_source *source, size_t i) {
    piece_encoder *piece = (piece_encoder *)e->memory + i;
    shifted_source memory;
    const sl_source own = shift(source, &memory, e->codec->split->bases[i], i);
    const sl_message message = message_of(&e->message, i);
    piece->begun = true;
    return sl_encoder_begin(piece->encoder, &message, &own);
}

/* A device begins to encode all of them at once. */
static int begin(sl_encoder *e, const sl_source *source) {
    piece_encoder *pieces = e->memory;
    int result = 0;
    for (size_t i = 0; i < e->codec->split->count && result == 0; i++) {
        pieces[i].begun = false;
        if (e->coder != NULL)
            result = begin_piece(e, source, i);
    }
    return result;
}

static int encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                  sl_payload *out) {
    piece_encoder *pieces = e->memory;
    const sl_split *split = e->codec->split;
    const size_t piece = piece_of(split, part);
    sl_encoder *encoder = pieces[piece].encoder;
    shifted_source memory;
    sl_source own = shift(source, &memory, split->bases[piece], piece);
    int result = pieces[piece].begun ? 0 : begin_piece(e, source, piece);
    if (result == 0)
        result = sl_encoder_part(encoder, part - split->first_part[piece], &own, buffer, out);
    e->local = sl_encoder_local(encoder);
    return result;
}

/* ---- decoders ---- */

static int decoders_open(sl_decoder *d, const sl_vec_ops *vec, sl_error *error) {
    const sl_codec *codec = d->codec;
    sl_decoder **decoders = d->memory = calloc(codec->split->count, sizeof(sl_decoder *));
    int result = decoders == NULL ? sl_fail(error, SL_ENOMEM, "compressor: out of memory") : 0;
    for (size_t i = 0; i < codec->split->count && result == 0; i++)
        result = sl_decoder_open(&decoders[i], codec->split->codecs[i], vec, error);
    return result;
}

static void decoders_close(sl_decoder *d) {
    sl_decoder **decoders = d->memory;
    for (size_t i = 0; decoders != NULL && i < d->codec->split->count; i++)
        sl_decoder_close(&decoders[i]);
}

static int check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    sl_decoder **decoders = d->memory;
    size_t piece = piece_of(d->codec->split, part);
    sl_message message = message_of(&d->message, piece);
    return sl_decoder_check(decoders[piece], &message, part - d->codec->split->first_part[piece],
                            payload);
}

static void add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    sl_decoder **decoders = d->memory;
    size_t piece = piece_of(d->codec->split, part);
    sl_message message = message_of(&d->message, piece);
    sl_decoder_add(decoders[piece], &message, part - d->codec->split->first_part[piece], payload,
                   weight, acc + d->codec->split->bases[piece]);
}

static const codec_pieces piece_operations = {
    .close = close_pieces,
    .range = range,
    .source = source,
    .last_first = last_first,
    .encoders_open = encoders_open,
    .encoders_close = encoders_close,
    .encoders_stage = encoders_stage,
    .encoders_ready = encoders_ready,
    .decoders_open = decoders_open,
    .decoders_close = decoders_close,
};

static const codec_ops split_codec = {.pieces = &piece_operations,
                                      .begin = begin,
                                      .encode = encode,
                                      .check_part = check_part,
                                      .add = add};
