/* checksum_wide.h - the checksum for processors that have AVX2 or AVX-512; only where the compiler
 * can build it. */
#ifndef SL_CHECKSUM_WIDE_H
#define SL_CHECKSUM_WIDE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && !defined(__clang__)
#define SL_CHECKSUM_WIDE 1024 /* bytes from which on it is worth the question */
uint64_t sl_checksum_avx2(const void *data, size_t bytes);
uint64_t sl_checksum_avx512(const void *data, size_t bytes);
#endif

#endif
