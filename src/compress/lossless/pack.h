/* pack.h - codes of 1 to 16 bits, packed without gaps: bit b of code i is bit i * width + b of the
 * bytes, counted from the lowest. */
#ifndef SL_PACK_H
#define SL_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "compress/codec.h"

/* At most SL_BLOCK codes, each below 2^width; writes (n * width + 7) / 8 bytes, the bits left over
 * zero. `codes` has room for SL_BLOCK; what lies behind the first n, up to a multiple of 8, is
 * overwritten. */
void sl_pack(uint16_t *codes, size_t n, unsigned width, uint8_t *out);
/* The other way, for at most SL_BLOCK codes; returns them: where they lie if they are 16 bits wide
 * (packed: aligned for that), else in `room`, which has place for SL_BLOCK. */
const uint16_t *sl_unpack(const void *packed, size_t n, unsigned width, uint16_t *room);
/* The largest of any number of packed codes, each & mask; `packed` as above. */
uint32_t sl_packed_largest(const void *packed, size_t n, unsigned width, uint32_t mask);

#endif
