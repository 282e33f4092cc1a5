/* checksum.c - see checksum.h.
 *
 * Every byte is summed once where it is sent and once where it comes in, so the sum's speed is a
 * good part of a round: XXH3 reads 50 GB/s with AVX2 where CRC32C with the processor's own
 * instruction reads 24. Its header is compiled twice, here for any processor and in
 * checksum_avx2.c, because the packaged library has only the first; both give the same sums.
 */
#include "wire/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/kernels.h"
#include "wire/checksum_avx2.h"

uint64_t sl_checksum(const void *data, size_t bytes) {
#ifdef SL_CHECKSUM_AVX2
    if (bytes >= SL_CHECKSUM_AVX2 && sl_has_avx2())
        return sl_checksum_avx2(data, bytes);
#endif
    return XXH3_64bits(data, bytes);
}
