/* codecs.h - a node's codecs: one for each length of message and each compressor, with its encoder
 * and the senders' decoders. Plain messages have a compressor, too: identity. */
#ifndef SL_CODECS_H
#define SL_CODECS_H

#include "route/route.h"
#include "starling/node.h"

typedef struct sl_codec_set {
    size_t count;
    const sl_compressor_config *compressor;
    sl_codec *codec;
    uint32_t *order; /* (parts) which of the codec's is a message's part; NULL: the same */
    sl_encoder *encoder;
    sl_decoder *own;
    sl_decoder **decoders; /* (peers) */
    bool encodes;          /* some of its messages are not the vector itself */
} sl_codec_set;

typedef struct sl_codecs {
    sl_codec_set *sets; /* (set_count) */
    size_t set_count;
    uint32_t parts_max;               /* of any message, in later views, too */
    size_t part_bytes_max;            /* likewise */
    const sl_node_settings *settings; /* borrowed, like the route */
    const sl_route *route;
} sl_codecs;

/* Opens what the algorithm's stages need on this route. later: in a later view than the first. */
int sl_codecs_open(sl_codecs *codecs, const sl_node_settings *settings, const sl_route *route,
                   bool later, sl_error *error);
void sl_codecs_close(sl_codecs *codecs);
/* Is the stage's message the vector itself, which does not change before it has left? */
bool sl_codec_sends_vector(const sl_codec *codec, const sl_stage *stage);
/* For messages of `count` elements, which is one of the route's lengths; NULL for 0. */
const sl_codec_set *sl_codecs_find(const sl_codecs *codecs, size_t count,
                                   const sl_exchange_step *step, uint64_t exchange);

#endif
