/* levels.h - the codes of a part as levels and signs, and codes on their way to a part. */
#ifndef SL_LEVELS_H
#define SL_LEVELS_H

#include "compress/lossless/entropy.h"
#include "compress/lossless/pack.h"

static inline unsigned sl_level_mask(const part_numbers *n) {
    return n->codes == CODES_TERNARY ? 1 : (1u << (n->width - 1)) - 1;
}

static inline unsigned sl_level_in(const part_numbers *n, unsigned code) {
    return n->codes == CODES_TERNARY ? code != 0 : code & sl_level_mask(n);
}

static inline unsigned sl_sign_in(const part_numbers *n, unsigned code) {
    return code >> (n->width - 1);
}

static inline uint16_t sl_code_with(const part_numbers *n, unsigned level, unsigned sign) {
    if (n->codes == CODES_TERNARY)
        return (uint16_t)(level != 0 ? 1 + sign : 0);
    return (uint16_t)(level != 0 ? level | sign << (n->width - 1) : 0);
}

static inline const uint8_t *sl_codes_at(const part_numbers *n, const uint8_t *packed, size_t at) {
    return packed + at / 8 * n->width;
}

/* Codes on their way to a part, packed a block at a time. */
typedef struct sl_code_sink {
    uint16_t codes[SL_BLOCK];
    size_t filled;
    unsigned width;
    uint8_t *out;
} sl_code_sink;

static inline void sl_flush_codes(sl_code_sink *sink) {
    sl_pack(sink->codes, sink->filled, sink->width, sink->out);
    sink->out += sink->filled * sink->width / 8;
    sink->filled = 0;
}

static inline void sl_add_code(sl_code_sink *sink, uint16_t code) {
    sink->codes[sink->filled++] = code;
    if (sink->filled == SL_BLOCK)
        sl_flush_codes(sink);
}

#endif
