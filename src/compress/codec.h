/* codec.h - what the compressors' own files share. Each compressor is one codec_ops, its
 * descriptor: the keys that it reads, what it promises, its bits, and its operations. compressor.h
 * lists them.
 *
 * Parts are decoded alone. So a part carries its own range, sparse messages are cut by entries and
 * dense ones by elements, and indices that follow from the seed are not sent.
 */
#ifndef SL_CODEC_H
#define SL_CODEC_H

#include "compress/coding.h"

/* Operations of a codec that is several (split.c). */
typedef struct codec_pieces {
    void (*close)(sl_codec *codec);
    void (*range)(const sl_codec *codec, uint32_t part, size_t *from, size_t *count);
    void (*source)(const sl_codec *codec, uint32_t part, size_t *from, size_t *count);
    uint32_t (*last_first)(const sl_codec *codec, uint32_t part);
    /* Fill encoder->memory; on failure, encoders_close frees what is there. */
    int (*encoders_open)(sl_encoder *encoder, const sl_vec_ops *vec, sl_error *error);
    void (*encoders_close)(sl_encoder *encoder);
    void (*encoders_stage)(sl_encoder *encoder, uint8_t *host);
    bool (*encoders_ready)(sl_encoder *encoder, uint32_t part, int notify_fd);
    int (*decoders_open)(sl_decoder *decoder, const sl_vec_ops *vec, sl_error *error);
    void (*decoders_close)(sl_decoder *decoder);
} codec_pieces;

typedef struct part_numbers part_numbers; /* entropy.h */

typedef struct codec_ops codec_ops;
struct codec_ops {
    const sl_key *keys;              /* that it reads; SL_KEYS_END ends them; NULL: none */
    const char *codings;             /* algorithm.compressor.coding beside none; NULL: none */
    const struct dense_coder *dense; /* a dense-coded one (dense.h); else NULL */
    bool reads_fresh;                /* of two inputs: sl_source.fresh, too */
    bool is_rotated;                 /* dense-coded, of a rotated vector (rotated.h) */
    const struct marks_coder *marks; /* one that marks elements (marks.h); else NULL */
    const codec_pieces *pieces;      /* NULL: the codec is one */
    sl_quality (*quality)(const sl_compressor_config *config, size_t dimension);
    double (*bits)(const codec_ops *self, const sl_compressor_config *config, size_t dimension);
    int (*check)(const sl_compressor_config *config, size_t dimension,
                 sl_error *error); /* NULL: nothing to check */
    /* Fills the layout below; config and dimension are there and checked. */
    void (*lay_out)(sl_codec *codec, size_t part_bytes);
    /* Fills in what the layout does not say. */
    void (*describe)(const sl_codec *codec, sl_coding *out);
    /* Working memory of one encoder and of one decoder, zeroed; NULL: none. */
    size_t (*encoder_bytes)(const sl_codec *codec);
    size_t (*decoder_bytes)(const sl_codec *codec);
    int (*begin)(sl_encoder *encoder,
                 const sl_source *source); /* NULL: nothing to see beforehand */
    int (*encode)(sl_encoder *encoder, uint32_t part, const sl_source *source, void *buffer,
                  sl_payload *out);
    int (*check_part)(sl_decoder *decoder, uint32_t part, sl_payload payload);
    void (*add)(sl_decoder *decoder, uint32_t part, sl_payload payload, float weight,
                float *acc); /* weight includes codec->factor */
    bool reads_drawn;        /* it looks at no other elements than those it has drawn */
    bool draws_for_all;      /* random choices are equal at all senders */
    /* What a coding applies to: of a part, and of its payload if that is given; NULL: nothing. */
    void (*numbers)(const sl_codec *codec, uint32_t part, const sl_payload *plain,
                    part_numbers *out);
};

struct sl_codec {
    sl_compressor_config config;
    const codec_ops *ops;
    size_t dimension;
    float factor; /* decoded values times this: 1, or 1 / (1 + omega) */
    /* lay_out */
    bool sparse, borrows;
    size_t part_elements; /* dense-coded: elements of a part, a multiple of SL_BLOCK or the whole;
                             sparse: entries of a part */
    size_t part_bytes_max;
    uint32_t parts;
    size_t k;               /* sparse: entries of a message */
    struct sl_split *split; /* tensors compressed on their own; NULL: the vector as one */
};

struct sl_encoder {
    const sl_codec *codec;
    sl_message message;
    void *memory;          /* encoder_bytes; split: the pieces' encoders */
    uint8_t *plain;        /* a part before it is coded; NULL: there is no coding */
    float *scratch;        /* SL_BLOCK floats */
    const sl_coder *coder; /* NULL: the vectors are on the host */
    void *device;          /* the coder's encoder; NULL where the codec is split */
    uint8_t *host;         /* sl_encoder_stage */
    sl_payload local;      /* of the last part */
};

struct sl_decoder {
    const sl_codec *codec;
    sl_message message;
    void *memory;          /* decoder_bytes; split: the pieces' decoders */
    uint8_t *plain;        /* a part without its coding; NULL: there is none */
    const sl_coder *coder; /* as of an encoder */
    void *device;
};

/* Elements [from, from + count), count <= SL_BLOCK: where they are, or read into the encoder's
 * scratch. */
static inline const float *sl_encoder_read(const sl_encoder *e, const sl_source *source,
                                           size_t from, size_t count) {
    if (source->vector != NULL)
        return source->vector + from;
    source->read(source->context, from, count, e->scratch);
    return e->scratch;
}

/* For `describe`: devices have no kernel. */
void sl_codec_no_kernel(const sl_codec *codec, sl_coding *out);

/* Key of the message's random numbers; block `i` serves elements as each compressor's file says. */
struct sl_rng_key sl_message_key(const sl_message *message);

/* Of what loses nothing, and has up to all elements as they are. */
sl_quality sl_exact_quality(const sl_compressor_config *config, size_t dimension);
double sl_exact_bits(const codec_ops *self, const sl_compressor_config *config, size_t dimension);

#define CODEC_DECLARE(kind, codec, name) extern const codec_ops sl_##codec##_codec;
SL_COMPRESSORS(CODEC_DECLARE)
SL_OWN_COMPRESSORS(CODEC_DECLARE)
#undef CODEC_DECLARE

#endif
