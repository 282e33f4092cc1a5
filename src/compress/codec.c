/* codec.c - what the compressors' own files ask of a codec; see codec.h. */
#include "compress/codec.h"

void sl_codec_part_range(const sl_codec *c, uint32_t part, size_t *from, size_t *count) {
    if (c->ops->pieces != NULL) {
        c->ops->pieces->range(c, part, from, count);
        return;
    }
    *from = c->sparse ? 0 : part * c->part_elements;
    size_t left = c->dimension - *from;
    *count = c->sparse || left < c->part_elements ? left : c->part_elements;
}

uint32_t sl_codec_last_first(const sl_codec *c, uint32_t part) {
    return c->ops->pieces != NULL ? c->ops->pieces->last_first(c, part) : c->parts - 1 - part;
}

void sl_codec_part_source(const sl_codec *c, uint32_t part, size_t *from, size_t *count) {
    (c->ops->pieces != NULL ? c->ops->pieces->source : sl_codec_part_range)(c, part, from, count);
}

void sl_codec_no_kernel(const sl_codec *c, sl_coding *out) {
    (void)c;
    out->form = CODING_DENSE;
    out->code = CODE_NONE;
}

/* The purpose has room for eight bits of the stage; exchanges, which are rounds at most, leave the
 * upper ones of the round. */
sl_rng_key sl_message_key(const sl_message *m) {
    return (sl_rng_key){m->seed, m->exchange | (uint64_t)(m->stage >> 8) << 40, m->sender,
                        SL_PURPOSE_COMPRESS | (m->stage & 0xFF) << 8};
}
