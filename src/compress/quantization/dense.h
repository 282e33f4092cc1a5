/* dense.h - what the dense-coded compressors share: those that send a code of a few bits for every
 * element, and perhaps, for each bucket of elements, scales that the codes refer to.
 *
 * A part covers a range of elements: a multiple of SL_BLOCK and at most DENSE_PART_ELEMENTS, so
 * that the accumulator's piece stays in a core's second cache; or more where a payload may be
 * longer than that piece, as on a GPU, to which each part is a launch. Of whole buckets where such
 * a range holds them. Its payload is
 *     the scales of all buckets that it touches, in order, float32 | the codes of its elements,
 *       packed from the lowest bit on
 * with zeros in what is left of the last byte. A message of one part has exactly the documented
 * bits, rounded up to bytes; where a bucket is longer than a part, each of its parts repeats the
 * scale, which a first pass over the vector (begin) has found.
 *
 * A compressor of this kind has a dense_coder: its scales, its codes, and what a code adds.
 * Everything else is in dense.c. Random rounding: element i takes 16 random bits of the message's
 * stream that depend on i alone (windows.h), so that neither the parts nor the order in which they
 * are encoded matter.
 */
#ifndef SL_DENSE_H
#define SL_DENSE_H

#include "compress/codec.h"
#include "compress/quantization/sums.h"
#include "compress/quantization/table.h"
#include "compress/quantization/windows.h"

enum { DENSE_PART_ELEMENTS = 65536, DENSE_BUCKET_MIN = 4 };

typedef struct dense_scale {
    coding_scale kind;
    unsigned floats; /* of one bucket; 0: nothing is sent, the elements are only looked at */
    bool negative;   /* may a scale be below zero? */
    void (*see)(bucket_sums *sums, const float *v, size_t at,
                size_t n); /* elements [at, at + n) of the vector */
    /* Of n elements; leaves the sums as for the next bucket. False: these elements cannot be sent.
     */
    bool (*result)(bucket_sums *sums, size_t n, float *scale);
} dense_scale;

/* How a configured compressor codes a vector. */
typedef struct dense_form {
    unsigned width;     /* bits of a code, 1 to 16 */
    uint32_t mask, max; /* a code c is allowed where (c & mask) <= max */
    size_t bucket;      /* elements that share scales */
    const dense_scale *scale;
    coding_code code;
    uint32_t limit; /* without a scale: magnitudes, as bits, from here on cannot be sent; else 0 */
} dense_form;

typedef struct dense_coder {
    dense_form (*form)(const sl_compressor_config *config, size_t dimension);
    /* Codes that depend on the elements alone: n of a block, straight to bytes. One pass then finds
     * scales and codes. Else NULL, and: */
    void (*pack)(const sl_compressor_config *config, const float *v, size_t n, uint8_t *out);
    /* Sums and packs a piece of n elements of one bucket, which begins with a tile, in an order
     * that is quicker than see and pack; returns how many it did, perhaps none. NULL: none. */
    size_t (*sweep)(bucket_sums *sums, const float *v, size_t n, uint8_t *out);
    /* Codes of n elements of one bucket */
    void (*encode)(const sl_compressor_config *config, const float *scale, const float *v,
                   windows random, size_t n, uint16_t *codes);
    /* Codes of one or two bits: table[c] = weight * what code c of one bucket stands for. Else
     * NULL, and: */
    void (*table)(const sl_compressor_config *config, const float *scale, float weight,
                  float table[TABLE_CODES]);
    /* acc += weight * what n codes of one bucket stand for */
    void (*add)(const sl_compressor_config *config, const float *scale, float weight,
                const uint16_t *codes, size_t n, float *acc);
} dense_coder;

/* The operations of a codec_ops, the same for all. */
double sl_dense_bits(const codec_ops *self, const sl_compressor_config *config, size_t dimension);
int sl_dense_check_bucket(const sl_compressor_config *config, size_t dimension, sl_error *error);
void sl_dense_lay_out(sl_codec *codec, size_t part_bytes);
void sl_dense_describe(const sl_codec *codec, sl_coding *out);
size_t sl_dense_encoder_bytes(const sl_codec *codec);
int sl_dense_begin(sl_encoder *encoder, const sl_source *source);
int sl_dense_encode(sl_encoder *encoder, uint32_t part, const sl_source *source, void *buffer,
                    sl_payload *out);
int sl_dense_check_part(sl_decoder *decoder, uint32_t part, sl_payload payload);
/* Of a part that was checked. */
float sl_dense_largest_scale(const sl_codec *codec, uint32_t part, sl_payload payload);
void sl_dense_add(sl_decoder *decoder, uint32_t part, sl_payload payload, float weight, float *acc);
/* The same to a part's elements, of which out is the first. */
void sl_dense_add_part(const sl_codec *codec, uint32_t part, sl_payload payload, float weight,
                       float *out);
/* Of those whose codes may be coded: levels, ternary ones and powers of two. */
void sl_dense_numbers(const sl_codec *codec, uint32_t part, const sl_payload *plain,
                      part_numbers *out);

#define DENSE_OPERATIONS(coder)                                                                    \
    .dense = &(coder), .bits = sl_dense_bits, .lay_out = sl_dense_lay_out,                         \
    .describe = sl_dense_describe, .encoder_bytes = sl_dense_encoder_bytes,                        \
    .begin = sl_dense_begin, .encode = sl_dense_encode, .check_part = sl_dense_check_part,         \
    .add = sl_dense_add

/* Bricks. */
size_t sl_dense_bucket(const sl_compressor_config *config,
                       size_t dimension);   /* config->bucket, at most the whole */
extern const dense_scale sl_dense_max_norm; /* the largest magnitude */
/* {0, unit, -unit} for the codes 0, 1 and 2 of the ternary compressors. */
void sl_dense_ternary_table(float unit, float table[TABLE_CODES]);

#endif
