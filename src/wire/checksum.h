/* checksum.h - what frames are checked with: XXH3, 64 bits. */
#ifndef SL_CHECKSUM_H
#define SL_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t sl_checksum(const void *data, size_t bytes);

#endif
