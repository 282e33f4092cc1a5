/* split.h - one message that is several: each tensor of a vector compressed on its own. */
#ifndef SL_SPLIT_H
#define SL_SPLIT_H

#include "compress/codec.h"

/* The pieces of a split codec. */
typedef struct sl_split {
    size_t count;
    sl_codec **codecs;    /* (count) */
    size_t *bases;        /* (count) where each begins in the vector */
    uint32_t *first_part; /* (count) */
} sl_split;

extern const codec_ops sl_split_codec;

int sl_split_encoders_open(void **out, const sl_codec *codec, const sl_vec_ops *vec,
                           sl_error *error);
void sl_split_encoders_stage(void *encoders, const sl_codec *codec, uint8_t *host);
bool sl_split_encoders_ready(void *encoders, const sl_codec *codec, uint32_t part, int notify_fd);
void sl_split_encoders_close(void *encoders, const sl_codec *codec);
int sl_split_decoders_open(void **out, const sl_codec *codec, const sl_vec_ops *vec,
                           sl_error *error);
void sl_split_decoders_close(void *decoders, const sl_codec *codec);
void sl_split_close(sl_split *split);
void sl_split_range(const sl_codec *codec, uint32_t part, size_t *from, size_t *count);

#endif
