/* beside_cache.h - writes a vector to memory that is read later, by others: not through the cache,
 * which would first read what is overwritten, and lose what is in it. */
#ifndef SL_BESIDE_CACHE_H
#define SL_BESIDE_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* From so many elements on a vector is written so: one that fits a cache that cores share is better
 * left there. */
enum { SL_BESIDE_CACHE_FROM = 1 << 22 };

/* to <- from (count) */
static inline void sl_write_beside_cache(float *to, const float *from, size_t count) {
    size_t i = 0;
#ifdef __SSE2__
    for (; i + 4 <= count && (uintptr_t)to % 16 == 0; i += 4)
        _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
    _mm_sfence();
#endif
    memcpy(to + i, from + i, (count - i) * sizeof *to);
}

#endif
