/* checksum.c - see checksum.h.
 *
 * Every byte is summed once where it is sent and once where it comes in, so the sum's speed is a
 * good part of a round: XXH3 reads 50 GB/s with AVX2 where CRC32C with the processor's own
 * instruction reads 24. Its header is compiled three times, here for any processor, in
 * checksum_avx2.c and in checksum_avx512.c, because the packaged library has only the first; all
 * give the same sums.
 */
#include "wire/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/kernels.h"
#include "wire/checksum_wide.h"

uint64_t sl_checksum(const void *data, size_t bytes) {
#ifdef SL_CHECKSUM_WIDE
    if (bytes >= SL_CHECKSUM_WIDE && sl_kernels_level == SL_KERNELS_V4)
        return sl_checksum_avx512(data, bytes);
    if (bytes >= SL_CHECKSUM_WIDE && sl_has_avx2())
        return sl_checksum_avx2(data, bytes);
#endif
    return XXH3_64bits(data, bytes);
}
