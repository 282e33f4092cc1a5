/* listed.h - some elements of a range: values, float32 | indices within the range, rising, packed
 * from the lowest bit on (indices.h). The length says how many there are. */
#ifndef SL_LISTED_H
#define SL_LISTED_H

#include "compress/codec.h"

/* Of one of a range of `elements`. */
unsigned sl_listed_bits(size_t elements);
size_t sl_listed_bytes(size_t entries, size_t elements);
/* The values are in `out` already; returns the bytes of all. */
size_t sl_listed_put(const uint64_t *indices, size_t entries, size_t elements, uint8_t *out);
/* Are there whole entries, finite, with indices that rise? */
bool sl_listed_allowed(sl_payload payload, size_t elements);
/* acc: the range. */
void sl_listed_add(sl_payload payload, size_t elements, float weight, float *acc);

#endif
