/* rotated.h - a dense-coded compressor behind a random rotation (rotation.h): what is coded is
 * u = H D v over the root of each block's length, and what is decoded is turned back. Norms stay,
 * so that its promises hold; but u has elements of about a normal distribution, whatever v is.
 * (Suresh, Yu, Kumar, McMahan: "Distributed Mean Estimation with Limited Communication", ICML
 * 2017.)
 *
 * Parts hold whole pieces. The signs are bits of a stream of their own, as the coder may draw from
 * the message's.
 */
#ifndef SL_ROTATED_H
#define SL_ROTATED_H

#include "compress/quantization/dense.h"

size_t sl_rotated_encoder_bytes(const sl_codec *codec);
size_t sl_rotated_decoder_bytes(const sl_codec *codec);
void sl_rotated_describe(const sl_codec *codec, sl_coding *out);
int sl_rotated_begin(sl_encoder *encoder, const sl_source *source);
int sl_rotated_encode(sl_encoder *encoder, uint32_t part, const sl_source *source, void *buffer,
                      sl_payload *out);
/* As sl_dense_check_part; and no sum of a block of what it says is beyond a float. */
int sl_rotated_check_part(sl_decoder *decoder, uint32_t part, sl_payload payload);
void sl_rotated_add(sl_decoder *decoder, uint32_t part, sl_payload payload, float weight,
                    float *acc);

#define ROTATED_OPERATIONS(coder)                                                                  \
    .dense = &(coder), .is_rotated = true, .bits = sl_dense_bits, .lay_out = sl_dense_lay_out,     \
    .describe = sl_rotated_describe, .encoder_bytes = sl_rotated_encoder_bytes,                    \
    .decoder_bytes = sl_rotated_decoder_bytes, .begin = sl_rotated_begin,                          \
    .encode = sl_rotated_encode, .check_part = sl_rotated_check_part, .add = sl_rotated_add

#endif
