/* marks.h - what stc, sbc, pos-neg and strom share: entries that say where an element is, and
 * perhaps by one bit which of two values stands for it. The values are the same for all entries.
 *
 * A payload is the values that are sent, float32 | the entries, by rising index, packed from the
 * lowest bit on (indices.h). Where the number of entries is known, a part is a range of them, and
 * an index has ceil(log2 d) bits. Else a part is a range of elements with an index of its own,
 * whose bits are those of its elements, and the length says how many entries there are.
 */
#ifndef SL_MARKS_H
#define SL_MARKS_H

#include "compress/codec.h"

/* The marked elements of a vector, or of a range of it. */
typedef struct marks {
    size_t count;
    float values[2];    /* those that are sent, or nothing */
    uint64_t numbers[]; /* (room) index << 1 | which value, or index where there is one value */
} marks;

typedef struct marks_coder {
    coding_form form; /* of its kernels; CODING_PLAIN: it has none */
    unsigned floats;  /* values sent: 2, 1 or none; 1: the other is its negative; none: threshold */
    bool two;         /* do entries say which of two values? */
    /* Entries of a message; NULL: known only when they are there. */
    size_t (*entries)(const sl_compressor_config *config, size_t dimension);
    /* Numbers that marking `elements` needs memory for; k of the codec is set. */
    size_t (*room)(const sl_codec *codec, size_t elements);
    /* Marks elements [from, from + count). SL_EDIVERGED: they are not finite, or their means. */
    int (*mark)(sl_encoder *encoder, const sl_source *source, size_t from, size_t count,
                marks *out);
} marks_coder;

/* The operations of a codec_ops, the same for all. */
double sl_marks_bits(const codec_ops *self, const sl_compressor_config *config, size_t dimension);
void sl_marks_lay_out(sl_codec *codec, size_t part_bytes);
void sl_marks_describe(const sl_codec *codec, sl_coding *out);
size_t sl_marks_encoder_bytes(const sl_codec *codec);
int sl_marks_begin(sl_encoder *encoder, const sl_source *source);
int sl_marks_encode(sl_encoder *encoder, uint32_t part, const sl_source *source, void *buffer,
                    sl_payload *out);
int sl_marks_check_part(sl_decoder *decoder, uint32_t part, sl_payload payload);
void sl_marks_add(sl_decoder *decoder, uint32_t part, sl_payload payload, float weight, float *acc);
void sl_marks_numbers(const sl_codec *codec, uint32_t part, const sl_payload *plain,
                      part_numbers *out);

#define MARKS_OPERATIONS(coder)                                                                    \
    .marks = &(coder), .bits = sl_marks_bits, .lay_out = sl_marks_lay_out,                         \
    .describe = sl_marks_describe, .encoder_bytes = sl_marks_encoder_bytes,                        \
    .begin = sl_marks_begin, .encode = sl_marks_encode, .check_part = sl_marks_check_part,         \
    .add = sl_marks_add, .numbers = sl_marks_numbers

/* Bricks. */

/* Of entries by rising index: their indices, and whether they are negative. */
void sl_marks_of_signs(uint64_t *entries, size_t count, size_t from);
/* The sum of the values of entries, or of their magnitudes. */
double sl_marks_sum(const uint64_t *entries, size_t count, bool magnitudes);
/* 1 <= k <= (d + 1) / 2. */
int sl_marks_check_half(const sl_compressor_config *config, size_t dimension, sl_error *error);

#endif
