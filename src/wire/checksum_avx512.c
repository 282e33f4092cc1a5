/* checksum_avx512.c - see checksum.c. */
#include "wire/checksum_wide.h"

#ifdef SL_CHECKSUM_WIDE
#pragma GCC target("avx512f,avx512bw")
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t sl_checksum_avx512(const void *data, size_t bytes) {
    return XXH3_64bits(data, bytes);
}
#endif
