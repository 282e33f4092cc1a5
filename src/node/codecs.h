/* codecs.h - a node's codecs: one for each length of message, compressed and plain, with its
 * encoder and the senders' decoders. */
#ifndef SL_CODECS_H
#define SL_CODECS_H

#include "node/route.h"

typedef struct sl_codec_set {
    size_t count;
    bool plain;
    sl_codec *codec;
    sl_encoder *encoder;
    sl_decoder *own;
    sl_decoder **decoders; /* (peers) */
} sl_codec_set;

typedef struct sl_codecs {
    sl_codec_set *sets; /* (set_count) */
    size_t set_count;
    uint32_t peers;
    const sl_vec_ops *vec;
    const sl_compressor_config *compressor;
    const size_t *tensor_ends;
    size_t tensor_count, part_bytes;
} sl_codecs;

/* Opens what the algorithm's stages need on this route. later: in a later view than the first. */
int sl_codecs_open(sl_codecs *codecs, const sl_compressor_config *compressor, const sl_route *route,
                   bool later, const size_t *tensor_ends, size_t tensor_count, size_t part_bytes,
                   const sl_vec_ops *vec, sl_error *error);
void sl_codecs_close(sl_codecs *codecs);
/* For messages of `count` elements, which is one of the route's lengths; NULL for 0. */
const sl_codec_set *sl_codecs_find(const sl_codecs *codecs, size_t count, bool plain);

#endif
