/* emulated_cache.h - the second-level cache that a device of the host claims to have: an H100's, or
 * what STARLING_CACHE_MIB in the environment says. */
#ifndef SL_EMULATED_CACHE_H
#define SL_EMULATED_CACHE_H

#include <stddef.h>
#include <stdlib.h>

static inline size_t emulated_cache_bytes(void) {
    const char *mib = getenv("STARLING_CACHE_MIB");
    return (size_t)(mib != NULL ? atoi(mib) : 50) << 20;
}

#endif
